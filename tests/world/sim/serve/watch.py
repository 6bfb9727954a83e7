"""Looks on while clients stand in line and read: how many at a time, in which order, and whether any is left behind.

It stands around some of the hub's functions, believes no number of theirs, and counts by itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from catchment.serve.hub import hub as hub_module
from catchment.serve.hub.hub import Hub
from catchment.serve.hub.turnstile import Visit
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.turns import started
from tests.world.sim.scheduler import Job, Process, SimWorld
from tests.world.sim.serve.call import Call
from tests.world.sim.serve.ledger import Wrong

if TYPE_CHECKING:
    from tests.world.sim.serve.client import StreamClient

# Once a server knows that a client is gone, it gives back what that held within so many seconds, unless shards hang:
# a first cut that has begun is waited for.
GIVEN_BACK_SECONDS = 10.0
# Of clients that read by themselves: for so long each counts as one that has just begun.
_FRESH_SECONDS = 5.0
# Who has waited for longer is let in first, or at once behind the other one.
_AT_ONCE_SECONDS = 0.6


@dataclass(frozen=True)
class Lines:
    """How many clients may read by themselves at a time: such that copy, such that catch up, and of each those that
    have just begun; and how many clients a server may have."""

    copying: int
    catching_up: int
    fresh: int
    clients: int


@dataclass(eq=False)
class _Line:
    """Of a server, those that copy or those that catch up. `asks`: who asks now, since when; `came`: when it came.
    `inside`: who was let in, and when. `passed`: who asked when one that came later was let in, and when that was.
    """

    most: int
    asks: dict[Visit, float] = field(default_factory=dict)
    came: dict[Visit, float] = field(default_factory=dict)
    inside: dict[Visit, float] = field(default_factory=dict)
    passed: dict[Visit, float] = field(default_factory=dict)


@dataclass
class Watch:
    """`found` receives what is wrong. `waited`: how often a client was not let in at once."""

    world: SimWorld
    lines: Lines
    found: Callable[[Wrong], None]
    waited: int = 0
    most_at_once: int = 0
    _lines: dict[tuple[Process, bool], _Line] = field(default_factory=dict)
    _mine: dict[Job, tuple[_Line, Visit]] = field(default_factory=dict)
    _reading: dict[Job, _Line] = field(default_factory=dict)
    _open: dict[Process, set[Any]] = field(default_factory=dict)
    _calls: list[Call] = field(default_factory=list)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Stand around the hub's functions until the end of the block."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Visit, "enter", self._entering(Visit.enter))
            patch.setattr(Visit, "leave", self._leaving(Visit.leave))
            patch.setattr(Hub, "opening", self._opening(Hub.opening))
            patch.setattr(Hub, "close", self._closing(Hub.close))
            patch.setattr(Epochs, "turn", self._turning(Epochs.turn))
            patch.setattr(Epochs, "turn_to", self._turning(Epochs.turn_to))
            patch.setattr(hub_module, "started", self._turning(started, begins=True))
            yield

    def called(self, client: "StreamClient", call: Call) -> None:
        """A client has asked for a stream."""
        self._calls = [one for one in self._calls if not (one.over or one.process.dead)]
        self._calls.append(call)

    def look(self, patience: float) -> None:
        """Whether streams of clients that are gone are over, and nobody was passed over in line. `patience`: seconds
        for which shards may have held up who asks them."""
        for call in self._calls:
            gone = self._since(call.process, call.left_at or self.world.now)
            if not (call.over or call.process.dead) and gone > GIVEN_BACK_SECONDS + patience:
                self.found(Wrong(f"{call.name} is gone for {gone:.0f} s, and its stream is not over"))
        for (process, _), line in self._lines.items():
            for at in line.passed.values():
                if not process.dead and self._since(process, at) > _AT_ONCE_SECONDS:
                    self.found(Wrong("one that came later was let in, and one that came earlier still waits"))

    def _since(self, process: Process, at: float) -> float:
        return self.world.now - max(at, process.frozen_until)

    def is_full(self, call: Call, patience: float) -> bool:
        """Whether so many clients may have been there when a call was refused. Those that have left count for as long
        as a server may take to give back what they held."""
        there = [one for one in self._calls if one.process is call.process and one is not call]
        since = self.world.now - GIVEN_BACK_SECONDS - patience
        return sum(one.left_at is None or one.left_at > since for one in there) >= self.lines.clients

    # Around the turnstiles.

    def _entering(self, enter: Any) -> Any:
        def entering(visit: Visit, *, copies: bool, timeout: float) -> bool:
            line, began = self._line(copies), self.world.now
            was_inside = visit in line.inside
            line.asks[visit] = began
            line.came.setdefault(visit, began)
            try:
                may = bool(enter(visit, copies=copies, timeout=timeout))
            finally:
                line.asks.pop(visit, None)
                line.passed.pop(visit, None)
            if not may:
                self.waited += 1
                line.inside.pop(visit, None)
                return may
            mine = line.came.pop(visit)
            if not (was_inside and self.world.now == began):
                line.inside[visit] = self.world.now
                for one in line.asks:
                    if line.came[one] < mine:
                        line.passed.setdefault(one, self.world.now)
            self._mine[self.world.job] = line, visit
            return may

        return entering

    def _leaving(self, leave: Any) -> Any:
        def leaving(visit: Visit) -> None:
            for copies in (True, False):
                line = self._line(copies)
                if visit not in line.asks:  # else it leaves the other one, to stand here
                    line.inside.pop(visit, None)
                    line.came.pop(visit, None)
            leave(visit)

        return leaving

    def _line(self, copies: bool) -> _Line:
        most = self.lines.copying if copies else self.lines.catching_up
        return self._lines.setdefault((self.world.process, copies), _Line(most))

    # Around those who read.

    def _turning(self, turn: Any, *, begins: bool = False) -> Any:
        def turning(*args: Any, **named: Any) -> Any:
            job = self.world.job
            if job.name != "handler":
                return turn(*args, **named)  # of a reader that clients share
            if job not in self._mine:
                self.found(Wrong(f"a client reads by itself that was not let in ({turn.__name__})"))
                return turn(*args, **named)
            line, visit = self._mine[job]
            if begins and visit not in line.inside:
                return turn(
                    *args, **named
                )  # a reader of its own again, which stands in line before its first turn
            self._reading[job] = line
            self._must_be_few(line)
            try:
                return turn(*args, **named)
            finally:
                self._reading.pop(job, None)

        return turning

    def _must_be_few(self, line: _Line) -> None:
        mine = [job for job, other in self._reading.items() if other is line and not job.process.dead]
        self.most_at_once = max(self.most_at_once, len(mine))
        entered = [line.inside.get(self._mine[job][1], 0.0) for job in mine]
        fresh = sum(self.world.now - at < _FRESH_SECONDS for at in entered)
        if len(mine) > line.most or fresh > self.lines.fresh:
            self.found(
                Wrong(f"{len(mine)} read by themselves, {fresh} of them have just begun; {line.most} may")
            )

    # Around clients that come and go.

    def _opening(self, steps: Any) -> Any:
        def opening(hub: Hub, *args: Any, **named: Any) -> Any:
            client = yield from steps(hub, *args, **named)
            there = self._open.setdefault(self.world.process, set())
            there.add(client)
            if len(there) > self.lines.clients:
                self.found(Wrong(f"a server has {len(there)} clients, and {self.lines.clients} are allowed"))
            return client

        return opening

    def _closing(self, close: Any) -> Any:
        def closing(hub: Hub, client: Any) -> None:
            self._open[self.world.process].discard(client)
            close(hub, client)

        return closing
