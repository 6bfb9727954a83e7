"""What an epoch costs the driver when little of much has changed, and how long many shards take to begin.

Real runs, with state store and lake on the disk of temporary files. The servers alone are simulated, in this process
and without a network: a login takes 3 ms and a statement half a one, as in a local network, and what they spend of the
processor is not counted. Run: `python -m bench --only driver`.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from tests.world.sim.calm import Beside, Calm, row_of, server_of
from tests.world.sim.server import SCHEMA
from tests.world.sim.session import Network, SimSession, SimSocket

from bench.feeds import Ran
from bench.figures import Figure, figure
from catchment import world
from catchment.config import Feed, load
from catchment.engine.guarded import Guarded, receipts
from catchment.engine.near import Near
from catchment.feed.runner import run_feed
from catchment.feed.take_up import Ports
from catchment.model.epoch import Manifest
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.sink.delta.upkeep.lake import lake_of
from catchment.source.catalog import list_tables
from catchment.source.session import connect
from catchment.watch.report import Observer, Report

TABLES, COLUMNS, SHARDS = 2_000, 20, 4
FEW_TABLES = 20
WARM, EPOCHS = 3, 30
EPOCH_MS = 25.0
MANY_SHARDS = 1_000
TABLES_OF_MANY = 10
START_SECONDS = 10.0
LOGIN_SECONDS, STATEMENT_SECONDS = 0.003, 0.0005
_WORKERS = 8


def run(runs: int = 3) -> list[Figure]:
    """CPU milliseconds of an epoch in which one table changes on every shard, and seconds of a start."""
    found = [(_epoch_ms(TABLES), _epoch_ms(FEW_TABLES)) for _ in range(runs)]
    many, few = [[one[place] for one in found] for place in (0, 1)]
    name = f"an epoch of {TABLES} tables x {COLUMNS} columns x {SHARDS} shards, one table changing"
    first, _, later = _starts(rows=0)
    _, plan, _ = _starts(rows=1)
    shards = f"{MANY_SHARDS} shards x {TABLES_OF_MANY} tables"
    return [
        figure(name, many, "CPU ms", "agreed", [EPOCH_MS] * runs, 1),
        figure(name, many, "CPU ms", f"{FEW_TABLES} tables", few, 1),
        figure(f"{shards}: the start of a new feed", [first], "s", "agreed", [START_SECONDS], 1),
        figure(f"{shards}: a later start", [later], "s", "agreed", [START_SECONDS], 1),
        figure(f"{shards}: the plan of an epoch that copies rows of all", [plan], "s", "agreed", [1.0], 2),
    ]


class _Servers(Network):
    """All shards. `spent`: seconds of the processor that they took, which are not the driver's."""

    def __init__(self, tables: int, shards: int, rows: int) -> None:
        servers = {number: server_of(number, tables, COLUMNS, rows) for number in range(1, shards + 1)}
        super().__init__(Calm(), servers, 0.0)  # type: ignore[arg-type]
        self.locks = {number: threading.RLock() for number in servers}
        self.spent = 0.0

    def login(self, endpoint: Endpoint, *, snapshots: bool, read_seconds: int) -> "_Session":
        """As the network's."""
        time.sleep(LOGIN_SECONDS)
        return _Session(self, endpoint, read_seconds)

    @contextmanager
    def serving(self, endpoint: Endpoint) -> Iterator[None]:
        """The time of a server, for one session at a time."""
        began = time.thread_time()
        with self.locks[endpoint.port]:
            try:
                yield
            finally:
                self.spent += time.thread_time() - began

    def change(self, key: int) -> None:
        """One row of one table, on every shard."""
        for number, server in self.by_port.items():
            with self.locks[number]:
                server.commit((("t0000", key, row_of(key, COLUMNS)),), hold=0.0)


