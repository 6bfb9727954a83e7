"""A client of streams as a simulated process: it keeps what it has with its vgtid, dies, and goes on from there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc

from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream.events import Event, Gap, Heartbeat, VGtid
from tests.world.sim.history import History, Place
from tests.world.sim.scheduler import Process
from tests.world.sim.serve.call import Call, End
from tests.world.sim.serve.cut import read
from tests.world.sim.serve.ledger import Ledger, Wrong
from tests.world.sim.serve.name import Given, Name
from tests.world.sim.serve.wanted import Wanted
from tests.world.streamed import Reading

if TYPE_CHECKING:
    from tests.world.sim.serve.simulation import ServeSimulation

CURRENT: Final = "current"
_NEVER = float("inf")
_CAPACITY = (1, 2, 6)


@dataclass(frozen=True)
class Habits:
    """What a client asks for, and how it behaves. `pace`: seconds between two messages that it takes; `inf`: it takes
    the first one alone. `leaves`: how likely it leaves at a vgtid; `noticed`: seconds after which a server notices.
    `acknowledges`: of so many vgtids one. `waits`: it leaves where nothing comes for so many seconds.
    """

    wanted: Wanted
    begins: str = ""
    slow: int = pb.SLOW_REREAD
    subscriber: str = ""
    aligned: bool = False
    heartbeat: float = 0.0
    pace: float = 0.0
    leaves: float = 0.0
    noticed: float = 0.0
    acknowledges: int = 1
    waits: float = _NEVER


class StreamClient:
    """`kept`: what it has on disk, with the last vgtid. `connected`: its stream has told
    where it begins. `away`: it has no stream until that is taken back. `pace`: as
    its habits have it, until it recovers."""

    def __init__(self, sim: "ServeSimulation", number: int, habits: Habits) -> None:
        self.sim, self.world, self.rng = sim, sim.world, sim.world.rng
        self.number, self.habits = number, habits
        self.kept = Ledger()
        self.name: Name | None = None
        self.process: Process | None = None
        self.runs = self.streams = self.gaps = self.lost = 0
        self.away = self.connected = False
        self.pace = habits.pace
        self.heard_at = self.told_at = 0.0
        self.skewed: list[tuple[str, int, float]] = []
        self.ends: list[str] = []

    def __str__(self) -> str:
        return f"client {self.number}"

    @property
    def healthy(self) -> bool:
        """Whether it takes what comes."""
        return self.pace == 0.0

    @property
    def dead(self) -> bool:
        """Whether it has to be started."""
        return self.process is None or self.process.dead

    def start(self) -> None:
        """Begin a process, with what is on disk."""
        self.process = Process(f"client {self.number}.{self.runs}")
        self.runs += 1
        self.world.spawn(self.process, "client", self._live)

    def _live(self) -> None:
        while True:
            self.world.wait(lambda: not self.away, None)
            host = self.rng.choice(self.sim.hosts)
            visible = self.sim.visible()
            call = host.call("Stream", self._request(), str(self), self.rng.choice(_CAPACITY))
            if call is not None:
                self.streams += 1
                self.sim.watch.called(self, call)
                try:
                    _Following(self, call, visible).run()
                finally:
                    call.leave(self.habits.noticed, self.sim.outside)
            self.world.sleep(self.rng.choice((0.1, 0.5, 2.0)))

    @property
    def _heartbeat(self) -> float:
        """A subscriber may ask for others each time."""
        return float(self.streams % 2) if self.habits.subscriber else self.habits.heartbeat

    def _request(self) -> pb.StreamRequest:
        habits = self.habits
        return pb.StreamRequest(
            feed="shop",
            vgtid=self.kept.text or habits.begins,
            rules=habits.wanted.rules,
            flags=pb.Flags(minimize_skew=habits.aligned, heartbeat_interval=self._heartbeat),
            slow=habits.slow,  # type: ignore[arg-type]
            subscriber=habits.subscriber,
        )


class _Left(Exception):
    """The client ends its stream by itself."""


class _Following:
    """One stream of a client. `visible`: where the last transactions ended that were visible when it was asked for."""

    def __init__(self, client: StreamClient, call: Call, visible: dict[str, tuple[History, Place]]) -> None:
        self.client, self.call = client, call
        self.sim, self.world, self.rng, self.habits = client.sim, client.world, client.rng, client.habits
        self.visible = visible
        self.ledger: Ledger | None = None
        self.given: Given | None = None
        self.reading = Reading()
        self.events: list[Event] = []
        self.nbytes = self.vgtids = 0
        self.heard_at = self.world.now

    def run(self) -> None:
        """Take messages until the stream ends, or the client leaves."""
        try:
            while not self.client.away:
                self._take()
        except _Left:
            pass
        finally:
            self.client.connected = False
            if self.given is not None:
                self.given.over = True

    def _take(self) -> None:
        message = self.call.take(1.0)
        if message is None:
            if self.call.end is not None:
                self._ended(self.call.end)
            if self.sim.mishaps.dangerous and self.world.now - self.heard_at > self.habits.waits:
                raise _Left
            self._acknowledge(all_of_it=True)
            return
        self.world.step("take a message")
        self.nbytes += len(message.data)
        self.heard_at = self.client.heard_at = self.world.now
        for event in self._events(message.data):
            if isinstance(event, VGtid):
                self._settle(event.text, message.made_at)
            elif isinstance(event, Gap):
                self._gap(event)
            elif not isinstance(event, Heartbeat):
                self.events.append(event)
        self._pause()

    def _events(self, data: bytes) -> Sequence[Event]:
        try:
            return list(self.reading.events(pb.EventBatch.FromString(data)))
        except (KeyError, AssertionError) as fault:
            raise Wrong(f"{self.client}: rows whose columns were not told: {fault!r}") from fault

    def _pause(self) -> None:
        client = self.client
        if client.pace == _NEVER:
            self.world.wait(lambda: client.away or not client.pace or self.call.end is not None, None)
        elif client.pace:
            self.world.sleep(self.rng.expovariate(1 / client.pace))

    def _settle(self, text: str, made_at: float) -> None:
        """All has come up to a vgtid."""
        views, judge = self.habits.wanted.views, self.sim.judge
        events, self.events = self.events, []
        try:
            if self.ledger is None and not self._resumes(text, made_at):
                self.ledger = Ledger()
                self.ledger.take(events)
                judge.begin(self.ledger, text, views)
                self._must_begin_well()
            else:
                assert self.ledger is not None
                since = self.ledger.cut.places if self.ledger.cut is not None else {}
                self.ledger, told = judge.follow(self.ledger, events, text, views)
                if self.habits.aligned:
                    self.sim.skew.take(self.ledger, told, since)
            if self.given is not None:
                self.given.take(text, self.nbytes, made_at)
        except Wrong as fault:
            raise Wrong(f"{self.client} at {self.call.name}: {fault}") from fault
        self.vgtids, self.nbytes = self.vgtids + 1, 0
        self.client.connected = True
        self.client.told_at = self.world.now
        self._keep()
        self._acknowledge()
        if self.sim.mishaps.dangerous and self.rng.random() < self.habits.leaves:
            raise _Left

    def _resumes(self, text: str, made_at: float) -> bool:
        """Whether the stream goes on where the client stood; its rows are those that it kept then."""
        name, kept = self.client.name, self.client.kept
        if name is not None:
            self.given, ledger = name.begins(self.call, text, made_at)
            self.ledger = ledger
        elif kept.cut is not None:
            if not self.sim.judge.goes_on(kept.cut, read(text)):
                raise Wrong(f"it goes on at {read(text).places}, and stood at {kept.cut.places}")
            self.ledger = kept.copy()
        return self.ledger is not None

    def _must_begin_well(self) -> None:
        """Nothing comes before the first vgtid: either no row is copied, or the client begins at this moment."""
        assert self.ledger is not None
        assert self.ledger.cut is not None
        if self.habits.begins != CURRENT:
            if any(self.ledger.rows.values()):
                raise Wrong("rows are copied, and were not told")
            return
        for shard, (log, place) in self.visible.items():
            if self.ledger.logs[shard] == [log] and self.ledger.cut.places[shard] < place:
                raise Wrong(f"{shard} begins at {self.ledger.cut.places[shard]}, and {place} was visible")

    def _gap(self, gap: Gap) -> None:
        """Something is left out: the client goes on with the rows of where it ends, or asks for what is missing."""
        client = self.client
        if self.habits.slow != pb.SLOW_GAP or self.ledger is None:
            raise Wrong(f"{client}: a gap that it did not ask for")
        # It names a place up to which nothing was to be told since the last vgtid.
        events, self.events = self.events, []
        views = self.habits.wanted.views
        self.ledger, _ = self.sim.judge.follow(self.ledger, events, gap.since, views)
        client.gaps += 1
        self._keep()
        if self.rng.random() < 0.5:
            raise _Left
        before = self.ledger.cut
        self.ledger = Ledger()
        self.sim.judge.begin(self.ledger, gap.until, views)
        assert before is not None
        assert self.ledger.cut is not None
        if any(self.ledger.cut.places[shard] < place for shard, place in before.places.items()):
            raise Wrong(f"{client}: a gap that goes back to {self.ledger.cut.places}")
        self._keep()

    def _keep(self) -> None:
        assert self.ledger is not None
        self.world.step("keep a vgtid")
        kept = self.ledger.copy()
        self.client.kept = kept
        if self.client.name is not None:
            self.client.name.kept[kept.text] = kept
        self.world.step("behind keeping a vgtid")

    def _acknowledge(self, *, all_of_it: bool = False) -> None:
        """Tell a server what is kept: now and then, and all of it once nothing comes."""
        name = self.client.name
        if name is None or self.ledger is None or self.ledger.text == name.confirmed:
            return
        if not all_of_it and self.rng.randrange(self.habits.acknowledges):
            return
        text = self.ledger.text
        request = pb.AcknowledgeRequest(feed="shop", subscriber=name.text, vgtid=text)
        name.ask(text)
        call = self.rng.choice(self.sim.hosts).call("Acknowledge", request, str(self.client), 1)
        if call is None:
            return
        self.world.wait(lambda: call.over or call.end is not None, 10.0)
        if call.answer is not None and call.answer.advanced:
            name.confirm(text, self.world.now)
        elif call.end is not None and call.over and call.answer is None and not name.is_beside(text):
            self.sim.must_be_an_end(self.client, call, call.end)

    def _ended(self, end: End) -> None:
        self.client.ends = [*self.client.ends[-5:], f"{end.code.name}: {end.text}"]
        self.sim.must_be_an_end(self.client, self.call, end)
        if end.code in (grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.DATA_LOSS):
            self.client.kept = Ledger()
            self.client.lost += 1
        raise _Left
