"""One seed of a server of streams: shards with writers, servers that die and come back, clients of all kinds, judges
of every vgtid of every client.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
import pytest

from catchment import world as door
from catchment.config import CopyConfig
from catchment.serve.hub import hub as hub_module
from catchment.serve.hub import turnstile
from catchment.serve.hub.ends import End, Why, end_by
from catchment.serve.hub.hub import Limits
from catchment.serve.server import service, telling
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream import epochs
from catchment.serve.stream.source import source_of
from catchment.source import stored_at
from catchment.state import database
from tests.world.sim.history import History, Place
from tests.world.sim.scheduler import Process, SimWorld
from tests.world.sim.serve.call import Call
from tests.world.sim.serve.call import End as Ended
from tests.world.sim.serve.client import StreamClient
from tests.world.sim.serve.exercises import EXERCISES
from tests.world.sim.serve.host import Host, Setting
from tests.world.sim.serve.ledger import Wrong
from tests.world.sim.serve.mishaps import Mishaps, Writers
from tests.world.sim.serve.name import Name
from tests.world.sim.serve.skew import Skew
from tests.world.sim.serve.theme import ALL_THEMES, THEMES, Theme
from tests.world.sim.serve.verdict import Judge, lacks
from tests.world.sim.serve.watch import Lines, Watch
from tests.world.sim.server import Server
from tests.world.sim.session import Network
from tests.world.sim.stores import Stores

_PORT = 3306
_AGE_SECONDS = 3600.0
_LOOK_SECONDS = 0.2
# Until all clients have what the shards hold once trouble is over: those that stand in line wait for each other.
_PATIENCE_SECONDS = 200.0
# A shard that hangs holds up who asks it.
_HANGS_SECONDS = 100.0
_LOST = (grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.DATA_LOSS)


@dataclass
class ServeSimulation:
    """A world made of a seed. `run` goes through trouble, and then lets all clients come to the ends of the logs.

    `turns_around`: name of its theme, which the seed says otherwise. `exercise`: what was tried once trouble was over.
    """

    seed: int
    directory: Path
    turns_around: str = ""
    shards: int = 0
    stops: int = 0
    faults: list[BaseException] = field(default_factory=list)
    exercise: str = ""

    def __post_init__(self) -> None:
        self.world = SimWorld(self.seed)
        self.rng = rng = self.world.rng
        of_seed = rng.choice(list(THEMES))
        self.turns_around = self.turns_around or of_seed
        self.theme = theme = ALL_THEMES[self.turns_around]
        servers = {}
        for number in range(self.shards or theme.shards):
            server = Server(f"s{number}", 101 + number, rng, self.world.steady_seconds)
            server.load({name: self._rows() for name in server.tables})
            server.commit((("t", 70, (70, 0)),), hold=0.0)
            servers[_PORT + number] = server
        self.world.now = _AGE_SECONDS
        self.world.yields = rng.choice((0.0, 0.1))
        self.network = Network(self.world, servers, rng.choice(theme.writing.select_seconds))
        self.world.servers = self.network
        self.servers = {server.name: server for server in servers.values()}
        if any(theme.lags):
            for server in self.servers.values():
                server.ahead, server.lag = rng.uniform(-3.0, 3.0), rng.choice(theme.lags)
        self.writers = Writers(
            self.world, self.network, self._needed, theme.writing, rng.choice(theme.truncates)
        )
        self.lines = Lines(
            rng.choice(theme.copying),
            rng.choice(theme.catching_up),
            rng.choice(theme.fresh),
            rng.choice(theme.most),
        )
        self.judge, self.skew = Judge(self.servers), Skew(self.servers)
        self.watch = Watch(self.world, self.lines, self.faults.append)
        self.outside = Process("world")
        self._stores = Stores()
        self.hosts = self._hosts(theme)
        self.clients = self._clients(theme)
        self.mishaps = Mishaps(self.world, self.network, theme)
        self._hung_at = 0.0

    def _rows(self) -> dict[int, tuple[int | None, ...]]:
        keys = self.rng.sample(range(1, 60), self.rng.choice(self.theme.writing.rows))
        return {key: (key, self.rng.randrange(1000)) for key in keys}

    def _hosts(self, theme: Theme) -> list[Host]:
        rng = self.rng
        shards = [
            {"name": s.name, "host": "sim", "port": port, "user": "catchment", "password": "x"}
            for port, s in self.network.by_port.items()
        ]
        setting = Setting(
            Limits(self.lines.clients, rng.choice(theme.buffers)),
            CopyConfig.model_validate({"chunk_rows_max": rng.choice(theme.chunks), "group_time": "0s"}),
            rng.choice(theme.unacknowledged),
            f"sqlite:///{self.directory}/state.db",
        )
        source = source_of({"keyspace": "sim", "shards": shards})
        return [Host(self.world, number, source, setting) for number in range(rng.choice(theme.hosts))]

    def _clients(self, theme: Theme) -> list[StreamClient]:
        more = [self.rng.choice(theme.clients) for _ in range(self.rng.choice(theme.crowd) - 1)]
        found = [StreamClient(self, number, one) for number, one in enumerate([theme.clients[0], *more])]
        names: dict[str, Name] = {}
        for client in found:
            text = client.habits.subscriber
            if text:
                most = self.hosts[0].setting.unacknowledged
                client.name = names.setdefault(text, Name(text, most))
        self.names = list(names.values())
        return found

    def __str__(self) -> str:
        told = sum(client.streams for client in self.clients)
        return (
            f"seed {self.seed} ({self.turns_around}): {self.judge.vgtids} vgtids in {told} streams of "
            f"{len(self.clients)} clients, "
            f"{sum(client.gaps for client in self.clients)} gaps, {self.watch.waited} waits in line, "
            f"{sum(name.resumed for name in self.names)} subscribers resumed, {self.mishaps.killed} killed, "
            f"{self.skew.told} judged for skew, {self.exercise}, {self.world.steps} steps, "
            f"trace {self.world.trace:08x}"
        )

    def run(self) -> None:
        """Turn the world; raises Wrong, StoodStill, or a fault of the program."""
        stored_at.forget()
        self.world.at_step = self.mishaps.at_step
        with door.instead(self.world), self._surroundings(), self.watch.looking():
            for server in self.servers.values():
                self.world.spawn(self.outside, f"writers of {server.name}", self.writers.of(server))
            self.world.run(self.world.spawn(self.outside, "operator", self._operate))

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """What is not behind a port yet: logs, small sizes, and a state store in memory."""
        rng = self.rng
        logging.disable(logging.CRITICAL)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database, "_engine", self._stores.engine)
            patch.setattr(turnstile, "COPYING", self.lines.copying)
            patch.setattr(turnstile, "CATCHING_UP", self.lines.catching_up)
            patch.setattr(turnstile.Turnstile.__init__, "__defaults__", (self.lines.fresh,))
            patch.setattr(hub_module, "_TURN_BYTES", rng.choice(self.theme.turns))
            patch.setattr(epochs, "TICK_SECONDS", rng.choice((0.1, 0.3)))
            patch.setattr(telling, "MESSAGE_BYTES", rng.choice(self.theme.messages))
            patch.setattr(service, "end_by", self._noted)
            try:
                yield
            finally:
                logging.disable(logging.NOTSET)
                self._stores.close()

    def _noted(self, fault: Exception, feed: str) -> End:
        """How a stream ends by an error. What is a fault of the program its client is not told."""
        end = end_by(fault, feed)
        if end.why is Why.FAULT:
            self.faults.append(fault)
        return end

    # What happens.

    def _operate(self) -> None:
        """Start servers and clients again whenever they have died, until trouble is over and all have caught up."""
        calm_at = self.world.now + self.rng.choice(self.theme.writing.trouble)
        if self.theme.breaks:
            self.world.spawn(self.outside, "break off", partial(self.mishaps.break_off, calm_at))
        while self.world.now < calm_at:
            self._tend()
            if self.rng.random() < 0.02:
                self.stops += 1
                self.rng.choice(self.hosts).stop()
            self.world.sleep(_LOOK_SECONDS)
        self._calm_down()
        self.until("all servers are up", lambda: all(host.up for host in self.hosts), 60.0)
        self.until_told("have what the shards hold", _PATIENCE_SECONDS)
        self.until("all have a stream", lambda: all(one.connected for one in self.healthy()), 60.0)
        if not self.mishaps.broken:  # else some learn only now that their log is lost
            self.exercise = self.rng.choice(self.theme.exercises)
            EXERCISES[self.exercise](self)
        self.writers.last = True
        for client in self.clients:
            client.pace = 0.0
        self.until("the writers have ended", self.writers.quiet, 60.0)
        # Where the last group is an XA COMMIT at the head of a file, nobody can begin until the log goes on.
        self.write()
        self.until_told("have what the shards hold at last", 60.0)
        self._end()

    def _tend(self) -> None:
        self._must_be_right()
        hangs = any(until > self.world.now for until in self.network.hangs_until.values())
        # A first cut waits for the end of XA transactions that are open.
        if hangs or any(server.prepared for server in self.servers.values()):
            self._hung_at = self.world.now
        self.watch.look(self._held_up)
        ones: list[Host | StreamClient] = [*self.hosts, *self.clients]
        for one in ones:
            if one.dead and (not self.mishaps.dangerous or self.rng.random() < 0.3):
                one.start()

    @property
    def _held_up(self) -> float:
        """For how many seconds a shard may hold up who asks it."""
        return _HANGS_SECONDS if self.world.now - self._hung_at < _HANGS_SECONDS else 0.0

    def _must_be_right(self) -> None:
        for host in self.hosts:
            self.faults += host.faults
        if self.faults:
            raise self.faults[0]

    def until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Turn the world until something is so; raises Wrong where it takes longer."""
        ends = self.world.now + seconds
        while not holds():
            self._tend()
            if self.world.now >= ends:
                raise Wrong(f"after {seconds:.0f} s not: {what}")
            self.world.sleep(_LOOK_SECONDS)
        self._must_be_right()

    def until_told(
        self,
        what: str,
        seconds: float,
        shards: Iterable[str] | None = None,
    ) -> None:
        """Turn the world until the healthy clients have what these shards hold now, all by default."""
        marks = {name: mark for name, mark in self.mark().items() if shards is None or name in shards}

        def left() -> list[StreamClient]:
            return [one for one in self.healthy() if not self.is_there(one, marks)]

        try:
            self.until(what, lambda: not left(), seconds)
        except Wrong as fault:
            raise Wrong(f"{fault}: {', '.join(f'{one} {one.ends[-1:]}' for one in left())}") from None

    def _calm_down(self) -> None:
        """Trouble is over. Of a subscriber's clients one stays."""
        self.mishaps.dangerous = False
        self.writers.calm = True
        self.network.mend()
        for server in self.servers.values():
            server.kills_dumps = False
        for process in [one.process for one in self.hosts] + [one.process for one in self.clients]:
            if process is not None:
                process.frozen_until = 0.0
        seen: set[str] = set()
        for client in self.clients:
            subscriber = client.habits.subscriber
            client.away = bool(subscriber) and subscriber in seen
            seen.add(subscriber)
        for client in self.clients[self.lines.clients :]:
            client.away = True

    def healthy(self) -> list[StreamClient]:
        """The clients that must come to the ends of the logs."""
        return [one for one in self.clients if one.healthy and not one.away]

    def mark(self) -> Mapping[str, Place]:
        """Where the logs end now."""
        return {name: server.last_group() for name, server in self.servers.items()}

    def is_there(self, client: StreamClient, marks: Mapping[str, Place]) -> bool:
        """Whether a client has all that it asked for up to these places of the logs."""
        cut, views = client.kept.cut, client.habits.wanted.views
        return (
            cut is not None
            and cut.done
            and not any(
                lacks(self.servers[name].history, cut.shards[name], mark, views)
                for name, mark in marks.items()
            )
        )

    def _end(self) -> None:
        """All clients leave, and the servers give back what they held; then these end."""
        for client in self.clients:
            client.away = True
        self.until("have left", self._given_back, 60.0)
        for host in self.hosts:
            host.stop()
        self.world.wait(lambda: all(host.dead for host in self.hosts), 30.0)
        if not all(host.dead for host in self.hosts):
            raise Wrong("a server does not end")
        self._must_be_right()

    def _given_back(self) -> bool:
        return all(
            host.hub is not None
            and not host.hub.standings()
            and not host.hub.readers
            and host.process is not None
            and not self.world.jobs_of(host.process)
            for host in self.hosts
        )

    def write(self, only: str = "") -> None:
        """A transaction on each server; `only`: of one table."""
        for server in self.servers.values():
            if only:
                key = self.rng.randrange(1, 80)
                row = (key, *(self.rng.randrange(1000) for _ in server.tables[only].columns[1:]))
                server.commit(((only, key, row),), hold=0.0)
            else:
                while not self.writers.write(server, hold=0.0):
                    pass
            server.settle_all()

    def tend(self, seconds: float) -> None:
        """Let time pass."""
        ends = self.world.now + seconds
        while self.world.now < ends:
            self._tend()
            self.world.sleep(_LOOK_SECONDS)

    def visible(self) -> dict[str, tuple[History, Place]]:
        """Where the last transaction ends that each shard shows, and in which log."""
        found = {}
        for name, server in self.servers.items():
            shown = [group.end for group in server.history.groups if group.shown]
            found[name] = server.history, max(shown, default=(0, 0))
        return found

    def must_be_an_end(self, client: StreamClient, call: Call, end: Ended) -> None:
        """Raise Wrong where a stream may not end so."""
        self._must_be_right()
        code, habits = end.code, client.habits
        fair = {
            grpc.StatusCode.UNAVAILABLE: True,
            grpc.StatusCode.RESOURCE_EXHAUSTED: self.watch.is_full(call, self._held_up),
            grpc.StatusCode.ABORTED: habits.slow == pb.SLOW_END,
            grpc.StatusCode.FAILED_PRECONDITION: end.reason == "taken_over"
            or "XA transactions are prepared and open" in end.text,
        }
        if not fair.get(code, code in _LOST and self.mishaps.broken):
            raise Wrong(f"{client}, {habits}: {code.name}: {end.text}")

    def _needed(self, server: Server) -> int:
        """The oldest log file of a server that a client may go on to read."""
        kept = [client.kept for client in self.clients]
        kept += [ledger for name in self.names for ledger in name.kept.values()]
        oldest = [one.cut.shards[server.name].oldest for one in kept if one.cut is not None]
        return min(oldest, default=1) if len(oldest) >= len(self.clients) else 1
