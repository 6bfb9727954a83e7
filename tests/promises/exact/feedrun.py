"""A feed that runs in a thread while a test writes to its shards; settles and readers that run beside it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import yaml

from catchment.api.read import read
from catchment.config import Feed, load
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest
from catchment.model.location import Location
from catchment.model.position import LogOffset, reaches
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Injector, no_fault
from catchment.watch.report import Observer, Report
from tests.world.patience import PATIENCE_SECONDS
from tests.world.settled import settled


def make_feed(
    directory: Path,
    servers: Mapping[str, PrivateServer],
    schema: str,
    *,
    chunk_rows: int,
    interval: str = "300ms",
    lake: Location | None = None,
    copying: Mapping[str, Any] = MappingProxyType({}),
    engine: str = "spark",
) -> Feed:
    """A feed of all tables of `schema`; `chunk_rows` in a chunk at most. `lake`: without one, `directory/lake`.
    `copying`: what `copy` says besides."""
    shards = [
        {"name": name, "host": s.host, "port": s.port, "user": "catchment", "password": s.password}
        for name, s in servers.items()
    ]
    described = {
        "name": "exact",
        "source": {"keyspace": "shop", "shards": shards},
        "tables": [f"{schema}.*"],
        "sink": {"path": str(lake or directory / "lake"), "changes": True},
        "epoch": {"interval": interval, "tick": "50ms"},
        "copy": {"chunk_rows_max": chunk_rows, "group_time": "0s", **copying},
        "engine": engine,
    }
    file = directory / "feed.yaml"
    file.write_text(yaml.safe_dump(described))
    return load(file)


class Thread(threading.Thread):
    """Calls `step` until stopped; `stop` raises the error that ended it."""

    def __init__(self, name: str, step: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step
        self.stopping = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """The thread's work; call `start`."""
        try:
            while not self.stopping.is_set():
                self._step()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """End after the running step."""
        self.stopping.set()
        if self.ident is not None:
            self.join()
        if self.error is not None:
            raise self.error


class FeedRun:
    """A running feed. Use as a context manager: it starts the feed, and stops it at the end.

    `fault` is called at the places that `catchment.state.faults` names.
    """

    def __init__(self, feed: Feed, fault: Injector = no_fault, leave: Collection[TableId] = ()) -> None:
        self.feed = feed
        self._fault = fault
        self._leave = leave
        self.epochs: list[Manifest] = []
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._thread = Thread("feed", self._run)

    def wait(self, what: str, holds: Callable[[list[Manifest]], bool]) -> Manifest:
        """Wait until `holds` of the committed epochs; the newest one. Raises what ended the feed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._news:
            while not (self.epochs and holds(self.epochs)):
                if self._thread.error is not None:
                    raise self._thread.error
                assert time.monotonic() < deadline, f"{len(self.epochs)} epochs and still not: {what}"
                self._news.wait(0.2)
            return self.epochs[-1]

    def wait_for_epochs(self, count: int) -> None:
        """Wait until so many epochs are committed."""
        self.wait(f"{count} epochs", lambda epochs: len(epochs) >= count)

    def wait_for_log(self, servers: Mapping[str, PrivateServer]) -> Manifest:
        """Wait for an epoch that holds all that is in the log; nobody may write meanwhile."""
        ends = {name: LogOffset(*server.log_end()) for name, server in servers.items()}
        return self.wait(
            f"an epoch up to {ends}",
            lambda epochs: all(reaches(epochs[-1].cut.positions[name].at, end) for name, end in ends.items()),
        )

    def _run(self) -> None:
        run_feed(
            self.feed,
            until_caught_up=False,
            observer=Observer(committed=self._observe),
            stop=self._stop,
            fault=self._fault,
            leave=self._leave,
        )
        assert self._stop.is_set(), "the feed ended by itself"
        self._thread.stopping.set()

    def _observe(self, report: Report) -> None:
        with self._news:
            self.epochs.append(report.manifest)
            self._news.notify_all()

    def __enter__(self) -> "FeedRun":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.stop()


@dataclass(frozen=True)
class Reading:
    """What a reader got of a table at the epoch that was the newest then."""

    engine: str
    epoch: int
    table: str
    rows: pa.Table


@dataclass
class Beside:
    """Settles of every table, and two readers of all tables at the newest epoch, beside a running feed.

    `pause_seconds`: between two rounds over all tables. Settles and readers that never rest take the processor from the
    feed.
    """

    feed: Feed
    pause_seconds: float = 2.0
    readings: list[Reading] = field(default_factory=list)
    settles: int = 0

    def __post_init__(self) -> None:
        self._epochs = EpochsTable(self.feed.sink.path, self.feed.name)
        self._threads = [
            Thread("settle", self._settle),
            Thread("duckdb", lambda: self._read("duckdb", lambda state: state.duckdb().to_arrow_table())),
            Thread("polars", lambda: self._read("polars", lambda state: state.polars().to_arrow())),
        ]

    def _settle(self) -> None:
        time.sleep(self.pause_seconds)
        self.settles += len(settled(self.feed).changes)

    def _read(self, engine: str, rows_of: Callable[[Any], pa.Table]) -> None:
        time.sleep(self.pause_seconds)
        newest = EpochsTable(self.feed.sink.path, self.feed.name).newest()
        if newest is None:
            return
        for shape in newest.manifest.shapes:
            state = read(self.feed, shape.table, newest.commit.epoch)
            self.readings.append(Reading(engine, newest.commit.epoch, str(shape.table), rows_of(state)))

    def __enter__(self) -> "Beside":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.stop()
