"""Whatever sql_mode and init_connect give to every new session of a server: doctor, run and verify are not moved."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, examine
from catchment.feed.verify import verify
from catchment.model.table import TableId
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

MARIADB = (
    "EMPTY_STRING_IS_NULL",
    "ORACLE,EMPTY_STRING_IS_NULL",
    "MSSQL,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE,REAL_AS_FLOAT",
    "NO_BACKSLASH_ESCAPES,SIMULTANEOUS_ASSIGNMENT,TIME_ROUND_FRACTIONAL,NO_ZERO_DATE,TRADITIONAL",
)
MYSQL = (
    "ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE",
    "NO_BACKSLASH_ESCAPES,TRADITIONAL",
)
TABLE = (
    "CREATE TABLE t (id INT UNSIGNED, c CHAR(9), k VARCHAR(9) COLLATE utf8mb4_bin, f FLOAT, d DATETIME(3), "
    "PRIMARY KEY (k, id))"
)
ROWS = (
    "INSERT INTO t VALUES (1, 'a', '', 1.1, '2026-01-02 03:04:05.678'), (2, '', 'b\\\\', NULL, NULL), "
    "(4294967295, NULL, 'c\"\\'', 0.1, '2026-01-02 03:04:05')"
)
ALWAYS = ("init_connect = 'SET sql_mode = @@GLOBAL.sql_mode, time_zone = ''+09:00'', autocommit = 0'",)


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A MariaDB whose global settings these tests change."""
    with PrivateServer(server_id=171) as server:
        yield server


@pytest.fixture(scope="module")
def own_mysql(mysql_80_build: Build) -> Iterator[PrivateServer]:
    """A MySQL whose global settings these tests change."""
    with PrivateMySQL(mysql_80_build, server_id=172) as server:
        yield server


def test_a_feed_of_mariadb(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _must_be_carried(own, MARIADB, fresh_schema, tmp_path, monkeypatch)


def test_a_feed_of_mysql(
    own_mysql: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _must_be_carried(own_mysql, MYSQL, fresh_schema, tmp_path, monkeypatch)


def _must_be_carried(
    server: PrivateServer,
    modes: Sequence[str],
    fresh_schema: Callable[..., str],
    directory: Path,
    patch: pytest.MonkeyPatch,
) -> None:
    """A feed for each mode, since its first copy has to be one in that mode."""
    here = run_here(patch)
    for number, mode in enumerate(modes):
        (own := directory / str(number)).mkdir()
        schema = fresh_schema(server)
        steps = Steps(own, {"a": server}, schema)
        steps.sql("a", TABLE, ROWS, "CREATE TABLE log (at TIMESTAMP(6) PRIMARY KEY, id INT)")
        server.sql(f"SET GLOBAL sql_mode = '{mode}'", *(f"SET GLOBAL {setting}" for setting in ALWAYS))
        try:
            found = [one for one in examine(steps.feed).findings if one.severity is Severity.ERROR]
            assert not [one for one in found if one.shard == "a"], (mode, found)
            steps.run()
            server.sql("SET sql_mode = ''", f"USE {schema}", "UPDATE t SET c = CONCAT(c, 'x') WHERE id < 3")
            server.sql("SET sql_mode = ''", f"USE {schema}", "DELETE FROM t WHERE id = 4294967295")
            steps.run()
            verdict = verify(steps.feed, {e.shard: e for e in steps.feed.endpoints()}, here)
        finally:
            server.sql("SET GLOBAL sql_mode = DEFAULT", "SET GLOBAL init_connect = ''")
        assert verdict.differences == 0, mode
        assert verdict.rows[TableId(schema, "t")] == 2, mode
        assert steps.lake("t", "id", "c", "k") == steps.source("t", "id", "c", "k"), mode
