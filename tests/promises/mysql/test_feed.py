"""A feed on MySQL from the first cut on: copied under writes, followed, and equal to the source."""

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.feed.verify import verify
from catchment.model.errors import SourceError
from catchment.model.gtidset import GtidSet
from catchment.model.position import GtidList
from tests.promises.exact.feedrun import FeedRun, Thread, make_feed
from tests.world.engines import on_spark
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

_ROWS = 3000
_PAUSE_SECONDS = 0.01


def fill(server: PrivateServer, schema: str) -> None:
    """Two tables with some thousand rows."""
    depth = "cte_max_recursion_depth" if isinstance(server, PrivateMySQL) else "max_recursive_iterations"
    numbers = f"WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS}) SELECT"
    server.sql(
        f"USE {schema}",
        f"SET {depth} = {_ROWS}",
        "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v VARCHAR(40), at DATETIME(6) DEFAULT NOW(6))",
        "CREATE TABLE u (a INT, b VARCHAR(20), v JSON, PRIMARY KEY (a, b))",
        f"INSERT INTO t (id, v) {numbers} i * 3, CONCAT('loaded ', i) FROM n",
        f"""INSERT INTO u {numbers} i DIV 10, CONCAT('k', i), CONCAT('{{"n": ', i, ', "s": "x"}}') FROM n""",
    )


def writer_of(server: PrivateServer, schema: str, tag: str = "") -> Thread:
    """Writes small transactions to both tables until it is stopped; the GTIDs have that tag."""
    connection = server.connect(database=schema)
    numbers = itertools.count(1)
    if tag:
        with connection.cursor() as cursor:
            cursor.execute("SET gtid_next = %s", (f"AUTOMATIC:{tag}",))

    def step() -> None:
        time.sleep(_PAUSE_SECONDS)
        with suppress(pymysql.err.OperationalError):  # a deadlock with the UPDATE of all rows
            transact(next(numbers))

    def transact(n: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO t (id, v) VALUES (%s, 'new')", (100_000 + n,))
            cursor.execute("UPDATE t SET v = %s WHERE id = %s", (f"written {n}", n * 7 % _ROWS * 3))
            cursor.execute("DELETE FROM t WHERE id = %s", (n * 13 % _ROWS * 3,))
            cursor.execute("UPDATE u SET v = JSON_SET(v, '$.n', %s) WHERE a = %s", (-n, n % 300))
            cursor.execute("UPDATE u SET b = %s WHERE a = %s LIMIT 1", (f"m{n}", n * 11 % 300))
            cursor.execute("ROLLBACK" if n % 10 == 0 else "COMMIT")

    return Thread("writer", step)


@pytest.mark.parametrize(
    "fixture",
    [
        pytest.param("mysql_server", id="8.0", marks=pytest.mark.wide),
        pytest.param("mysql_97_server", id="9.7"),
        pytest.param("mariadb_11_server", id="MariaDB 11.8", marks=pytest.mark.wide),
    ],
)
def test_copied_under_writes_and_followed(
    fixture: str,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    fill(server, schema)
    feed = make_feed(tmp_path, {"a": server}, schema, chunk_rows=400)
    writer = writer_of(server, schema)
    with FeedRun(feed) as run:
        writer.start()
        run.wait("all tables copied", lambda epochs: epochs[-1].cut.copied)
        server.sql(
            "FLUSH BINARY LOGS",
            f"ALTER TABLE {schema}.t ADD COLUMN extra INT",
            f"UPDATE {schema}.t SET extra = id",
        )
        run.wait_for_epochs(len(run.epochs) + 3)
        writer.stop()
        newest = run.wait_for_log({"a": server})
    assert len(run.epochs) > 4
    (name,) = newest.cut.shards
    for table, columns in (("t", "id, v, extra"), ("u", "a, b, CAST(v AS CHAR)")):
        wanted = server.sql(f"SELECT {columns} FROM {schema}.{table}")
        rows = read(feed, f"{schema}.{table}").polars().to_arrow()
        names = ["id", "v", "extra"] if table == "t" else ["a", "b", "v"]
        found = zip(*(rows.column(column).to_pylist() for column in names), strict=True)
        assert sorted((int(first), *rest) for first, *rest in found) == sorted(wanted)
    mysql = isinstance(server, PrivateMySQL)
    ((executed,),) = server.sql(f"SELECT @@{'gtid_executed' if mysql else 'gtid_binlog_pos'}")
    assert newest.cut.positions[name].gtids == (GtidSet if mysql else GtidList).parse(executed)
    verdict = verify(feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}, on_spark(spark))
    assert verdict.differences == 0, verdict.found


def test_without_gtids_a_copy_is_refused_and_an_old_feed_goes_on(
    mysql_80_build: Build, spark: SparkContext, tmp_path: Path
) -> None:
    with PrivateMySQL(mysql_80_build) as server:
        server.sql("CREATE DATABASE d")
        fill(server, "d")
        feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=4000)
        with FeedRun(feed) as run:
            run.wait("all tables copied", lambda epochs: epochs[-1].cut.copied)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            server.sql(f"SET GLOBAL gtid_mode = {mode}")
        (tmp_path / "other").mkdir()
        other = make_feed(tmp_path / "other", {"a": server}, "d", chunk_rows=4000)
        with pytest.raises(SourceError, match="gtid_mode is not ON"), FeedRun(other) as run:
            run.wait_for_epochs(1)
        with FeedRun(feed) as run:
            server.sql("UPDATE d.t SET v = 'anonymous' WHERE id = 3")
            run.wait_for_log({"a": server})
        rows = read(feed, "d.t").polars().to_arrow()
        assert (
            dict(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True))[3]
            == "anonymous"
        )
