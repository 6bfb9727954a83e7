"""The readers that clients share: one for each set of tables, rules and form of messages, while it has clients."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from catchment import world
from catchment.model.errors import ServerStops
from catchment.serve.hub.following import ENDS, Following, ReaderStanding
from catchment.serve.hub.telling import Known, M, Telling
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.tables import Chosen
from catchment.serve.stream.vgtid import StreamCut


@dataclass(frozen=True, slots=True)
class Same:
    """What clients that share a reader have in common. `form`: makes their messages."""

    chosen: Chosen
    minimize_skew: bool
    form: Callable[[], Telling[Any]]


@dataclass
class SharedReaders:
    """Any thread may use it. `buffer`: bytes of messages that each keeps for clients that are slow."""

    buffer: int
    _stopped: bool = False
    _shared: dict[Same, Following[Any]] = field(default_factory=dict)
    _lock: world.Lock = field(default_factory=world.lock)

    def __len__(self) -> int:
        return len(self._shared)

    def standings(self) -> list[ReaderStanding]:
        """How they fare."""
        with self._lock:
            shared = list(self._shared.items())
        return [
            msgspec.structs.replace(following.standing, rules=same.chosen.text) for same, following in shared
        ]

    def join(self, same: Same) -> Following[Any] | None:
        """The reader, with one client more; None where there is none."""
        with self._lock:
            following = self._shared.get(same)
            if following is not None:
                following.clients += 1
            return following

    def share(self, same: Same, epochs: Epochs, known: Known) -> Following[Any] | None:
        """Make a reader the shared one, and join it; None where another one is. `known`: columns that its client was
        told. Raises CatchmentError once they are stopped."""
        with self._lock:
            if self._stopped:
                raise ServerStops(ENDS)
            if same in self._shared:
                return None
            following = Following(epochs, same.form, known, self.buffer)
            self._shared[same] = following
        following.start(lambda: self._ended(same, following))
        return following

    def leave(self, same: Same, following: Following[Any]) -> None:
        """It has one client less, and ends with the last one."""
        with self._lock:
            if self._shared.get(same) is not following:
                return  # it has failed
            following.clients -= 1
            if following.clients:
                return
            del self._shared[same]
        following.stop()

    def stop(self) -> None:
        """End them all; clients get an error once they have heard what was told."""
        with self._lock:
            self._stopped = True
            followings = list(self._shared.values())
        for following in followings:
            following.stop()

    def _ended(self, same: Same, following: Following[Any]) -> None:
        with self._lock:
            if self._shared.get(same) is following:
                del self._shared[same]


@dataclass(frozen=True)
class ReadersOf(Generic[M]):
    """Those of clients that ask for the same. `begin`: a reader from a place on."""

    shared: SharedReaders
    same: Same
    begin: Callable[[StreamCut], Epochs]

    def join(self) -> Following[M] | None:
        """As Readers has it."""
        return self.shared.join(self.same)

    def share(self, epochs: Epochs, known: Known) -> Following[M] | None:
        """As Readers has it."""
        return self.shared.share(self.same, epochs, known)

    def leave(self, following: Following[M]) -> None:
        """As Readers has it."""
        self.shared.leave(self.same, following)

    def own(self, stands: StreamCut) -> Epochs:
        """As Readers has it."""
        return self.begin(stands)
