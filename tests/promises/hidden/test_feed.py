"""Whole feeds: under holds every epoch is exact; without a single write the copy does not wait."""

import threading
from collections.abc import Callable
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
from tests.promises.exact.steps import run_here
from tests.promises.hidden.source import TABLES, create, under_holds
from tests.world.held import held_commit
from tests.world.marks import by, marks_allowed
from tests.world.new_log_file import settled_end
from tests.world.oracle import Oracle
from tests.world.servers.chosen import chosen_server, on_mysql
from tests.world.servers.gtids import newest_gtid

NO_STRATEGY: dict[str, Any] = {}
MARK_WAITS = (
    "SELECT 1 FROM information_schema.processlist WHERE info LIKE '%marks%' AND user = 'catchment'"
    + ("" if on_mysql() else " AND time_ms > 50")
)
STRATEGIES = ("rewind",) if on_mysql() else ("rewind", "watermark", "snapshot")


class Sweeps:
    """Again and again all rows are changed, and the change is held, in a log file that it has filled.

    A commit is held until the feed has committed an epoch behind it, or waits with the commit of a mark of its own.
    `seen`: how often either was.
    """

    def __init__(self, server: PrivateServer) -> None:
        self._server = server
        self._news = threading.Condition()
        self._epochs = 0
        self._stopping = False
        self.seen = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def committed(self) -> None:
        """An epoch was committed."""
        with self._news:
            self._epochs += 1
            self._news.notify_all()

    def _run(self) -> None:
        try:
            number = 0
            while not self._stopping:
                number += 1
                commit = held_commit(self._server, f"UPDATE d.t SET v = 'sweep {number}'")
                before = self._epochs
                while not self._stopping and commit.held and not self._has_seen(before):
                    with self._news:
                        self._news.wait(0.05)
                self.seen += not self._stopping and commit.held
                commit.release()
        except BaseException as error:
            self._error = error

    def _has_seen(self, before: int) -> bool:
        # The first epoch may have been read in front of the hold.
        return self._epochs >= before + 2 or bool(self._server.sql(MARK_WAITS))

    def __enter__(self) -> "Sweeps":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._stopping = True
            self._news.notify_all()
        self._thread.join()
        if self._error is not None:
            raise self._error


def _run(
    feed: Feed, enough: Callable[[list[Manifest]], bool], committed: Callable[[], None] = lambda: None
) -> list[Manifest]:
    """Run until `enough` of the manifests committed, or caught up; all manifests. `committed` hears of each epoch."""
    manifests: list[Manifest] = []
    stop = threading.Event()

    def observe(report: Report) -> None:
        manifests.append(report.manifest)
        committed()
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


def _judged(
    server: PrivateServer, directory: Path, copying: dict[str, Any] = NO_STRATEGY
) -> tuple[list[Manifest], list[str]]:
    """The epochs of a copy while all rows are changed and held again and again, and what differs in them."""
    directory.mkdir(exist_ok=True)
    oracle = Oracle.from_rest(server.login(), TABLES)
    feed = make_feed(directory, {"a": server}, "d", chunk_rows=20, interval="50ms", copying=copying)
    with Sweeps(server) as sweeps:
        manifests = _run(feed, _copied, sweeps.committed)
    assert _copied(manifests)
    assert len(manifests) > 3
    assert sweeps.seen > 1, "nothing came while a commit was held"
    return manifests, _differences(feed, oracle, manifests)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here(monkeypatch)


@pytest.mark.promise(
    "every epoch of a copy is exact while commits wait for a replica, with every copy strategy"
)
def test_epochs_of_a_copy_under_long_holds(server: PrivateServer, tmp_path: Path, here: None) -> None:
    for strategy in STRATEGIES:
        _, differences = _judged(server, tmp_path / strategy, _copying(server, strategy))
        assert differences == [], strategy


def test_epochs_with_the_cut_itself_for_floor_differ(
    server: PrivateServer, tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.feed.loop.Plan", _with_floors_at_the_cut)
    assert _judged(server, tmp_path)[1]


@pytest.mark.mariadb("snapshots are of MariaDB alone")
def test_epochs_with_the_place_of_a_snapshot_for_floor_differ(
    server: PrivateServer, tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SnapshotAt, "floor", lambda evidence, state: evidence.at)
    assert _judged(server, tmp_path, _copying(server, "snapshot"))[1]


def test_every_epoch_under_holds_and_writers_is_exact(
    server: PrivateServer, tmp_path: Path, spark: SparkContext
) -> None:
    oracle = Oracle.from_rest(server.login(), TABLES)
    feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=20)
    with under_holds(server, 3, filling=5000) as holder:
        manifests = _run(
            feed, lambda manifests: len(manifests) >= 12 and _copied(manifests) and holder.held > 10
        )
    assert _copied(manifests)
    assert _differences(feed, oracle, manifests) == []


def _copying(server: PrivateServer, strategy: str) -> dict[str, Any]:
    if strategy == "rewind":
        return {}
    server.sql("CREATE DATABASE IF NOT EXISTS m")
    return by(strategy, marks_allowed([server], "m"))


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


BEFORE = [_nothing, _flushed, _written, _written_before_ddl, _written_before_xa]


@pytest.mark.promise("an idle source is copied without delay and without a write to it")
def test_without_a_write_the_copy_does_not_wait(tmp_path: Path, here: None) -> None:
    with chosen_server() as server:
        for before in [*BEFORE, *([] if on_mysql() else [_written_before_a_checkpoint])]:
            create(server)
            before(server)
            _must_be_copied_at_once(server, tmp_path / before.__name__, before.__name__)
            server.sql("DROP DATABASE d", "DROP DATABASE IF EXISTS o")


def _must_be_copied_at_once(server: PrivateServer, directory: Path, case: str) -> None:
    directory.mkdir()
    written = newest_gtid(server)
    made = make_feed(directory, {"a": server}, "d", chunk_rows=1000)
    feed = made.model_copy(update={"copying": made.copying.model_copy(update={"log_budget": LOG_BUDGET_MIN})})
    manifests = _run(feed, _copied)
    assert _copied(manifests), case
    assert len(manifests) <= 2, case
    assert newest_gtid(server) == written, f"{case}: a feed writes nothing"
    ((rows,),) = server.sql("SELECT COUNT(*) FROM d.t")
    assert read(feed.sink.path, "d.t").arrow().num_rows == rows, case
