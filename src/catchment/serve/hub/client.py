"""A client of a server: it reads by itself until it stands where a shared reader stands, and then hears that one.

One that begins at this moment hears it from the beginning.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, Generic, Protocol

import msgspec

from catchment import world
from catchment.model.errors import TooSlow
from catchment.model.slow import Slow
from catchment.serve.hub.following import Following
from catchment.serve.hub.joining import Joined
from catchment.serve.hub.meeting import meet
from catchment.serve.hub.ring import Overtaken, Place
from catchment.serve.hub.telling import Known, M, Telling
from catchment.serve.hub.turnstile import Visit
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.events import Gap
from catchment.serve.stream.tables import Definitions
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.turns import Pace
from catchment.serve.stream.vgtid import StreamCut, written


class Reading(Enum):
    """Who reads the shards for a client."""

    OWN = "own"
    SHARED = "shared"
    CLOSED = "closed"


# Which may follow which, and when.
MOVES: Final = {
    (Reading.OWN, Reading.SHARED): "it stands where the shared reader stands, or gives its own to be shared",
    (Reading.SHARED, Reading.OWN): "it was overtaken: it reads again what the buffer has let go",
    (Reading.OWN, Reading.CLOSED): "it left, or its reader failed",
    (Reading.SHARED, Reading.CLOSED): "it left, the reader failed, or it was overtaken and is to end",
}


class Readers(Protocol[M]):
    """Where the readers of clients that ask for the same come from."""

    def join(self) -> Following[M] | None:
        """The shared reader with one client more; None where there is none."""
        ...

    def share(self, epochs: Epochs, known: Known) -> Following[M] | None:
        """Make a reader the shared one, and join it; None where another client was first."""
        ...

    def leave(self, following: Following[M]) -> None:
        """It has one client less."""
        ...

    def own(self, stands: StreamCut) -> Epochs:
        """A reader that goes on from there. Raises CatchmentError."""
        ...


class Standing(msgspec.Struct, frozen=True):
    """How a client fares. `behind`: seconds since the shards stood where it stands; 0 where it lacks nothing.
    `waiting` and `waiting_bytes`: entries of the buffer that it has not taken. `given`: messages so far. `name`: how it
    is shown."""

    name: str
    reading: Reading
    behind: float
    waiting: int
    waiting_bytes: int
    given: int


class Client(Generic[M]):
    """Messages while somebody pulls. One thread at a time pulls or closes; any may look at `standing`."""

    def __init__(
        self,
        readers: Readers[M],
        begins: Epochs | Joined[M],
        telling: Telling[M],
        pace: Pace,
        slow: Slow,
        visit: Visit,
        name: str = "",
    ) -> None:
        self.name = name
        self._readers = readers
        self._telling = telling
        self._pace = pace
        self._slow = slow
        self._visit = visit
        self._epochs: Epochs | None = None
        self._following: Following[M] | None = None
        self._begin: Turn | None
        if isinstance(begins, Joined):
            self._reading, self._following = Reading.SHARED, begins.following
            self._last, self._begin = begins.at, Turn(begins.at.stands, ())
        else:
            self._reading, self._epochs = Reading.OWN, begins
            self._last, self._begin = Place.of(0, begins, telling.known), begins.begun()
        self._told = self._last.stands
        self._given = 0

    @property
    def told(self) -> StreamCut:
        """The cut of the last vgtid that it was told; where it begins before the first one."""
        return self._told

    @property
    def definitions(self) -> Definitions:
        """The tables as their rows are told where it stands."""
        return self._last.definitions

    @property
    def tick(self) -> int:
        """The number of the last tick up to which it has heard everything; entries to come have greater ones."""
        if self._following is None:
            return self._last.tick if self._epochs is None else self._epochs.tick
        end = self._following.ring.end
        return (end if end.index == self._last.index else self._last).tick

    @property
    def standing(self) -> Standing:
        """As of now."""
        following, last = self._following, self._last
        waiting, nbytes = following.ring.waiting(last.index) if following is not None else (0, 0)
        at_end = following is not None and not waiting
        behind = 0.0 if at_end else max(0.0, (world.now_us() - last.stands.cut.time_us) / 1e6)
        return Standing(self.name, self._reading, behind, waiting, nbytes, self._given)

    def pull(self) -> Iterator[M]:
        """The next messages; none where nothing came for a second. Take all of them before the next pull.

        Raises CatchmentError; TooSlow where the client was overtaken and is to end.
        """
        self._visit.given()
        for message in self._next():
            self._given += 1
            self._visit.gives()
            yield message
            self._visit.given()
        self._visit.gives()

    @property
    def wait(self) -> float:
        """For how many seconds it may be told nothing."""
        return self._pace.wait

    def waited(self) -> Iterator[M]:
        """What it is told while nothing comes: a heartbeat, once one is due."""
        told = self._pace.told(None)
        yield from self._telling.messages(told) if told is not None else ()

    def close(self) -> None:
        """End it, and give back its reader."""
        if self._reading is not Reading.CLOSED:
            self._to(Reading.CLOSED)

    def _next(self) -> Iterator[M]:
        if self._begin is not None:
            begin, self._begin = self._begin, None
            yield from self._telling.messages(begin)
            yield from self._telling.catch_up(self._last.known)
            return
        if self._following is not None:
            yield from self._heard(self._following)
            return
        assert self._epochs is not None, "it is closed"
        if self._visit.enter(copies=not self._epochs.stands.cut.idle, timeout=self._pace.wait):
            yield from self._read(self._epochs)
        else:
            yield from self.waited()

    def _read(self, epochs: Epochs) -> Iterator[M]:
        """By itself; and from then on by the shared reader, where both stand at one place."""
        if not epochs.caught_up:
            yield from self._turned(epochs, epochs.turn(self._pace.wait))
            return
        following = self._readers.join()
        if following is None:
            self._share(epochs)
            return
        at = None
        try:
            meeting = meet(epochs, following.ring, self._pace.wait)
            at = meeting.at
        finally:
            if at is None:
                self._readers.leave(following)
        if at is not None:
            self._to(Reading.SHARED, following=following, last=at)
        else:
            self._visit.leave()
        yield from self._turned(epochs, meeting.turn)
        if at is not None:
            yield from self._telling.catch_up(at.known)

    def _turned(self, epochs: Epochs, turn: Turn | None) -> Iterator[M]:
        told = self._pace.told(turn)
        if told is not None:
            yield from self._telling.messages(told)
        if isinstance(told, Turn):
            self._told = told.stands
        if self._epochs is epochs:
            self._last = Place.of(0, epochs, self._telling.known)

    def _share(self, epochs: Epochs) -> None:
        """Give the reader to all who ask for the same; nothing where another client was first."""
        following = self._readers.share(epochs, self._telling.known)
        if following is not None:
            self._epochs = None
            self._to(Reading.SHARED, following=following, last=following.begin)

    def _heard(self, following: Following[M]) -> Iterator[M]:
        try:
            entry = following.ring.after(self._last.index, self._pace.wait)
        except Overtaken:
            yield from self._overtaken(following)
            return
        if entry is None:
            yield from self.waited()
            return
        yield from entry.messages
        self._pace.heard()
        self._last = entry.behind
        self._told = entry.behind.stands

    def _overtaken(self, following: Following[M]) -> Iterator[M]:
        """The buffer has let go of what comes next."""
        last = self._last
        since = written(last.stands)
        for _ in self._telling.catch_up(last.known):
            pass  # the shared reader told it
        if self._slow is Slow.END:
            self._to(Reading.CLOSED)
            raise TooSlow(
                "the client took its events so slowly that the server's buffer is full; begin again with the last "
                "vgtid, or ask for slow: reread"
            )
        if self._slow is Slow.REREAD:
            self._to(Reading.OWN, epochs=self._readers.own(last.stands))
            return
        self._last = following.ring.end
        yield from self._telling.messages(Gap(since, written(self._last.stands)))
        yield from self._telling.catch_up(self._last.known)

    def _to(
        self,
        reading: Reading,
        *,
        epochs: Epochs | None = None,
        following: Following[M] | None = None,
        last: Place | None = None,
    ) -> None:
        assert (self._reading, reading) in MOVES, f"no move from {self._reading} to {reading}"
        self._visit.leave()
        epochs_before, following_before = self._epochs, self._following
        self._reading, self._epochs, self._following = reading, epochs, following
        self._last = last or self._last
        if epochs_before is not None:
            epochs_before.stop()
        if following_before is not None:
            self._readers.leave(following_before)
