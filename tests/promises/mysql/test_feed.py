"""A feed on MySQL from the first cut on: copied under writes, followed, and equal to the source."""

import itertools
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pymysql
import pytest

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, examine
from catchment.feed.verify import verify
from catchment.model.errors import SourceError
from catchment.model.gtidset import GtidSet
from catchment.model.position import GtidList
from catchment.model.table import TableId
from catchment.serve.spark_source.driver import read_shape
from tests.layers.wire.dumps import decoded, read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.promises.exact.feedrun import FeedRun, Thread, make_feed
from tests.promises.exact.steps import run_here
from tests.world.engines import Here
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL

_ROWS = 1500
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


@dataclass(frozen=True)
class Kind:
    """A server with options that change what its log holds: parts of documents, compression, tags, NOBLOB. `events`:
    what they bring into the log. `hidden_keys`: tables without a key get an invisible one."""

    settings: Mapping[str, str | int] = field(default_factory=dict)
    tag: str = ""
    events: frozenset[int] = frozenset()
    hidden_keys: bool = False


_PARTIAL_UPDATE, _PAYLOAD, _TAGGED = 39, 40, 42
_PARTS, _PACKED = {"binlog_row_value_options": "PARTIAL_JSON"}, {"binlog_transaction_compression": "ON"}
_NOBLOB = {"binlog_row_image": "NOBLOB"}
_HIDDEN_KEYS = {
    "sql_generate_invisible_primary_key": "ON",
    "show_gipk_in_create_table_and_information_schema": "OFF",
}
OF_80 = Kind({**_PARTS, **_NOBLOB}, events=frozenset({_PARTIAL_UPDATE}))
OF_97 = Kind(
    {**_PARTS, **_PACKED, **_NOBLOB, **_HIDDEN_KEYS}, "seed", frozenset({_PAYLOAD, _TAGGED}), hidden_keys=True
)
PACKED = Kind(_PACKED, "seed", frozenset({_PAYLOAD, _TAGGED}))
TABLES = {
    "t": (("id", "v", "extra"), "id, v, extra"),
    "u": (("a", "b", "v"), "a, b, CAST(v AS CHAR)"),
    "x": (("id", "v"), "id, v"),
}


def must_be_followed(server: PrivateServer, kind: Kind, directory: Path) -> None:
    """Copied under writes, altered and followed; then equal by SELECT, by verify, and by the GTIDs of the server."""
    server.sql("CREATE DATABASE d")
    fill(server, "d")
    key = "INT NOT NULL" if kind.hidden_keys else "INT PRIMARY KEY"
    indexed = ", KEY a ((v * 2)), KEY b ((id + 1))" if isinstance(server, PrivateMySQL) else ""
    server.sql(
        f"CREATE TABLE d.x (id {key}, v INT{indexed})", "INSERT INTO d.x SELECT seq, seq FROM d.seq_1_to_900"
    )
    feed = make_feed(directory, {"a": server}, "d", chunk_rows=400)
    assert [found for found in examine(feed).findings if found.severity is Severity.ERROR] == []
    writer = writer_of(server, "d", kind.tag)
    with FeedRun(feed) as run:
        writer.start()
        for number in range(0, 900, 90):
            server.sql(f"UPDATE d.x SET v = -1 WHERE id > {number} AND id < {number + 30}")
        run.wait("all tables copied", lambda epochs: epochs[-1].cut.copied)
        server.sql(
            "FLUSH BINARY LOGS",
            "ALTER TABLE d.t ADD COLUMN extra INT",
            "UPDATE d.t SET extra = id WHERE id % 7 = 0",
        )
        run.wait_for_epochs(len(run.epochs) + 3)
        writer.stop()
        newest = run.wait_for_log({"a": server})
    for table, (names, columns) in TABLES.items():
        wanted = server.sql(f"SELECT {columns} FROM d.{table}")
        rows = read(feed, f"d.{table}").polars().to_arrow()
        found = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
        assert sorted((int(first), *rest) for first, *rest in found) == sorted(wanted), table
    mysql = isinstance(server, PrivateMySQL)
    ((executed,),) = server.sql(f"SELECT @@{'gtid_executed' if mysql else 'gtid_binlog_pos'}")
    assert newest.cut.positions["a"].gtids == (GtidSet if mysql else GtidList).parse(executed)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    assert read_shape(endpoints, TableId("d", "x")).key == (("my_row_id",) if kind.hidden_keys else ("id",))
    assert verify(feed, endpoints, Here()).differences == 0
    (first,) = run.epochs[0].cut.positions.values()
    raw = read_dump(server, first.at)
    assert kind.events <= {kind_of(event) for event in events_of(raw)}
    if mysql:
        assert kind.tag in {group["tag"] for group in decoded(raw, first.at).take_groups().to_pylist()}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here(monkeypatch)


@pytest.mark.promise("MySQL 8.0 is copied and followed")
def test_mysql_80_is_copied_under_writes_and_followed(mysql_80_build: Build, tmp_path: Path) -> None:
    with PrivateMySQL(mysql_80_build, settings=OF_80.settings) as server:
        must_be_followed(server, OF_80, tmp_path)


@pytest.mark.promise("MySQL 9.7 is copied and followed")
def test_mysql_97_is_copied_under_writes_and_followed(mysql_97_build: Build, tmp_path: Path) -> None:
    with PrivateMySQL(mysql_97_build, settings=OF_97.settings) as server:
        must_be_followed(server, OF_97, tmp_path)


def test_mysql_97_with_whole_images_that_are_compressed(mysql_97_build: Build, tmp_path: Path) -> None:
    with PrivateMySQL(mysql_97_build, settings=PACKED.settings) as server:
        must_be_followed(server, PACKED, tmp_path)


def test_mysql_80_with_its_defaults(mysql_80_build: Build, tmp_path: Path) -> None:
    with PrivateMySQL(mysql_80_build) as server:
        must_be_followed(server, Kind(), tmp_path)


def test_mariadb_11_is_copied_under_writes_and_followed(mariadb_11_build: Build, tmp_path: Path) -> None:
    with PrivateMariaDB(mariadb_11_build) as server:
        must_be_followed(server, Kind(), tmp_path)


def test_without_gtids_a_copy_is_refused_and_an_old_feed_goes_on(
    mysql_80_build: Build, tmp_path: Path
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
