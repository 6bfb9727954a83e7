"""What must be so of a subscriber's name, whoever has it: where its streams begin, and how much they are given."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.world.sim.history import Place
from tests.world.sim.serve.call import Call
from tests.world.sim.serve.cut import read
from tests.world.sim.serve.ledger import Ledger, Wrong

# One that is taken over looks every second; and it may be in the midst of a turn.
_TAKEN_OVER_SECONDS = 3.0
# From the last look at what is acknowledged to the first message of a stream; longer where the server stood still.
_LOOKED_SECONDS, _FROZEN_SECONDS = 1.0, 8.0


@dataclass
class Name:
    """`bytes_max`: what a stream is given at most before that is acknowledged. `kept`: what its clients have made of
    the events up to each vgtid that may still be the last one acknowledged.

    `confirmed`: the last vgtid of which a server said that it is acknowledged, or the one of its first stream.
    `asked`: later ones, of which no answer came.
    """

    text: str
    bytes_max: int
    kept: dict[str, Ledger] = field(default_factory=dict)
    confirmed: str = ""
    confirmed_at: list[tuple[float, str]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    acknowledged: int = 0
    resumed: int = 0
    taken_over: int = 0
    _streams: list["Given"] = field(default_factory=list)
    _first: list[str] = field(default_factory=list)

    def begins(self, call: Call, text: str, made_at: float) -> tuple["Given", Ledger | None]:
        """A stream of the name has begun at a vgtid. The rows that a client has there; None where nobody kept any.

        Raises Wrong where nobody acknowledged that place last.
        """
        given = Given(self, made_at)
        self.taken_over += sum(not one.over for one in self._streams)
        self._streams = [*self._streams, given]
        if not self.confirmed:
            self.confirmed, self._first = text, [text]
            return given, None
        places = read(text).places
        found = [one for one in self._last_ones(call, made_at) if read(one).places == places]
        if not found:
            raise Wrong(
                f"subscriber {self.text} begins at {places}, and acknowledged {read(self.confirmed).places}"
            )
        kept = next((self.kept[one] for one in found if one in self.kept), None)
        self.resumed += kept is not None
        return given, None if kept is None else kept.copy()

    def _last_ones(self, call: Call, made_at: float) -> Iterator[str]:
        """What may have been acknowledged last when a server looked, which was just before it told where it begins."""
        frozen = call.process.frozen_until
        looked_at = (
            made_at - _LOOKED_SECONDS - (_FROZEN_SECONDS if frozen > made_at - _FROZEN_SECONDS else 0.0)
        )
        yield from (self.confirmed, *self.asked)
        before = [text for at, text in self.confirmed_at if at <= looked_at]
        yield from before[-1:] or self._first
        yield from (text for at, text in self.confirmed_at if at > looked_at)

    def ask(self, text: str) -> None:
        """A client is about to acknowledge."""
        self.asked.add(text)

    def confirm(self, text: str, at: float) -> None:
        """A server said that it is acknowledged, and later than what was."""
        self.acknowledged += 1
        self.asked.discard(text)
        if _reaches(read(text).places, read(self.confirmed).places):
            self.confirmed = text
            self.confirmed_at.append((at, text))
            # What lies before it cannot be where a stream begins.
            here = read(text).places
            self.asked = {one for one in self.asked if not _reaches(here, read(one).places)}

    def later(self, given: "Given") -> float | None:
        """When a later stream of the name was told where it begins; None where there is none."""
        behind = self._streams[self._streams.index(given) + 1 :]
        return min((one.begun_at for one in behind), default=None)

    def is_beside(self, text: str) -> bool:
        """Whether it lies neither before nor behind what was acknowledged last, by the one that had the name before
        while a shard was away: then nobody can say which is later, and a server refuses it."""
        here, there = read(text).places, read(self.confirmed).places
        return not _reaches(here, there) and not _reaches(there, here)

    def is_acknowledged(self, text: str) -> bool:
        """Whether a server may know that it is."""
        place = read(text).places
        return any(_reaches(read(one).places, place) for one in (self.confirmed, *self.asked))


@dataclass(eq=False)
class Given:
    """What one stream of a name was given: the bytes up to each vgtid that is not acknowledged."""

    name: Name
    begun_at: float
    over: bool = False
    turns: list[tuple[str, int]] = field(default_factory=list)
    _late: int = 0

    def take(self, text: str, nbytes: int, made_at: float) -> None:
        """The messages up to a vgtid. Raises Wrong where the stream should have waited, or have ended."""
        self.turns = [one for one in self.turns if not self.name.is_acknowledged(one[0])]
        waiting = sum(size for _, size in self.turns)
        if waiting >= self.name.bytes_max:
            raise Wrong(
                f"subscriber {self.name.text} is given more, and {waiting} bytes are not acknowledged"
            )
        self.turns.append((text, nbytes))
        later = self.name.later(self)
        self._late += later is not None and made_at > later + _TAKEN_OVER_SECONDS
        if self._late > 1:
            raise Wrong(f"subscriber {self.name.text} has two streams, the later one since {later}")


def _reaches(one: Mapping[str, Place], other: Mapping[str, Place]) -> bool:
    return all(one[shard] >= place for shard, place in other.items())
