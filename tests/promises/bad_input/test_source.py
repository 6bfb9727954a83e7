"""A source that cannot be used: one clear line before harm, and the same command goes on once it can."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.model.errors import ConfigError, SourceError
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life
from tests.world.log_lines import without_times
from tests.world.proxy import Proxy, dump_begins
from tests.world.servers.chosen import chosen_server

_MARIADB = pytest.mark.mariadb("MySQL has no such tables")
Refusal = Callable[..., str]


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """A shard whose settings and accounts these tests change."""
    with chosen_server(server_id=151) as server:
        yield {"-80": server}


@pytest.fixture
def refusal(capfd: pytest.CaptureFixture[str]) -> Refusal:
    """`refusal(life, code)` runs the feed, which must end with that code and so many lines; the lines."""

    def run(life: Life, code: int, *, lines: int = 1) -> str:
        capfd.readouterr()
        ended = life.run()
        said = without_times(capfd.readouterr().err).splitlines()
        assert ended == code, said
        assert len(said) == lines, said
        assert said[0].startswith("catchment: ")
        return "\n".join(said)

    return run


def must_go_on(life: Life) -> None:
    """The same command copies all, exactly."""
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"host": "no-such-host.invalid"}, "no-such-host.invalid"),
        ({"port": 1}, "refused"),
        ({"password": "wrong"}, "Access denied"),
        ({"user": "nobody"}, "Access denied"),
    ],
    ids=["no such host", "no such port", "wrong password", "no such user"],
)
def test_a_shard_that_does_not_let_us_in(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    refusal: Refusal,
    wrong: dict[str, str | int],
    expected: str,
) -> None:
    life = live(pair)
    life.describe({"80-": wrong})
    said = refusal(life, SourceError.exit_code)
    assert "shard 80-" in said
    assert expected in said
    assert pair["80-"].password not in said
    assert not life.lake.exists() or not any(life.lake.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("privilege", "code", "expected"),
    [
        ("REPLICATION SLAVE", SourceError.exit_code, "REPLICATION SLAVE"),
        ("SELECT", ConfigError.exit_code, "no table"),
    ],
    ids=["log", "rows"],
)
def test_a_privilege_that_is_missing(
    own: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    refusal: Refusal,
    privilege: str,
    code: int,
    expected: str,
) -> None:
    life = live(own)
    life.load(20)
    own["-80"].sql(f"REVOKE {privilege} ON *.* FROM catchment@'%'")
    try:
        said = refusal(life, code)
    finally:
        own["-80"].sql(f"GRANT {privilege} ON *.* TO catchment@'%'")
    assert expected in said
    must_go_on(life)


def test_a_server_without_a_log(live: MakeLife, refusal: Refusal) -> None:
    with chosen_server(server_id=152) as server:
        life = live({"-80": server})
        del server.settings["log_bin"]
        server.restart({"skip_log_bin": 1})
        said = refusal(life, SourceError.exit_code)
    assert "shard -80" in said
    assert "log_bin" in said


@pytest.mark.parametrize("setting", ["binlog_format=STATEMENT", "binlog_row_image=MINIMAL"])
def test_a_log_that_does_not_hold_whole_rows(
    own: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    refusal: Refusal,
    setting: str,
) -> None:
    life = live(own)
    life.load(20)
    name, value = setting.split("=")
    (before,) = own["-80"].sql(f"SELECT @@GLOBAL.{name}")[0]
    own["-80"].sql(f"SET GLOBAL {setting}")
    try:
        said = refusal(life, SourceError.exit_code)
    finally:
        own["-80"].sql(f"SET GLOBAL {name} = {before}")
    assert name in said
    assert value in said
    must_go_on(life)


@pytest.mark.parametrize("limit", [1, 5])
def test_a_limit_on_results_does_no_harm(
    own: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, limit: int
) -> None:
    life = live(own)
    life.load(60)
    own["-80"].sql(f"SET GLOBAL sql_select_limit = {limit}")
    try:
        assert life.run() == 0
        for table in life.keys:
            own["-80"].sql(f"ALTER TABLE {table} ADD COLUMN more INT")
        assert life.run() == 0
        for table in life.keys:
            own["-80"].sql(f"UPDATE {table} SET more = 7 LIMIT 3")
        assert life.run() == 0
    finally:
        own["-80"].sql("SET GLOBAL sql_select_limit = DEFAULT")
    life.must_be_exact()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param("CREATE TABLE {}.x (g POINT, PRIMARY KEY (g))", "column g", marks=_MARIADB),
        ("CREATE TABLE {}.x (id INT PRIMARY KEY, _epoch INT)", "column _epoch"),
        ("CREATE TABLE {}.x (v INT)", "primary key"),
        pytest.param("CREATE SEQUENCE {}.x", "sequence", marks=_MARIADB),
        pytest.param(
            "CREATE TABLE {}.x (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", "versioned", marks=_MARIADB
        ),
        ("CREATE TABLE {}.x (id INT PRIMARY KEY) ENGINE=MyISAM", "MyISAM"),
    ],
    ids=["spatial key", "our name", "no key", "sequence", "system-versioned", "engine"],
)
def test_a_table_that_cannot_be_carried_is_refused_by_name(
    pair: dict[str, PrivateServer], live: MakeLife, refusal: Refusal, statement: str, expected: str
) -> None:
    life = live(pair)
    for server in pair.values():
        server.sql(statement.format(life.schema))
    said = refusal(life, SourceError.exit_code, lines=4)
    assert f"{life.schema}.x on both shards" in said
    assert expected in said
    assert said.endswith(f'  - "!{life.schema}.x"')


def test_tables_made_just_before_the_feed_are_no_change_of_it(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife
) -> None:
    life = live(pair)
    must_go_on(life)
    life.load(5)
    must_go_on(life)


def test_a_table_altered_while_the_feed_begins(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, refusal: Refusal
) -> None:
    life = live(pair)
    life.load(20)
    dumps = count()

    def alter(piece: bytes) -> bool:
        # The first dump is that of what must hold before a run begins.
        if dump_begins(piece) and next(dumps) == 1:
            pair["-80"].sql(f"ALTER TABLE {life.schema}.t00 ADD COLUMN late INT")
        return False

    with Proxy(pair["-80"].host, pair["-80"].port) as proxy:
        proxy.cut_after(0, after=alter)
        life.describe({"-80": {"port": proxy.port}})
        assert "altered while the first cut was taken" in refusal(life, SourceError.exit_code)
        pair["80-"].sql(f"ALTER TABLE {life.schema}.t00 ADD COLUMN late INT")
        must_go_on(life)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP INDEX k ON {}",
        "ALTER TABLE {} DROP KEY k, ADD KEY (id)",
        "ALTER TABLE {} DROP -- the key\n KEY k",
    ],
)
def test_a_dropped_index_that_was_the_key_stops_the_feed(
    own: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, refusal: Refusal, statement: str
) -> None:
    life = live(own)
    table = f"{life.schema}.x"
    own["-80"].sql(f"CREATE TABLE {table} (id INT NOT NULL, v INT, UNIQUE KEY k (id), KEY other (v))")
    own["-80"].sql(f"INSERT INTO {table} VALUES (1, 1)")
    assert life.run() == 0
    own["-80"].sql(f"DROP INDEX other ON {table}")
    assert life.run() == 0
    life.describe(schema_change="fail")
    own["-80"].sql(statement.format(table), f"INSERT INTO {table} VALUES (1, 2)")
    said = refusal(life, SourceError.exit_code)
    assert "shard -80" in said
    assert f"{table} at " in said
    assert "instead of (id)" in said


def test_rules_that_choose_no_table(pair: dict[str, PrivateServer], live: MakeLife, refusal: Refusal) -> None:
    life = live(pair)
    life.describe(tables=["nothing.*"])
    assert "tables" in refusal(life, ConfigError.exit_code)
