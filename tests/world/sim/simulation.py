"""One seed: shards with clients, a feed that dies and comes back, what breaks things, and who looks at every epoch."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import StaticPool, create_engine, event

from catchment import world as door
from catchment.config import Feed
from catchment.engine.guarded import Guarded, receipts
from catchment.feed.runner import run_feed
from catchment.feed.take_up import Ports
from catchment.model.epoch import Manifest, epoch_text
from catchment.model.errors import CatchmentError, EngineError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source import prove, stored_at
from catchment.state import database
from catchment.state.lease import Owner
from tests.world.sim.clients import Clients
from tests.world.sim.scheduler import Job, Killed, Process, SimWorld
from tests.world.sim.server import SCHEMA, Server
from tests.world.sim.session import Network
from tests.world.sim.sink import SimSink, Storage

FEED = "sim"
_PORT = 3306
# A log file as young as the position in it proves nothing, and the feed says so.
_AGE_SECONDS = 3600.0
# Where a run may die most often: a chance per step alone would meet the moments between two writes seldom.
_KILL_THERE = 0.05
_PLACES = (
    "before a transaction of the state store",
    "behind a transaction of the state store",
    "write inline rows",
    "before a table's commit",
    "behind a table's commit",
    "before the epoch's row",
    "behind the epoch's row",
    "take a table over",
    "restore a table",
)


class Wrong(AssertionError):
    """An epoch is not what the shards held."""


@dataclass(frozen=True)
class Setting:
    """How long things break, in simulated seconds, one of these; and how long the feed may take to catch up then."""

    trouble: tuple[float, ...] = (4.0, 4.0, 8.0, 25.0)
    patience: float = 400.0


class SimEngine:
    """Runs tasks in threads of the process; now and then a task runs twice, or is lost."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """As the port has it."""
        rng = self._world.rng
        lost = rng.random() < 0.02
        twice = [task for task in tasks if rng.random() < 0.05]
        with self._world.pool(3, "task") as pool:
            found = list(pool.map(Guarded(work), [*tasks, *twice]))
        if lost:
            raise EngineError("an executor was lost")
        # Of two attempts either may be the one that counts.
        results = found[: len(tasks)]
        for task, again in zip(twice, found[len(tasks) :], strict=True):
            if rng.random() < 0.5:
                results[list(tasks).index(task)] = again
        return receipts(results)

    def check(self) -> None:
        """It has started."""

    def cancel(self) -> None:
        """Nothing to cancel: tasks end soon."""

    def rest(self) -> None:
        """Nothing to give back."""

    def close(self) -> None:
        """Nothing to end."""


@dataclass
class Simulation:
    """A world made of a seed. `run` goes through trouble, then lets the feed catch up."""

    seed: int
    directory: Path
    setting: Setting = field(default_factory=Setting)
    shards: int = 2
    epochs: int = 0
    kills: int = 0
    runs: int = 0
    lost: int = 0
    alone: int = 0
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = SimWorld(self.seed)
        self.rng = self.world.rng
        servers = {}
        for number in range(self.shards):
            server = Server(f"s{number}", 101 + number, self.rng, self.world.steady_seconds)
            server.load({name: self._rows() for name in server.tables})
            # A log without any group, of a server that restarts in the second of its birth, proves nothing.
            server.commit((("t", 70, (70, 0)),), hold=0.0)
            servers[_PORT + number] = server
        self.world.now = _AGE_SECONDS
        self.network = Network(self.world, servers)
        self.world.servers = self.network
        self.storage = Storage(self.world)
        self.clients = Clients(self.world, self.network)
        self._fault: Wrong | None = None
        self._dangerous = True
        self._kill = self.rng.choice((0.0, 0.0015, 0.004))
        self._freeze = self.rng.choice((0.0, 0.001, 0.006))
        self._place = self.rng.choice((None, *_PLACES))
        self._step_seconds = self.rng.choice((0.0, 0.0, 0.002, 0.01))
        self._processes: list[Process] = []

    def _rows(self) -> dict[int, tuple[int | None, ...]]:
        keys = self.rng.sample(range(1, 60), self.rng.choice((0, 5, 20, 45)))
        return {key: (key, self.rng.randrange(1000)) for key in keys}

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.epochs} epochs in {self.runs} runs, {self.kills} killed, store lost {self.lost} "
            f"times, {self.alone} epochs without a shard, {self.world.steps} steps, trace {self.world.trace:08x}"
        )

    def run(self) -> None:
        """Turn the world; raises Wrong, StoodStill, or a fault of the program."""
        stored_at.forget()
        self.world.at_step = self._at_step
        self.storage.on_epoch = self.check
        outside = Process("world")
        with door.instead(self.world), self._surroundings():
            for server in self.network.by_port.values():
                self.world.spawn(outside, f"clients of {server.name}", self.clients.of(server))
            self.world.run(self.world.spawn(outside, "operator", self._operate))

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """What is not behind a port yet: logs, small sizes, a state store in memory, and whose processes have died."""
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        self._engine = engine
        end, engine.dispose = engine.dispose, lambda close=True: None  # type: ignore[method-assign]
        event.listen(engine, "connect", _begins_nothing)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        seen_dead = self.rng.random() < 0.7
        logging.disable(logging.CRITICAL)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prove, "WORTH_BYTES", self.rng.choice((0, 300, prove.WORTH_BYTES)))
            patch.setattr(database, "_engine", lambda url: engine)
            patch.setattr(Owner, "this_process", lambda: Owner(self.world.process.name, 1, 1))
            patch.setattr(Owner, "is_dead", lambda owner: seen_dead and self._is_dead(owner.host))
            try:
                yield
            finally:
                logging.disable(logging.NOTSET)
                end()

    def _is_dead(self, name: str) -> bool:
        return any(process.dead for process in self._processes if process.name == name)

    # The feed, and what happens to it.

    def feed(self) -> Feed:
        """The feed file."""
        shards = [
            {"name": s.name, "host": "sim", "port": port, "user": "catchment", "password": "x"}
            for port, s in self.network.by_port.items()
        ]
        groups, rows = self.rng.randrange(1, 4), self.rng.randrange(2, 9)
        return Feed.model_validate(
            {
                "name": FEED,
                "source": {"keyspace": "sim", "shards": shards},
                "tables": ["shop.*"],
                "epoch": {
                    "interval": "1s",
                    "tick": self.rng.choice(("100ms", "500ms")),
                    "away_max": self.rng.choice(("0s", "5s", "600s")),
                },
                "copy": {"chunk_rows_max": rows, "groups_per_shard": groups},
                "sink": {"path": self.directory / "lake"},
                "state": str(self.directory / "state.db"),
            }
        )

    def _operate(self) -> None:
        """Start the feed again whenever it has ended, until trouble is over and it has caught up."""
        feed = self.feed()
        self._calm_at = self.world.now + self.rng.choice(self.setting.trouble)
        while self.world.now < self._calm_at + self.setting.patience:
            calm = self.world.now >= self._calm_at
            if calm:
                self._dangerous = False
                self.clients.calm = True
                for other in self._processes:
                    self.world.kill(other)
            quiet = self.clients.quiet()
            process = Process(f"run {self.runs}")
            self._processes.append(process)
            self.runs += 1
            job = self._started(process, feed, until_caught_up=calm)
            self._wait_for(job, process)
            if self._fault is not None:
                raise self._fault
            if isinstance(job.error, CatchmentError):
                self.ended.append(f"{type(job.error).__name__}: {job.error}")
            elif job.error is not None and not isinstance(job.error, Killed):
                raise job.error
            elif quiet and job.error is None:
                break
            elif calm and job.error is None:
                self.clients.last = True
            self.world.sleep(self.rng.choice((0.0, 0.5, 3.0)))
            if self.storage.epochs and self._dangerous and self.rng.random() < 0.1:
                self._lose_the_store()
        else:
            raise AssertionError(f"the feed does not catch up; its runs ended by {self.ended[-3:]}")
        newest = self.storage.epochs[-1].manifest
        for server in self.network.by_port.values():
            at = newest.cut[server.name].at
            if (at.number, at.offset) != server.end() or not all(p.done for p in newest.progress):
                raise AssertionError(f"caught up at {at}, but the log ends at {server.end()}")

    def _lose_the_store(self) -> None:
        """Somebody removes the state store, which the lake can replace."""
        self.lost += 1
        with self._engine.begin() as connection:
            for table in database.metadata.tables:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def _started(self, process: Process, feed: Feed, *, until_caught_up: bool) -> Job:
        def work() -> None:
            ports = Ports(
                lambda feed, after: SimSink(self.storage), lambda feed: SimEngine(self.world), tables
            )
            run_feed(feed, until_caught_up=until_caught_up, stop=self.world.event(), ports=ports)

        def tables(endpoint: Endpoint, rules: Sequence[str]) -> list[TableId]:
            return [TableId(SCHEMA, name) for name in self.network.reach(endpoint).tables]

        job = self.world.spawn(process, "feed", work)
        job.watched = True
        return job

    def _wait_for(self, job: Job, process: Process) -> None:
        """Until the run has ended, or is frozen and another one is to begin beside it."""
        until = max(self._calm_at, self.world.now + 0.1) if self._dangerous else None
        seconds = None if until is None else until - self.world.now
        self.world.wait(lambda: job.over or process.frozen_until > self.world.now + 5, seconds)
        if not job.over and not (process.frozen_until > self.world.now):
            self.world.kill(process)
            self.world.wait(lambda: job.over, None)

    def _at_step(self, process: Process, what: str) -> None:
        if self._fault is not None:
            process.dead = True
        if not self._dangerous or not process.name.startswith("run"):
            return
        self.world.now += self._step_seconds * self.rng.random()
        chance = self.rng.random()
        if chance < self._kill or (what == self._place and chance < _KILL_THERE):
            self.kills += 1
            self.world.kill(process)
        elif chance < self._kill + self._freeze:
            process.frozen_until = self.world.now + self.rng.choice((0.2, 3.0, 15.0))

    # Who looks.

    def check(self, manifest: Manifest) -> None:
        """Compare what readers see of an epoch with what the shards held at its cut."""
        self.epochs += 1
        self.alone += bool(manifest.absent)
        for server in self.network.by_port.values():
            at = manifest.cut[server.name].at
            for progress in manifest.progress:
                if progress.shard != server.name:
                    continue
                whole = server.rows_at(progress.table.name, (at.number, at.offset))
                expected = {
                    key: _trimmed(row)
                    for key, row in whole.items()
                    if progress.done
                    or (progress.copied is not None and key <= int(progress.copied[0]))
                    or (progress.born_after is not None and key > int(progress.born_after[0]))
                }
                held = self.storage.tables[progress.table].rows
                found = {key: _trimmed(row) for (shard, key), row in held.items() if shard == server.name}
                if found != expected and self._fault is None:
                    wrong = sorted(found.items() ^ expected.items())[:6]
                    self._fault = Wrong(
                        f"seed {self.seed}: epoch {epoch_text(manifest.epoch)}, {progress}, cut {at}: {wrong}"
                    )


def _begins_nothing(connection: Any, record: Any) -> None:
    """The driver would leave SELECTs outside of transactions."""
    connection.isolation_level = None


def _trimmed(row: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """A row without the columns that were added later."""
    while row and row[-1] is None:
        row = row[:-1]
    return row
