"""The doctor against a real MySQL, misconfigured in each way that it knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.doctor import examine, must_be_set_up
from catchment.doctor.settings import check_settings
from catchment.model.errors import SourceError
from catchment.model.position import Xid
from tests.layers.doctor.test_doctor import ERROR, WARNING, assert_only, feed_of
from tests.world.prepared import prepare, roll_back_prepared
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

CASCADE = (
    "CREATE TABLE shop.part (id VARCHAR(9) PRIMARY KEY, o VARCHAR(9), "
    "FOREIGN KEY (o) REFERENCES shop.part (id) ON DELETE CASCADE)"
)


@pytest.fixture(
    params=["mysql_server", pytest.param("mysql_97_server", marks=pytest.mark.wide)], ids=["8.0", "9.7"]
)
def server(request: pytest.FixtureRequest) -> Iterator[PrivateMySQL]:
    found: PrivateMySQL = request.getfixturevalue(request.param)
    found.sql("CREATE DATABASE shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text)")
    yield found
    found.sql("DROP DATABASE shop")


def test_a_good_shard(server: PrivateMySQL, tmp_path: Path) -> None:
    findings = examine(feed_of(tmp_path, server)).findings
    assert_only(findings, [])
    said = "\n".join(finding.found for finding in findings)
    for part in (
        "the server is MySQL ",
        "gtid_mode is ON",
        "1 of 1 chosen tables",
        "the log is kept for 30.0 days",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("setting", "value", "severity", "found"),
    [
        ("binlog_row_image", "'MINIMAL'", ERROR, "binlog_row_image is MINIMAL"),
        (
            "binlog_row_image",
            "'NOBLOB'",
            ERROR,
            "binlog_row_image is NOBLOB and leaves columns out of shop.notes: a, b",
        ),
        ("binlog_row_metadata", "'MINIMAL'", WARNING, "binlog_row_metadata is MINIMAL"),
        ("binlog_format", "'MIXED'", ERROR, "binlog_format is MIXED"),
        ("binlog_checksum", "'NONE'", WARNING, "binlog_checksum is NONE"),
        ("binlog_expire_logs_seconds", "3600", WARNING, "kept for 1.0 hours"),
        ("sql_select_limit", "1", WARNING, "sql_select_limit is 1"),
        ("gtid_mode", "'ON_PERMISSIVE'", ERROR, "gtid_mode is ON_PERMISSIVE"),
    ],
)
def test_settings(
    mysql_server: PrivateMySQL, tmp_path: Path, setting: str, value: str, severity: object, found: str
) -> None:
    mysql_server.sql(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, v varchar(900), j json, g geometry)",
        "CREATE TABLE shop.notes (id bigint PRIMARY KEY, a tinytext, b blob)",
    )
    ((before,),) = mysql_server.sql(f"SELECT @@GLOBAL.{setting}")
    mysql_server.sql(f"SET GLOBAL {setting} = {value}")
    try:
        findings = examine(feed_of(tmp_path, mysql_server)).findings
    finally:
        back = before if isinstance(before, int) else f"'{before}'"
        mysql_server.sql(f"SET GLOBAL {setting} = {back}", "DROP DATABASE shop")
    assert_only(findings, [(severity, found, "SET GLOBAL")])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "privilege", ["REPLICATION CLIENT", "REPLICATION SLAVE", "XA_RECOVER_ADMIN", "SELECT"]
)
def test_a_missing_privilege_is_named(server: PrivateMySQL, tmp_path: Path, privilege: str) -> None:
    server.sql(f"REVOKE {privilege} ON *.* FROM catchment")
    if privilege == "SELECT":
        server.sql("GRANT INSERT ON shop.orders TO catchment")
    try:
        findings = examine(feed_of(tmp_path, server)).findings
    finally:
        server.sql(f"GRANT {privilege} ON *.* TO catchment")
        if privilege == "SELECT":
            server.sql("REVOKE INSERT ON shop.orders FROM catchment")
    where = "`shop`.`orders`" if privilege == "SELECT" else "*.*"
    assert_only(findings, [(ERROR, "is refused", f"GRANT {privilege} ON {where} TO 'catchment'@'%'")])


def test_transactions_that_stay_prepared_are_listed_to_who_may_see_them(
    server: PrivateMySQL, tmp_path: Path
) -> None:
    prepare(server, "'left','behind',7", "INSERT INTO shop.orders VALUES (1, '')")
    try:
        findings = examine(feed_of(tmp_path, server)).findings
        server.sql("REVOKE XA_RECOVER_ADMIN ON *.* FROM catchment")
        hidden = examine(feed_of(tmp_path, server)).findings
    finally:
        server.sql("GRANT XA_RECOVER_ADMIN ON *.* TO catchment")
        roll_back_prepared(server)
    assert_only(findings, [(WARNING, "1 XA transactions are prepared and open", "XA COMMIT or XA ROLLBACK")])
    (finding,) = (finding for finding in findings if " XA transactions " in finding.found)
    assert f"{Xid(7, b'left', b'behind')}" in finding.found
    assert "tables are copied only while the log since is within copy.log_budget" in finding.risk
    assert_only(hidden, [(ERROR, "is refused", "GRANT XA_RECOVER_ADMIN ON *.* TO 'catchment'@'%'")])


def test_foreign_keys_are_in_the_log_from_9_6_on(server: PrivateMySQL, tmp_path: Path) -> None:
    server.sql(CASCADE)
    findings = examine(feed_of(tmp_path, server)).findings
    logged = server.build.version >= (9, 6)
    assert_only(findings, [] if logged else [(WARNING, "foreign key", "RESTRICT")])


def test_a_replica_that_does_not_log(mysql_80_build: Build, tmp_path: Path) -> None:
    with PrivateMySQL(
        mysql_80_build, settings={"log_slave_updates": "OFF", "skip_slave_start": "ON"}
    ) as server:
        server.sql("CREATE DATABASE shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY)")
        assert_only(examine(feed_of(tmp_path, server)).findings, [])
        server.sql("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1")
        expected = [(ERROR, "log_replica_updates is OFF", "start the server with log_replica_updates")]
        assert_only(examine(feed_of(tmp_path, server)).findings, expected)


def test_a_server_without_gtids_can_be_followed(mysql_80_build: Build, tmp_path: Path) -> None:
    settings = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF", "binlog_row_image": "FULL"}
    with PrivateMySQL(mysql_80_build, settings=settings) as server:
        (endpoint,) = feed_of(tmp_path, server).endpoints()
        must_be_set_up(endpoint, ["shop.*"])
        server.sql("SET GLOBAL binlog_row_image = MINIMAL")
        with pytest.raises(SourceError, match="binlog_row_image is MINIMAL"):
            must_be_set_up(endpoint, ["shop.*"])


def test_old_mysql_is_refused() -> None:
    (finding,) = check_settings("s", {"version": "5.7.44-log", "version_comment": "MySQL Community Server"})
    assert finding.severity is ERROR
    assert "MySQL 8.0 or later" in finding.remedy
