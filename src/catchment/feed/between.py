"""What comes between two epochs of a loop: the loop asks for it while it waits, too.

So a run obeys an order within seconds, however long the interval is.
"""

from collections.abc import Callable
from typing import Protocol

from catchment import world
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError

# A person waits for the answer to an order.
_ASK_SECONDS = 1.0


class Mends(Protocol):
    """What mends rows of the lake."""

    def due(self) -> bool:
        """Whether something is to be mended: then the standing epoch is applied before `next` is asked."""
        ...

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch after `standing` that mends, if one does."""
        ...


class Between:
    """Asks for epochs that end where the one before does: a table enters, or an order is obeyed. Only the loop's thread
    uses it. A wait also ends when `mender` has something to mend."""

    def __init__(self, ask: Callable[[Manifest], Manifest | None], mender: Mends | None) -> None:
        self._ask, self._mender = ask, mender
        self._found: Manifest | None = None

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch that comes after `standing`, if one does."""
        return self.taken() or self._ask(standing)

    def taken(self) -> Manifest | None:
        """What a wait found, once. The look that found it may also have met the order to end the run."""
        found, self._found = self._found, None
        return found

    def wait(self, seconds: float, standing: Manifest, stop: world.Event) -> None:
        """Wait for so many seconds, until something comes after `standing`, or until `stop` is set."""
        until = world.steady_seconds() + seconds
        while (left := until - world.steady_seconds()) > _ASK_SECONDS:
            if stop.wait(_ASK_SECONDS):
                return
            try:
                self._found = self._ask(standing)
            except CatchmentError:
                return  # `next` asks again, where failures are counted
            if self._found is not None or (self._mender is not None and self._mender.due()):
                return
        stop.wait(max(0.0, left))
