"""Whole feeds: under holds every epoch is exact; without a single write the copy does not wait."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.config import Feed
from catchment.config.copying import LOG_BUDGET_MIN
from catchment.demo.server import PrivateServer
from catchment.epoch.evidence import SnapshotAt
from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest, Plan
from catchment.model.shard import Copy
from catchment.watch.report import Observer, Report
from tests.promises.exact.feedrun import make_feed
from tests.promises.hidden.source import TABLES, create, settled_end, under_holds
from tests.world.held import held_commit, release
from tests.world.marks import by, marks_allowed
from tests.world.oracle import Oracle
from tests.world.servers.chosen import chosen_server
from tests.world.servers.gtids import newest_gtid


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with chosen_server(settings={"max_binlog_size": 4096}) as server:
        create(server)
        yield server
        release(server)


@contextmanager
def _sweeps(server: PrivateServer) -> Iterator[None]:
    """Again and again all rows are changed, and the change is held, in a log file that it has filled."""
    stopping = threading.Event()

    def sweep() -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            commit = held_commit(server, f"UPDATE d.t SET v = 'sweep {number}'")
            stopping.wait(0.6)
            commit.release()
            stopping.wait(0.05)

    thread = threading.Thread(target=sweep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _run(feed: Feed, enough: Callable[[list[Manifest]], bool]) -> list[Manifest]:
    """Run until `enough` of the manifests committed, or caught up; all manifests."""
    manifests: list[Manifest] = []
    stop = threading.Event()

    def observe(report: Report) -> None:
        manifests.append(report.manifest)
        if enough(manifests):
            stop.set()

    run_feed(feed, until_caught_up=True, observer=Observer(committed=observe), stop=stop)
    return manifests


def _in_lake(copy: Copy, key: int) -> bool:
    copied, born_after = copy.copied, copy.born_after
    return (
        copy.done
        or (copied is not None and key <= int(copied[0]))
        or (born_after is not None and key > int(born_after[0]))
    )


def _differences(feed: Feed, oracle: Oracle, manifests: list[Manifest]) -> list[str]:
    """Epochs and tables of the lake that differ from the source at the epoch's cut."""
    found = []
    for manifest in manifests:
        at = manifest.cut.positions["a"].at
        state = oracle.advance(at.file, at.offset)
        for copy in manifest.cut.copies:
            table = str(copy.table)
            wanted = {key[0]: row for key, row in state[table].items() if _in_lake(copy, key[0])}
            rows = read(feed.sink.path, table, epoch=manifest.epoch).arrow().to_pylist()
            (name,) = TABLES[table]
            have: dict[int, dict[str, Any]] = {
                row[name]: {column: row[column] for column in row if not column.startswith("_")}
                for row in rows
            }
            if len(have) != len(rows) or have != wanted:
                found.append(f"{table} at epoch {manifest.epoch}, {at}")
    return found


def _copied(manifests: list[Manifest]) -> bool:
    return manifests[-1].cut.copied


def test_every_epoch_under_holds_and_writers_is_exact(
    server: PrivateServer, tmp_path: Path, spark: SparkContext
) -> None:
    oracle = Oracle.from_rest(server.login(), TABLES)
    feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=20)
    with under_holds(server, 3, filling=5000) as holder:
        manifests = _run(feed, lambda manifests: len(manifests) >= 15 and _copied(manifests))
    assert _copied(manifests)
    assert holder.held > 10
    assert _differences(feed, oracle, manifests) == []


