"""The data source under kill -9 and a network that breaks off: every row once, or an error, never fewer rows."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, create_tables, load, steady_writers
from catchment.model.errors import ConnectionLost
from tests.conftest import Shards
from tests.layers.serve.conftest import NAMES, Drive, MakeFeed
from tests.layers.serve.direct import GONE, Rows, in_order, state
from tests.layers.serve.query import running
from tests.promises.crash.test_work import held_in_a_select
from tests.world.judge import source_rows
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.proxy import Proxy, Sees, dump_begins, execute_begins

FreshSchema = Callable[..., str]
TABLE, KEY = "items", KEYS["items"]
ROWS = 2000


def wait(what: str, holds: Callable[[], bool], said: Path) -> None:
    """Wait until something holds of a query that goes on."""

    def held() -> bool:
        assert "terminated with error" not in said.read_text(), said.read_text()
        return holds()

    until(what, held, seen=said.read_text)


def files(directory: Path) -> list[Path]:
    """The files that the sink's own log names: others were left by attempts that failed."""
    found = []
    for log in (directory / "out" / "_spark_metadata").glob("[0-9]*"):
        found += [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]]
    return [Path(path.removeprefix("file://")) for path in found]


def has_cut(proxy: Proxy, cuts: int) -> bool:
    """Whether the proxy has cut so many connections."""
    return proxy.cuts >= cuts


def must_be_unbroken(rows: Rows) -> None:
    """No change twice, and every change of a row begins with what the one before left."""
    last: dict[Any, dict[str, Any] | None] = {}
    columns = [name for name in rows[0] if not name.startswith("_")]
    places = [
        (r["_commit_version"], r["_shard"], r["_order"], r["_change_type"], *(r[k] for k in KEY))
        for r in rows
    ]
    assert len(set(places)) == len(places)
    for row in in_order(rows):
        place = row["_shard"], *(row[k] for k in KEY)
        values = {name: row[name] for name in columns}
        if row["_change_type"] in GONE:
            assert last.get(place) == values, row
            last[place] = None
        elif row["_change_type"] == "insert":
            assert last.get(place) is None, row
            last[place] = values
        else:
            last[place] = values


@pytest.mark.long  # three starts of Spark
def test_a_query_whose_worker_and_driver_are_killed_delivers_every_row_once(
    spark: SparkSession, shards: Shards, fresh_schema: FreshSchema, make_feed: MakeFeed, tmp_path: Path
) -> None:
    schema = fresh_schema(*shards)
    for server in shards:
        create_tables(server, schema)
        load(server, schema, ROWS)
    feed, name = make_feed(*shards, chunk_rows=5000), f"{schema}.{TABLE}"
    with steady_writers(shards, schema, ROWS, rate=10.0):
        with held_in_a_select(shards[0]) as (proxy, inside):
            direct = feed.read_text()
            feed.write_text(direct.replace(f"port: {shards[0].port}", f"port: {proxy.port}"))
            with running(feed, name, tmp_path, "always") as query:
                wait("a SELECT is held", inside.is_set, query.said)
                workers = query.workers()
                assert workers
                for worker in workers:
                    os.kill(worker, signal.SIGKILL)
                proxy.flow()
                for cuts, sees in ((1, execute_begins()), (2, dump_begins)):
                    proxy.cut_after(200, after=sees, times=1, reset=True)
                    wait("a connection is cut", partial(has_cut, proxy, cuts), query.said)
                commits = tmp_path / "checkpoint" / "commits"
                wait("six batches are done", lambda: len(list(commits.glob("[0-9]*"))) > 6, query.said)
                assert query.process.poll() is None, query.said.read_text()
                query.kill()
        feed.write_text(direct)
    with running(feed, name, tmp_path, "now") as query:
        assert query.process.wait(PATIENCE_SECONDS) == 0, query.said.read_text()
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    must_be_unbroken(rows)
    assert state(rows, KEY) == source_rows(dict(zip(NAMES, shards, strict=True)), name, KEY)
    assert {row["_change_type"] for row in rows} > {"insert"}


@pytest.mark.parametrize("reset", [False, True])
def test_a_read_cut_anywhere_is_an_error_and_never_fewer_rows(
    shard: PrivateServer, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive, *, reset: bool
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        "CREATE TABLE kv (k INT PRIMARY KEY, v VARCHAR(200))",
        "INSERT INTO kv SELECT seq, REPEAT('x', 150) FROM seq_1_to_400",
        database=schema,
    )
    feed = make_feed(shard)
    driver = drive(feed, f"{schema}.kv")
    driver.finish()
    shard.sql("UPDATE kv SET v = REPEAT('y', 150)", database=schema)
    driver.finish()
    copied, followed = (
        (driver.offsets[at], driver.offsets[at + 1], len(rows))
        for at, rows in enumerate(driver.batches)
        if len(rows) in (400, 800)
    )
    with Proxy(shard.host, shard.port) as proxy:
        feed.write_text(feed.read_text().replace(f"port: {shard.port}", f"port: {proxy.port}"))

        def rows_or_error(piece: tuple[Any, Any, int], after: Sees, size: int) -> bool:
            """True when the read ended in an error; one that did not is whole."""
            since, until, rows = piece
            proxy.cut_after(size, after=after, reset=reset)
            try:
                assert len(driver.read(since, until, driver.planner)) == rows
            except ConnectionLost:
                return True
            # Perhaps the server was cut off while it sent what nobody reads any more.
            return False

        for piece, after in ((copied, execute_begins()), (copied, dump_begins), (followed, dump_begins)):
            failed = [
                size for size in (0, 40, 300, 5_000, 40_000, 100_000) if rows_or_error(piece, after, size)
            ]
            assert failed[:4] == [0, 40, 300, 5_000]
        proxy.cut_after(0, times=0)
        assert not rows_or_error(copied, lambda piece: False, 0)
