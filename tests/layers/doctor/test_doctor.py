"""The doctor against real servers, misconfigured in each way that it knows."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.config import Feed
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.doctor import Finding, Severity, examine, must_be_set_up
from catchment.doctor.settings import check_settings
from catchment.model.errors import SourceError

ERROR, WARNING, OK = Severity.ERROR, Severity.WARNING, Severity.OK

Expected = list[tuple[Severity, str, str]]

# What the doctor says of every PrivateServer, which is set up for speed and not for power cuts.
NOT_DURABLE = ("sync_binlog is 0", "innodb_flush_log_at_trx_commit is 2")


def feed_of(
    tmp_path: Path, *servers: PrivateServer, tables: tuple[str, ...] = ("shop.*",), **changes: Any
) -> Feed:
    shards = [
        {
            "name": f"s{n}",
            "host": s.host,
            "port": s.port,
            "user": FEED_USER,
            "password": s.password,
            **changes,
        }
        for n, s in enumerate(servers)
    ]
    return Feed.model_validate(
        {
            "name": "shop",
            "source": {"keyspace": "shop", "shards": shards},
            "tables": tables,
            "sink": {"path": str(tmp_path / "lake")},
            "state": str(tmp_path / "shop.state.db"),
        }
    )


def faults(findings: Sequence[Finding]) -> Expected:
    return [
        (f.severity, f.found, f.remedy)
        for f in findings
        if f.severity is not OK and f.found not in NOT_DURABLE
    ]


def assert_only(findings: Sequence[Finding], expected: Expected) -> None:
    """Exactly these errors and warnings, by parts of what was found and of the remedy, in any order."""
    found = sorted(faults(findings), key=lambda f: f[1])
    wanted = sorted(expected, key=lambda e: e[1])
    unmet = [e for e in wanted if not any(e[0] is f[0] and e[1] in f[1] and e[2] in f[2] for f in found)]
    assert not unmet, found
    assert len(found) == len(wanted), found


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[PrivateServer, PrivateServer]]:
    with PrivateServer(server_id=301) as first, PrivateServer(server_id=302) as second:
        yield first, second


def with_shop(server: PrivateServer) -> Iterator[PrivateServer]:
    """A server with one good table, which loses what the test made."""
    server.sql("CREATE DATABASE shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text)")
    yield server
    server.sql("DROP DATABASE shop")


@pytest.fixture
def server(servers: tuple[PrivateServer, PrivateServer]) -> Iterator[PrivateServer]:
    yield from with_shop(servers[0])


@pytest.fixture
def neighbour(servers: tuple[PrivateServer, PrivateServer]) -> Iterator[PrivateServer]:
    yield from with_shop(servers[1])


def test_two_good_shards(server: PrivateServer, neighbour: PrivateServer, tmp_path: Path) -> None:
    findings = examine(feed_of(tmp_path, server, neighbour)).findings
    assert_only(findings, [])
    said = "\n".join(f"{f.shard}: {f.found}" for f in findings)
    for part in (
        "MariaDB 10",
        "1 of 1 chosen tables",
        "kept until it is purged by hand",
        "will be made at the first run",
    ):
        assert part in said
    assert list(tmp_path.iterdir()) == []


GLOBALS: list[tuple[dict[str, str], Severity, str, str]] = [
    ({"binlog_format": "'STATEMENT'"}, ERROR, "binlog_format is STATEMENT", "SET GLOBAL binlog_format=ROW"),
    ({"binlog_format": "'MIXED'"}, ERROR, "binlog_format is MIXED", "SET GLOBAL binlog_format=ROW"),
    (
        {"binlog_row_image": "'NOBLOB'"},
        ERROR,
        "binlog_row_image is NOBLOB and leaves columns out of shop.orders: note",
        '"!shop.orders"',
    ),
    ({"binlog_row_image": "'MINIMAL'"}, ERROR, "binlog_row_image is MINIMAL", "until they connect again"),
    (
        {"binlog_row_metadata": "'MINIMAL'"},
        WARNING,
        "binlog_row_metadata is MINIMAL",
        "binlog_row_metadata=FULL",
    ),
    ({"binlog_checksum": "'NONE'"}, WARNING, "binlog_checksum is NONE", "binlog_checksum=CRC32"),
    ({"sync_binlog": "7"}, WARNING, "sync_binlog is 7", "sync_binlog=1"),
    ({"innodb_flush_log_at_trx_commit": "0"}, WARNING, "innodb_flush_log_at_trx_commit is 0", "=1"),
    ({"sql_select_limit": "5"}, WARNING, "sql_select_limit is 5", "sql_select_limit=DEFAULT"),
    ({"slave_run_triggers_for_rbr": "'YES'"}, WARNING, "slave_run_triggers_for_rbr is YES", "LOGGING"),
    ({"expire_logs_days": "0.25"}, WARNING, "kept for 6.0 hours", "binlog_expire_logs_seconds"),
    ({"gtid_slave_pos": "'0-9-1'"}, ERROR, "is or was a replica (gtid_slave_pos 0-9-1)", "log_slave_updates"),
    ({"server_id": "302"}, WARNING, "shards s0 and s1 have the same server_id 302", "number of its own"),
]


def test_durability(server: PrivateServer, tmp_path: Path) -> None:
    warnings = [f.found for f in examine(feed_of(tmp_path, server)).findings if f.severity is WARNING]
    assert warnings == list(NOT_DURABLE)
    server.sql("SET GLOBAL sync_binlog = 1, GLOBAL innodb_flush_log_at_trx_commit = 1")
    warnings = [f.found for f in examine(feed_of(tmp_path, server)).findings if f.severity is WARNING]
    server.sql("SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2")
    assert warnings == []


@pytest.mark.parametrize(("settings", "severity", "found", "remedy"), GLOBALS)
def test_global_settings(
    server: PrivateServer, neighbour: PrivateServer, tmp_path: Path,
    settings: dict[str, str], severity: Severity, found: str, remedy: str,
) -> None:  # fmt: skip
    ((name, value),) = settings.items()
    ((before,),) = server.sql(f"SELECT @@global.{name}")
    server.sql(f"SET GLOBAL {name} = {value}")
    try:
        assert_only(examine(feed_of(tmp_path, server, neighbour)).findings, [(severity, found, remedy)])
    finally:
        server.sql(f"SET GLOBAL {name} = {before if isinstance(before, int | float) else repr(str(before))}")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"skip_log_bin": 1}, [(ERROR, "log_bin is OFF", "start the server with log_bin")]),
        (
            {"binlog_ignore_db": "shop"},
            [(ERROR, "keeps changes of shop out of the log", "without these filters")],
        ),
        (
            {"binlog_do_db": "other"},
            [(ERROR, "keeps changes of shop out of the log", "without these filters")],
        ),
        ({"binlog_ignore_db": "other"}, []),
        (
            {"binlog_expire_logs_seconds": 3600},
            [(WARNING, "kept for 1.0 hours", "binlog_expire_logs_seconds")],
        ),
    ],
)
def test_settings_of_the_start(settings: dict[str, str | int], expected: Expected, tmp_path: Path) -> None:
    with PrivateServer(server_id=303, settings=settings) as own:
        own.sql("CREATE DATABASE shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text)")
        feed = feed_of(tmp_path, own)
        assert_only(examine(feed).findings, expected)
        for severity, found, remedy in expected:
            if severity is ERROR:  # then a feed does not begin, or go on
                with pytest.raises(SourceError, match=f"shard s0: .*{found}.*{remedy}"):
                    must_be_set_up(feed.endpoints()[0], feed.tables)
        if ERROR not in [severity for severity, _, _ in expected]:
            must_be_set_up(feed.endpoints()[0], feed.tables)


TABLES: list[tuple[str, Severity, str, str]] = [
    ("CREATE TABLE shop.x (a int, b int, UNIQUE (a))", ERROR, "shop.x: there is no primary key", ""),
    ("CREATE TABLE shop.x (a int PRIMARY KEY) ENGINE=Aria", ERROR, "engine Aria", "=InnoDB"),
    ("CREATE TABLE shop.x (a int PRIMARY KEY) ENGINE=MyISAM", ERROR, "the engine MyISAM", "=InnoDB"),
    ("CREATE SEQUENCE shop.x", ERROR, "shop.x is a sequence", '"!shop.x"'),
    ("CREATE TABLE shop.x (a int PRIMARY KEY) WITH SYSTEM VERSIONING", ERROR, "is system-versioned", "!shop"),
    ("CREATE TABLE shop.x (a enum('', 'b') PRIMARY KEY)", ERROR, "shop.x, key column a: the empty label", ""),
    ("CREATE TABLE shop.x (g point, PRIMARY KEY (g))", ERROR, "key column g: a spatial value is no key", ""),
    ("CREATE TABLE shop.x (a int PRIMARY KEY, _epoch int)", ERROR, "shop.x, column _epoch: the lake's", ""),
    (
        "CREATE TABLE shop.x (a varchar(9) PRIMARY KEY, o varchar(9),"
        " FOREIGN KEY f (o) REFERENCES shop.x (a) ON DELETE CASCADE)",
        WARNING, "foreign key f ON DELETE CASCADE: only the server can compare o with shop.x.a", "RESTRICT",
    ),
    (
        "CREATE TABLE shop.x (a int PRIMARY KEY, o bigint, s bigint AS (o + 1) VIRTUAL,"
        " FOREIGN KEY f (o) REFERENCES shop.orders (id) ON UPDATE SET NULL ON DELETE RESTRICT)",
        WARNING, "foreign key f ON UPDATE SET NULL: shop.x has generated columns", "RESTRICT",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "severity", "found", "remedy"), TABLES)
def test_tables(
    server: PrivateServer, tmp_path: Path, statement: str, severity: Severity, found: str, remedy: str
) -> None:
    server.sql(statement)
    assert_only(examine(feed_of(tmp_path, server)).findings, [(severity, found, remedy)])
    assert_only(examine(feed_of(tmp_path, server, tables=("shop.*", "!shop.x"))).findings, [])


def test_children_of_what_is_not_chosen(server: PrivateServer, tmp_path: Path) -> None:
    server.sql(
        "CREATE TABLE shop.x (a int PRIMARY KEY, o bigint,"
        " FOREIGN KEY f (o) REFERENCES shop.orders (id) ON DELETE CASCADE)",
        "CREATE TABLE shop.y (a int PRIMARY KEY, x int, FOREIGN KEY g (x) REFERENCES shop.x (a) ON DELETE SET NULL)",
        "CREATE TABLE shop.z (a int PRIMARY KEY)",
    )
    findings = examine(feed_of(tmp_path, server, tables=("shop.*", "!shop.orders"))).findings
    expected = [
        (ERROR, f"shop.{child}: its foreign key ", f"shop.{parent} is not among the tables")
        for child, parent in (("x", "orders"), ("y", "x"))
    ]
    errors = [(one.severity, one.found) for one in findings if one.severity is ERROR]
    assert len(errors) == len(expected), errors
    for (severity, found), (wanted, begin, end) in zip(errors, expected, strict=True):
        assert severity is wanted
        assert found.startswith(begin)
        assert found.endswith(end)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE shop.x (a int PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 3",
        "CREATE TABLE shop.x (a int NOT NULL, b varchar(9) NOT NULL, UNIQUE (b))",
        "CREATE TABLE shop.x (a int PRIMARY KEY, o bigint, FOREIGN KEY f (o) REFERENCES shop.orders (id))",
        "CREATE TABLE shop.x (a int PRIMARY KEY, o bigint, FOREIGN KEY f (o) REFERENCES shop.orders (id)"
        " ON DELETE CASCADE ON UPDATE SET NULL)",
        "CREATE TABLE shop.x (a int PRIMARY KEY, c text COMMENT 'ON DELETE CASCADE')",
        "CREATE TABLE shop.x (a int PRIMARY KEY, g point)",
        "CREATE TABLE shop.x (a int PRIMARY KEY, g inet6, h inet4, i uuid)",
        "CREATE TABLE shop.x (a int PRIMARY KEY, g text COMPRESSED)",
        "CREATE TABLE shop.x (a int PRIMARY KEY, g text CHARSET sjis)",
        "CREATE TABLE shop.`odd ``name.x` (a int PRIMARY KEY)",
        "CREATE VIEW shop.x AS SELECT 1 AS a",
    ],
)
def test_tables_that_are_carried(server: PrivateServer, tmp_path: Path, statement: str) -> None:
    server.sql(statement)
    findings = examine(feed_of(tmp_path, server)).findings
    assert_only(findings, [])
    tables = 1 if "VIEW" in statement else 2
    assert f"{tables} of {tables} chosen tables can be carried" in [finding.found for finding in findings]


DIFFERENT: list[tuple[str, str]] = [
    ("CREATE OR REPLACE TABLE shop.orders (id bigint PRIMARY KEY)", "column note is missing"),
    ("ALTER TABLE shop.orders ADD extra int", "column extra is only here"),
    ("ALTER TABLE shop.orders MODIFY note blob", "column note is "),
    (
        "ALTER TABLE shop.orders ADD b int, DROP PRIMARY KEY, ADD PRIMARY KEY (id, b)",
        "key (id, b) instead of (id)",
    ),
]


@pytest.mark.parametrize(("statement", "difference"), DIFFERENT)
def test_definitions_that_differ(
    server: PrivateServer, neighbour: PrivateServer, tmp_path: Path, statement: str, difference: str
) -> None:
    neighbour.sql(statement)
    found = f"shop.orders differs from that on shard s0: {difference}"
    assert_only(examine(feed_of(tmp_path, server, neighbour)).findings, [(ERROR, found, "ALTER TABLE")])


def test_table_on_one_shard_only(server: PrivateServer, neighbour: PrivateServer, tmp_path: Path) -> None:
    server.sql("CREATE TABLE shop.x (a int PRIMARY KEY)")
    found = "shop.x is on other shards but not"
    assert_only(examine(feed_of(tmp_path, server, neighbour)).findings, [(WARNING, found, "")])


def test_rules_that_take_nothing(server: PrivateServer, tmp_path: Path) -> None:
    findings = examine(feed_of(tmp_path, server, tables=("shop.*", "shop.ordres", "!shop.tmp"))).findings
    assert_only(findings, [(ERROR, "rule shop.ordres takes no table", "correct `tables`")])


def test_one_server_twice(server: PrivateServer, tmp_path: Path) -> None:
    feed = feed_of(tmp_path, server)
    (shard,) = feed.source.shards
    again = shard.model_copy(update={"name": "s1", "host": "localhost"})
    source = feed.source.model_copy(update={"shards": (shard, again)})
    findings = examine(feed.model_copy(update={"source": source})).findings
    assert_only(findings, [(ERROR, "shards s0 and s1 are one server", "correct host and port")])


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ("SELECT, REPLICATION SLAVE", [(ERROR, "limited", "GRANT BINLOG MONITOR ON *.* TO 'limited'@'%'")]),
        ("SELECT, BINLOG MONITOR", [(ERROR, "limited", "GRANT REPLICATION SLAVE ON *.* TO 'limited'@'%'")]),
        ("REPLICATION SLAVE, BINLOG MONITOR", [(ERROR, "rule shop.* takes no table", "correct `tables`")]),
        ("INSERT, REPLICATION SLAVE, BINLOG MONITOR", [
            (ERROR, "limited@% is refused", "GRANT SELECT ON `shop`.`orders` TO 'limited'@'%'")]),
        ("ALL PRIVILEGES", []),
    ],
)  # fmt: skip
def test_privileges(server: PrivateServer, tmp_path: Path, grants: str, expected: Expected) -> None:
    server.sql("CREATE OR REPLACE USER limited IDENTIFIED BY 'pw'", f"GRANT {grants} ON *.* TO limited")
    assert_only(examine(feed_of(tmp_path, server, user="limited", password="pw")).findings, expected)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"password": "hunter2"}, "check the password"),
        ({"user": "nobody"}, "check the password"),
        ({"port": 1}, "refused"),
        ({"host": "no-such-host.invalid"}, "no-such-host.invalid"),
        ({"tls": {}}, "s0"),
    ],
)
def test_shards_that_cannot_be_reached(
    server: PrivateServer, tmp_path: Path, changes: dict[str, Any], found: str
) -> None:
    findings = examine(feed_of(tmp_path, server, **changes)).findings
    assert_only(findings, [(ERROR, found, "")])
    assert "hunter2" not in str(findings)


def test_one_bad_shard_does_not_hide_the_other(server: PrivateServer, tmp_path: Path) -> None:
    with PrivateServer(server_id=304) as gone:
        feed = feed_of(tmp_path, gone, server)
    server.sql("CREATE SEQUENCE shop.x")
    expected = [(ERROR, "shard s0 at", ""), (ERROR, "shop.x is a sequence", "")]
    assert_only(examine(feed).findings, expected)


def test_a_key_that_no_server_reads_by_ranges(server: PrivateServer, tmp_path: Path) -> None:
    for labels in (10, 11):
        values = ", ".join(f"'l{n}'" for n in range(labels))
        server.sql(f"CREATE TABLE shop.s{labels} (s SET({values}) PRIMARY KEY)")
    expected = [(WARNING, "the key of shop.s11 begins with s", "chunk_rows_max")]
    assert_only(examine(feed_of(tmp_path, server)).findings, expected)


def test_a_login_plugin_that_is_not_known_does_not_hide_the_other_shard(
    server: PrivateServer, neighbour: PrivateServer, tmp_path: Path
) -> None:
    server.sql(
        "SET GLOBAL secure_auth = OFF",
        "CREATE USER odd IDENTIFIED VIA mysql_old_password USING '0123456789abcdef'",
    )
    neighbour.sql(
        "CREATE USER odd IDENTIFIED BY 'pw'",
        "GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO odd",
        "CREATE SEQUENCE shop.x",
    )
    findings = examine(feed_of(tmp_path, server, neighbour, user="odd", password="pw")).findings
    assert_only(findings, [(ERROR, "unknown auth switch", ""), (ERROR, "shop.x is a sequence", "")])
    server.sql("DROP USER odd", "SET GLOBAL secure_auth = ON")


def test_clock_skew(server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 90)
    assert_only(examine(feed_of(tmp_path, server)).findings, [(WARNING, "s ahead of this host's", "NTP")])


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (
            {"version": "5.7.44-log", "version_comment": "MySQL Community Server (GPL)"},
            "the server is MySQL 5.7.44",
        ),
        ({"version": "10.4.34-MariaDB"}, "the server is MariaDB 10.4.34"),
    ],
)
def test_servers_that_are_not_here_to_be_started(variables: dict[str, str], found: str) -> None:
    (finding,) = check_settings("s0", variables)
    assert finding.severity is ERROR
    assert finding.found.startswith(found)


def test_a_schema_with_a_dot_is_refused(tmp_path: Path, server: PrivateServer) -> None:
    server.sql("CREATE DATABASE `shop.x`", "CREATE TABLE `shop.x`.t (id int PRIMARY KEY)")
    try:
        found = examine(feed_of(tmp_path, server, tables=("shop.*", "/shop[.]x[.]t/"))).findings
    finally:
        server.sql("DROP DATABASE `shop.x`")
    assert_only(found, [(ERROR, "shop.x.t: a schema with a dot in its name", "")])