class _Session(SimSession):
    """As the simulator's, at the pace of a local network."""

    def __init__(self, network: _Servers, endpoint: Endpoint, read_seconds: int) -> None:
        super().__init__(network, endpoint, read_seconds)
        self._serving = partial(network.serving, endpoint)
        self._socket = _Socket(self, self._serving)

    def rows(self, sql: str, args: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The answer, after a moment."""
        time.sleep(STATEMENT_SECONDS)
        with self._serving():
            return super().rows(sql, args)


class _Socket(SimSocket):
    def __init__(self, session: SimSession, serving: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(session)
        self._serving = serving

    def sendall(self, data: bytes) -> None:
        with self._serving():
            super().sendall(data)

    def recv(self, size: int) -> bytes:
        with self._serving():
            return super().recv(size)


class _Threads:
    """An engine in this process, since no other one reaches the servers."""

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        with world.pool(_WORKERS, "task") as pool:
            return receipts(list(pool.map(Guarded(work), tasks)))

    def check(self) -> None: ...
    def cancel(self) -> None: ...
    def rest(self) -> None: ...
    def close(self) -> None: ...


class _Run:
    """A new feed that runs in a thread."""

    def __init__(self, servers: _Servers) -> None:
        self.servers = servers
        self.ran = Ran()
        self.stop = threading.Event()
        self.failed: BaseException | None = None
        self._began = 0.0
        self._committed = threading.Condition()

    def hear(self, report: Report) -> None:
        """An epoch is committed."""
        with self._committed:
            self.ran.epochs.append((time.perf_counter() - self.ran.began, report))
            self._committed.notify_all()

    def began(self, standing: Manifest) -> None:
        """The start is over."""
        with self._committed:
            self._began = time.perf_counter() - self.ran.began
            self._committed.notify_all()

    def await_begin(self) -> float:
        """Wait for the end of the start; the seconds that it took. Raises what ended the run."""
        with self._committed:
            self._committed.wait_for(lambda: self.failed or self._began)
        if self.failed:
            raise self.failed
        return self._began

    def await_epochs(self, number: int) -> None:
        """Wait for so many. Raises what ended the run."""
        with self._committed:
            self._committed.wait_for(lambda: self.failed or len(self.ran.epochs) >= number)
        if self.failed:
            raise self.failed

    def work(self, feed: Feed) -> None:
        """Run it."""
        self.ran.began = time.perf_counter()
        ports = Ports(lake_of, lambda feed: Near(_Threads()), self._taken)
        try:
            run_feed(
                feed,
                until_caught_up=False,
                observer=Observer(began=self.began, committed=self.hear),
                stop=self.stop,
                ports=ports,
            )
        except BaseException as error:
            with self._committed:
                self.failed = error
                self._committed.notify_all()

    def _taken(self, endpoint: Endpoint, rules: Sequence[str]) -> list[TableId]:
        """In one session, as the doctor does."""
        with connect(endpoint) as session:
            return list(list_tables(session, lambda table: True))


@contextmanager
def _running(servers: _Servers, directory: Path) -> Iterator[_Run]:
    """The feed of a directory, which runs in a thread until the block ends."""
    run = _Run(servers)
    with world.instead(Beside(servers)):
        thread = threading.Thread(target=run.work, args=(_feed(directory, servers),), name="feed")
        thread.start()
        try:
            yield run
        finally:
            run.stop.set()
            thread.join()


def _feed(directory: Path, servers: _Servers) -> Feed:
    shards = [
        {"name": one.name, "host": "sim", "port": number, "user": "catchment", "password": "x"}
        for number, one in servers.by_port.items()
    ]
    file = directory / "feed.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "bench",
                "source": {"keyspace": "sim", "shards": shards},
                "tables": [f"{SCHEMA}.*"],
                "epoch": {"interval": "100ms", "tick": "100ms"},
                "sink": {"path": str(directory / "lake"), "settle": "1h"},
                "state": str(directory / "state.db"),
            }
        )
    )
    return load(file)


def _epoch_ms(tables: int) -> float:
    """CPU of an epoch, without that of the servers."""
    servers = _Servers(tables, SHARDS, rows=0)
    with _directory() as directory, _running(servers, Path(directory)) as run:
        for number in range(1, WARM + 1):
            servers.change(number)
            run.await_epochs(number)
        before, served = time.process_time(), servers.spent
        for number in range(WARM + 1, WARM + EPOCHS + 1):
            servers.change(number)
            run.await_epochs(number)
        spent = time.process_time() - before - (servers.spent - served)
    return 1000 * spent / EPOCHS


def _starts(rows: int) -> tuple[float, float, float]:
    """Seconds of the start of a new feed, of the plan of its first epoch, and of its next start."""
    servers = _Servers(TABLES_OF_MANY, MANY_SHARDS, rows)
    with _directory() as directory:
        with _running(servers, Path(directory)) as run:
            first = run.await_begin()
            if not rows:
                servers.change(1)
            run.await_epochs(1)
            _, report = run.ran.epochs[0]
        with _running(servers, Path(directory)) as run:
            return first, report.phases["plan"], run.await_begin()


def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="catchment-bench-")