@pytest.mark.parametrize(
    "careless",
    [
        pytest.param(False, id="floor sealed"),
        pytest.param(True, id="floor at the cut", marks=pytest.mark.wide),
    ],
)
def test_epochs_of_a_copy_under_long_holds(
    server: PrivateServer,
    tmp_path: Path,
    spark: SparkContext,
    monkeypatch: pytest.MonkeyPatch,
    careless: bool,
) -> None:
    """Exact with sealed floors; not so, as the proof that this can fail, with the cut itself for floor."""
    if careless:
        monkeypatch.setattr("catchment.feed.loop.Plan", _with_floors_at_the_cut)
    oracle = Oracle.from_rest(server.login(), TABLES)
    feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=20)
    with _sweeps(server):
        manifests = _run(feed, _copied)
    differences = _differences(feed, oracle, manifests)
    assert len(manifests) > 3
    assert bool(differences) == careless, differences


@pytest.mark.mariadb("marks and snapshots are of MariaDB alone")
@pytest.mark.parametrize(
    ("strategy", "careless"),
    [
        pytest.param("watermark", False, id="marks"),
        pytest.param("snapshot", False, id="snapshots"),
        pytest.param("snapshot", True, id="floor at the snapshot", marks=pytest.mark.wide),
    ],
)
def test_epochs_of_a_staged_copy_under_long_holds(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str, careless: bool
) -> None:
    """Exact; not so, as the proof that this can fail, with the place of a snapshot for floor."""
    if careless:
        monkeypatch.setattr(SnapshotAt, "floor", lambda evidence, state: evidence.at)
    server.sql("CREATE DATABASE m")
    copying = by(strategy, marks_allowed([server], "m"))
    oracle = Oracle.from_rest(server.login(), TABLES)
    feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=20, copying=copying, engine="local")
    with _sweeps(server):
        manifests = _run(feed, _copied)
    differences = _differences(feed, oracle, manifests)
    assert _copied(manifests)
    assert len(manifests) > 3
    assert bool(differences) == careless, differences


def _with_floors_at_the_cut(*record: Any) -> Plan:
    plan = Plan(*record)
    return Plan(plan.epoch, plan.previous, plan.tick, plan.tick.offsets, plan.chunks)


def _nothing(server: PrivateServer) -> None:
    """The log ends with what `create` wrote."""


def _flushed(server: PrivateServer) -> None:
    server.sql("FLUSH BINARY LOGS")


def _written(server: PrivateServer) -> None:
    """More log than the feed may read behind a floor."""
    server.sql("UPDATE d.t SET v = REPEAT('y', 2000)")


def _written_before_ddl(server: PrivateServer) -> None:
    _written(server)
    server.sql("ANALYZE TABLE d.t")


def _written_before_xa(server: PrivateServer) -> None:
    _written(server)
    xa = ("XA START 'x'", "INSERT INTO o.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    server.sql("CREATE DATABASE o", "CREATE TABLE o.t (id INT PRIMARY KEY)", *xa)


def _written_before_a_checkpoint(server: PrivateServer) -> None:
    """The file's own checkpoint event comes after all that was written."""
    server.sql("FLUSH BINARY LOGS")
    _written(server)
    settled_end(server, server.log_end()[0])


@pytest.mark.parametrize(
    "before",
    [
        _nothing,
        _flushed,
        _written,
        _written_before_ddl,
        _written_before_xa,
        pytest.param(_written_before_a_checkpoint, marks=pytest.mark.mariadb("checkpoint events")),
    ],
)
def test_without_a_write_the_copy_does_not_wait(
    spark: SparkContext, tmp_path: Path, before: Callable[[PrivateServer], None]
) -> None:
    with chosen_server() as server:
        create(server)
        before(server)
        written = newest_gtid(server)
        made = make_feed(tmp_path, {"a": server}, "d", chunk_rows=1000)
        feed = made.model_copy(
            update={"copying": made.copying.model_copy(update={"log_budget": LOG_BUDGET_MIN})}
        )
        manifests = _run(feed, _copied)
        assert _copied(manifests)
        assert len(manifests) <= 2
        assert newest_gtid(server) == written, "a feed writes nothing"
        ((rows,),) = server.sql("SELECT COUNT(*) FROM d.t")
        assert read(feed.sink.path, "d.t").arrow().num_rows == rows
