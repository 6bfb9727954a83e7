"""One seed: shards with clients, a feed that dies and comes back, what breaks things, and who looks at every epoch."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catchment import world as door
from catchment.config import Feed
from catchment.feed import altered, take_up
from catchment.feed.runner import run_feed
from catchment.feed.take_up import Ports
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, Diverged, Purged
from catchment.model.order import Action, Order
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source import prove, stored_at
from catchment.state import database, orders
from catchment.state.database import Database
from catchment.state.lease import Owner
from catchment.state.store import Store
from tests.world.sim.checker import Checker, Fate
from tests.world.sim.clients import Clients
from tests.world.sim.nemesis import Nemesis, SimEngine
from tests.world.sim.scheduler import Job, Killed, Process, SimWorld
from tests.world.sim.server import SCHEMA, Server
from tests.world.sim.session import Network
from tests.world.sim.sink import SimSink, Storage
from tests.world.sim.stores import Outages, Stores
from tests.world.sim.theme import PURGED, THEMES, Theme

_PORT = 3306
# A log file as young as the position in it proves nothing, and the feed says so.
_AGE_SECONDS = 3600.0
# In so many seeds log is taken away that the feed may not have read.
# Of one log, while chunks are read: each ends a feed.
_RESETS_MAX = 4
# So many runs in turn have to end by it before somebody begins a new feed.
_REFUSALS = 2
# How often somebody orders a new copy while there is trouble.
_ORDERS = 0.3


@dataclass(frozen=True)
class Setting:
    """How many simulated seconds the feed may take to catch up once nothing breaks any more; the weight of TRUNCATE;
    what all seeds turn around, if not each around its own; how likely log is taken away that no feed has read; whether
    a server's log has another base name after each restart."""

    patience: float = 400.0
    truncates: float = 0.0
    theme: Theme | None = None
    breaks_off: float = 1 / 6
    renames: bool = False


SETTINGS = {
    "usual": Setting(),
    "truncated": Setting(truncates=12.0),
    "purged": Setting(theme=PURGED, breaks_off=1.0),
    "renamed": Setting(renames=True, breaks_off=0.0),
}


@dataclass
class Attempt:
    """A feed, from its name on: `refused` of its runs in turn ended since the log is not the one that was read."""

    feed: Feed
    storage: Storage
    checker: Checker
    refused: int = 0


