"""A client with a name: what it has acknowledged is kept, and what it has not is told again, by another server too."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic

import msgspec

from catchment import world
from catchment.model.errors import TakenOver
from catchment.model.subscription import Subscription
from catchment.serve.hub.client import Client
from catchment.serve.hub.telling import M
from catchment.serve.stream.vgtid import StreamCut, given_before, is_later

# How often what was acknowledged elsewhere is looked up; and while a stream waits for it. What is acknowledged here
# wakes that one.
_LOOK_SECONDS: Final = 1.0
_FULL_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Given:
    """A vgtid that was given, and the bytes of all messages up to it."""

    stands: StreamCut
    nbytes: int
    time_us: int


class Slip(msgspec.Struct, frozen=True):
    """How far a subscriber lags behind what it was given: vgtids, bytes, and seconds since the first of them."""

    vgtids: int
    nbytes: int
    seconds: float


class Subscribed(Generic[M]):
    """Gives no more than `bytes_max` that is not acknowledged, and then waits. `kept`: the subscriber as it is now.

    One thread at a time pulls.
    """

    def __init__(
        self,
        client: Client[M],
        size: Callable[[M], int],
        mine: Subscription,
        kept: Callable[[], Subscription | None],
        bytes_max: int,
    ) -> None:
        self.client = client
        self._size = size
        self._mine = mine
        self._kept = kept
        self._bytes_max = bytes_max
        self._given: deque[_Given] = deque()
        self._bytes = self._acknowledged = 0
        self._looked = world.steady_seconds()
        self._woken = world.event()

    @property
    def slip(self) -> Slip:
        """As of the last look."""
        given = list(self._given)
        age = (world.now_us() - given[0].time_us) / 1e6 if given else 0.0
        return Slip(len(given), self._bytes - self._acknowledged, max(0.0, age))

    def pull(self) -> Iterator[M]:
        """As that of a client. Raises TakenOver once another one of this name has come."""
        if self._bytes - self._acknowledged >= self._bytes_max:
            yield from self._waits()
            return
        if world.steady_seconds() - self._looked >= _LOOK_SECONDS:
            self._look()
        before, nbytes = self.client.told, 0
        for message in self.client.pull():
            nbytes += self._size(message)
            yield message
        told = self.client.told
        if told is not before:
            self._bytes += nbytes
            self._given.append(_Given(told, self._bytes, world.now_us()))

    def wake(self) -> None:
        """Something was acknowledged here. Any thread may say so."""
        self._woken.set()

    def _waits(self) -> Iterator[M]:
        """What is told at its limit."""
        self._woken.wait(min(self.client.wait, _FULL_LOOK_SECONDS))
        self._woken.clear()
        self._look()
        yield from self.client.waited()

    def _look(self) -> None:
        """What was acknowledged since, here or elsewhere."""
        self._looked = world.steady_seconds()
        kept = self._kept()
        if kept is None or kept.generation != self._mine.generation:
            raise taken_over(self._mine.name)
        if kept.vgtid != self._mine.vgtid:
            self._mine = kept
            self._acknowledge(given_before(kept.vgtid))

    def _acknowledge(self, up_to: StreamCut) -> None:
        """All that does not lie behind that place, which another stream of the name may have been given."""
        while self._given and not is_later(self._given[0].stands, up_to):
            self._acknowledged = self._given.popleft().nbytes


def taken_over(name: str) -> TakenOver:
    """The end of one whose name another client has now."""
    return TakenOver(
        f"subscriber {name}: another client of this name has come, or the subscriber was removed; one client at a time "
        "has a name, so do not reconnect unless that client is gone"
    )
