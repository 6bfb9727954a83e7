"""What was told last to all clients of a reader, in bounded memory. One writes; each client reads at its own pace."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from catchment import world
from catchment.serve.hub.telling import Known, M
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.tables import Definitions
from catchment.serve.stream.vgtid import StreamCut


@dataclass(frozen=True, slots=True)
class Place:
    """Behind entry `index - 1`. `stands`: everything up to there is in the entries before. `known`: the columns that
    they tell. `tick`: the number of the last tick; entries to come have greater ones. `definitions`: of the tables."""

    index: int
    stands: StreamCut
    known: Known
    tick: int
    definitions: Definitions

    @classmethod
    def of(cls, index: int, epochs: Epochs, known: Known) -> "Place":
        """Where these turns stand."""
        return cls(index, epochs.stands, known, epochs.tick, epochs.definitions)


@dataclass(frozen=True, slots=True)
class Entry(Generic[M]):
    """All messages of one turn, which several clients may iterate; the bytes that they take in memory, and the place
    behind the turn."""

    messages: Iterable[M]
    nbytes: int
    behind: Place


class Overtaken(Exception):
    """The entry that a client needs next is not kept any more."""


class Ring(Generic[M]):
    """Keeps the newest entries, as many as `bytes_max` holds, and always the last one. Any thread may use it."""

    def __init__(self, bytes_max: int, begin: Place) -> None:
        self._bytes_max = bytes_max
        self._entries: deque[Entry[M]] = deque()
        self._bytes = 0
        self._end = begin
        self._failed: Exception | None = None
        self._condition = world.condition()

    @property
    def end(self) -> Place:
        """Behind the newest entry."""
        return self._end

    @property
    def nbytes(self) -> int:
        """Of all entries that are kept."""
        return self._bytes

    @property
    def failed(self) -> bool:
        """Whether nothing will come any more."""
        return self._failed is not None

    def put(self, entry: Entry[M]) -> None:
        """Add an entry, and let go of old ones."""
        with self._condition:
            self._entries.append(entry)
            self._bytes += entry.nbytes
            while self._bytes > self._bytes_max and len(self._entries) > 1:
                self._bytes -= self._entries.popleft().nbytes
            self._end = entry.behind
            self._condition.notify_all()

    def moved(self, end: Place) -> None:
        """The reader went on, and there was nothing to tell."""
        with self._condition:
            self._end = end
            self._condition.notify_all()

    def fail(self, error: Exception) -> None:
        """Nothing will come any more; clients get what is kept, and then the error."""
        with self._condition:
            self._failed = error
            self._condition.notify_all()

    def after(self, index: int, timeout: float) -> Entry[M] | None:
        """Entry `index`; None where it has not come in so many seconds. Raises Overtaken, and what failed the
        reader."""
        with self._condition:
            self._condition.wait_for(lambda: self._failed is not None or self._end.index > index, timeout)
            if self._end.index <= index:
                if self._failed is not None:
                    raise self._failed
                return None
            first = self._end.index - len(self._entries)
            if index < first:
                raise Overtaken
            return self._entries[index - first]

    def beyond(self, place: Place, timeout: float) -> Place:
        """The end, once it is another one than `place`, or the timeout is over."""
        with self._condition:
            self._condition.wait_for(lambda: self._failed is not None or self._end is not place, timeout)
            return self._end

    def waiting(self, index: int) -> tuple[int, int]:
        """How many entries, and bytes of them, lie before a client that takes `index` next."""
        with self._condition:
            behind = self._end.index - index
            kept = list(self._entries)[-behind:] if behind > 0 else []
            return max(0, behind), sum(entry.nbytes for entry in kept)