@dataclass
class Simulation:
    """A world made of a seed. `run` goes through trouble, then lets the feed catch up."""

    seed: int
    directory: Path
    setting: Setting = field(default_factory=Setting)
    shards: int = 2
    runs: int = 0
    lost: int = 0
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = SimWorld(self.seed)
        self.rng = self.world.rng
        of_seed = self.rng.choice(THEMES)
        self.theme = self.setting.theme or of_seed
        servers = {}
        for number in range(self.shards):
            server = Server(f"s{number}", 101 + number, self.rng, self.world.steady_seconds)
            server.renames = self.setting.renames
            server.load({name: self._rows() for name in server.tables})
            # A log without any group, of a server that restarts in the second of its birth, proves nothing.
            server.commit((("t", 70, (70, 0)),), hold=0.0)
            servers[_PORT + number] = server
        self.world.now = _AGE_SECONDS
        self.network = Network(self.world, servers, self.rng.choice(self.theme.select_seconds))
        self.world.servers = self.network
        self.servers = list(servers.values())
        self.clients = Clients(self.world, self.network, self._needed, self.theme, self.setting.truncates)
        self.nemesis = Nemesis(self.world, self.theme)
        self.attempts: list[Attempt] = []
        self._stores = Stores()
        self._outages = Outages(self.world, self.seed)
        self._processes: list[Process] = []

    def _rows(self) -> dict[int, tuple[int | None, ...]]:
        keys = self.rng.sample(range(1, 60), self.rng.choice(self.theme.rows))
        return {key: (key, self.rng.randrange(1000)) for key in keys}

    @property
    def epochs(self) -> int:
        """Epochs that were looked at, of all feeds."""
        return sum(attempt.checker.epochs for attempt in self.attempts)

    @property
    def renewed(self) -> int:
        """Tables that took the place of an earlier copy."""
        return sum(attempt.checker.renewed for attempt in self.attempts)

    @property
    def begun_again(self) -> int:
        """Shards that began again, since their log was lost."""
        return sum(attempt.checker.begun_again for attempt in self.attempts)

    @property
    def kills(self) -> int:
        """Runs that were killed at one of their steps."""
        return self.nemesis.kills

    def __str__(self) -> str:
        alone = sum(attempt.checker.alone for attempt in self.attempts)
        return (
            f"seed {self.seed}: {self.epochs} epochs in {self.runs} runs of {len(self.attempts)} feeds, "
            f"{self.kills} killed, store lost {self.lost} times and away {self._outages.count} times, "
            f"clock set {self.nemesis.jumps} times, "
            f"{alone} epochs without a shard, {self.world.steps} steps, trace {self.world.trace:08x}"
        )

    def run(self) -> None:
        """Turn the world; raises Wrong, StoodStill, or a fault of the program."""
        stored_at.forget()
        self.world.at_step = self._at_step
        outside = Process("world")
        with door.instead(self.world), self._surroundings():
            self._begin()
            self._calm_at = self.world.now + self.rng.choice(self.theme.trouble)
            for server in self.servers:
                if self.setting.truncates:
                    server.before_select = partial(self._truncate_before_select, server)
                self.world.spawn(outside, f"clients of {server.name}", self.clients.of(server))
            self.world.spawn(outside, "clocks", self.nemesis.set_clocks)
            if self._outages.are_there:
                self.world.spawn(
                    outside, "outages", lambda: self._outages.come(lambda: self.nemesis.dangerous)
                )
            if self.rng.random() < self.setting.breaks_off:
                self.world.spawn(outside, "break off", self._break_off)
            self.world.run(self.world.spawn(outside, "operator", self._operate))

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """What is not behind a port yet: logs, small sizes, a state store in memory, and whose processes have died."""
        seen_dead = self.rng.random() < 0.7
        put: Any = Store.put_manifest
        logging.disable(logging.CRITICAL)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prove, "WORTH_BYTES", self.rng.choice(self.theme.worth))
            patch.setattr(database, "_engine", self._stores.engine)
            for kind in ("transaction", "snapshot"):
                patch.setattr(Database, kind, self._outages.around(getattr(Database, kind)))
            for caller in (
                take_up,
                altered,
            ):  # comments are for people, and have no part in what is proven
                patch.setattr(caller, "commented_now", lambda shapes, endpoints: tuple(shapes))
            patch.setattr(
                Store, "put_manifest", lambda *args: put(args[0], self._planned(args[1]), *args[2:])
            )
            patch.setattr(Owner, "this_process", lambda: Owner(self.world.process.name, 1, 1))
            patch.setattr(Owner, "is_dead", lambda owner: seen_dead and self._is_dead(owner.host))
            try:
                yield
            finally:
                logging.disable(logging.NOTSET)
                self._stores.close()

    def _planned(self, manifest: Manifest) -> Manifest:
        """Note a manifest that is about to be written to the state store of its feed."""
        for attempt in self.attempts:
            if attempt.feed.name == manifest.feed:
                attempt.checker.planned.append(manifest)
        return manifest

    def _is_dead(self, name: str) -> bool:
        return any(process.dead for process in self._processes if process.name == name)

    def _needed(self, server: Server) -> int:
        return self.attempts[-1].checker.needed(server)

    # The feed, and what happens to it.

    def _begin(self) -> None:
        """A feed under a name of its own, with a sink and a state store of its own."""
        name = f"sim{len(self.attempts)}"
        storage = Storage(self.world)
        checker = Checker(self.seed, self.servers, storage)
        storage.on_epoch = checker.check
        self.attempts.append(Attempt(self._feed(name), storage, checker))

    def _feed(self, name: str) -> Feed:
        """The feed file."""
        shards = [
            {"name": s.name, "host": "sim", "port": port, "user": "catchment", "password": "x"}
            for port, s in self.network.by_port.items()
        ]
        groups, rows = self.rng.choice(self.theme.groups), self.rng.choice(self.theme.chunk_rows)
        return Feed.model_validate(
            {
                "name": name,
                "source": {"keyspace": "sim", "shards": shards},
                "tables": ["shop.*"],
                "epoch": {
                    "interval": "1s",
                    "tick": self.rng.choice(("100ms", "500ms")),
                    "away_max": self.rng.choice(("0s", "5s", "600s")),
                },
                "copy": {"chunk_rows_max": rows, "group_time": "0s", "groups_per_shard": groups},
                "sink": {"path": self.directory / name / "lake"},
                "state": str(self.directory / f"{name}.db"),
            }
        )

    def _break_off(self) -> None:
        """Take log away at some moments."""
        server = self.rng.choice(self.servers)
        if self.rng.random() < 0.5:
            server.before_select = lambda: self.nemesis.dangerous and self.clients.write(server, hold=0.0)
            server.behind_select = lambda: self._reset_behind_select(server)
        for _ in range(self.rng.choice((1, 1, 2))):
            self.world.sleep(self.rng.random() * max(0.0, self._calm_at - self.world.now))
            if self.nemesis.dangerous:
                self.clients.break_off(server)

    def _truncate_before_select(self, server: Server) -> None:
        if self.nemesis.dangerous and self.rng.random() < 0.05:
            self.clients.truncate(server)

    def _reset_behind_select(self, server: Server) -> None:
        if self.nemesis.dangerous and len(server.histories) <= _RESETS_MAX and self.rng.random() < 0.2:
            server.reset(ends_sessions=False)

    def _operate(self) -> None:
        """Start the feed again whenever it has ended, until trouble is over and it has caught up."""
        until = self._calm_at + self.setting.patience
        self.world.sleep(self.rng.choice(self.theme.lead))
        while self.world.now < until:
            calm = self.world.now >= self._calm_at
            if calm:
                self._calm_down()
            quiet = self.clients.quiet()
            process = Process(f"run {self.runs}")
            self._processes.append(process)
            self.runs += 1
            attempt = self.attempts[-1]
            job = self._started(process, attempt, until_caught_up=calm)
            self._wait_for(job, process)
            self._must_be_right()
            if self._ended(attempt, job):
                self._begin()
                until += self.setting.patience
            elif self._copies_again(attempt, calm=calm):
                until += self.setting.patience
            elif quiet and job.error is None and not attempt.storage.epochs[-1].manifest.stale:
                break
            elif quiet and job.error is None:
                self.clients.write_once_more()
            elif calm and job.error is None and not attempt.storage.epochs[-1].manifest.stale:
                self.clients.last = True
            self.world.sleep(self.rng.choice((0.0, 0.5, 3.0)))
            if attempt.storage.epochs and self.nemesis.dangerous and self.rng.random() < 0.1:
                self._lose_the_store(attempt)
        else:
            raise AssertionError(f"the feed does not catch up; its runs ended by {self.ended[-3:]}")
        newest = self.attempts[-1].storage.epochs[-1].manifest
        for server in self.servers:
            at = newest.cut.positions[server.name].at
            # A checkpoint event may come behind the last group, when its rows have become visible.
            if not server.last_group() <= (at.number, at.offset) <= server.end() or not newest.cut.copied:
                raise AssertionError(f"caught up at {at}, but the log ends at {server.end()}")

    def _calm_down(self) -> None:
        """Trouble is over."""
        self.nemesis.dangerous = False
        self._outages.over()
        self.clients.calm = True
        for server in self.servers:
            server.kills_dumps = False
        for other in self._processes:
            self.world.kill(other)

    def _ended(self, attempt: Attempt, job: Job) -> bool:
        """Take in how a run ended. Whether the feed is over, so that a new one has to be begun."""
        if job.error is not None and not isinstance(job.error, CatchmentError | Killed):
            raise job.error
        fate = attempt.checker.fate()
        if isinstance(job.error, CatchmentError):
            self.ended.append(f"{type(job.error).__name__}: {job.error}")
        if isinstance(job.error, Diverged | Purged):
            attempt.refused += 1
            return attempt.refused >= _REFUSALS and fate is not Fate.GOES_ON
        if job.over and job.error is None and fate is Fate.MUST_END:
            raise AssertionError(
                "log was taken away that the feed had not read, and a run says that it caught up"
            )
        return False

    def _copies_again(self, attempt: Attempt, *, calm: bool) -> bool:
        """Order a new copy of tables that wait for one, since the log of a shard was lost; whether that was done."""
        newest = attempt.storage.epochs[-1].manifest if attempt.storage.epochs else None
        waiting = [one.table for one in newest.stale if one.waits and not one.asked] if newest else []
        if not waiting or not (calm or self.rng.random() < _ORDERS):
            return False
        with closing(Store.open(attempt.feed.state.get_secret_value(), attempt.feed.name)) as store:
            for table in waiting:
                orders.give(store, Order(Action.START, "operator", self.world.now_us(), table))
        return True

    def _must_be_right(self) -> None:
        for attempt in self.attempts:
            if attempt.checker.fault is not None:
                raise attempt.checker.fault

    def _lose_the_store(self, attempt: Attempt) -> None:
        """Somebody removes the state store, which the lake can replace."""
        self.lost += 1
        attempt.checker.planned.clear()
        self._stores.lose(f"{attempt.feed.name}.db")

    def _started(self, process: Process, attempt: Attempt, *, until_caught_up: bool) -> Job:
        def work() -> None:
            ports = Ports(
                lambda feed, after: SimSink(attempt.storage), lambda feed: SimEngine(self.world), tables
            )
            run_feed(attempt.feed, until_caught_up=until_caught_up, stop=self.world.event(), ports=ports)

        def tables(endpoint: Endpoint, rules: Sequence[str]) -> list[TableId]:
            return [TableId(SCHEMA, name) for name in self.network.reach(endpoint).tables]

        job = self.world.spawn(process, "feed", work)
        job.watched = True
        return job

    def _wait_for(self, job: Job, process: Process) -> None:
        """Until the run has ended, or is frozen and another one is to begin beside it."""
        until = max(self._calm_at, self.world.now + 0.1) if self.nemesis.dangerous else None
        seconds = None if until is None else until - self.world.now
        self.world.wait(lambda: job.over or process.frozen_until > self.world.now + 5, seconds)
        if not job.over and not (process.frozen_until > self.world.now):
            self.world.kill(process)
            self.world.wait(lambda: job.over, None)

    def _at_step(self, process: Process, what: str) -> None:
        if any(attempt.checker.fault for attempt in self.attempts):
            process.dead = True
        elif self.nemesis.dangerous and process.name.startswith("run"):
            self.nemesis.meet(process, what)
