"""What comes between two epochs of a loop: it is asked for while the loop waits, too.

So an order is obeyed within seconds, however long the interval is.
"""

from collections.abc import Callable
from typing import Protocol

from catchment import world
from catchment.model.epoch import Manifest

# Somebody who gave an order waits for its answer.
_ASK_SECONDS = 1.0


class Mends(Protocol):
    """What mends rows of the lake."""

    def due(self) -> bool:
        """Whether something is to be mended: then the standing epoch is applied before `next` is asked."""
        ...

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch behind `standing` that mends, if one does."""
        ...


class Between:
    """Asks for epochs that end where the one before does: a table enters, or an order is obeyed. The loop's thread
    alone uses it. `mender`: whoever has something to mend ends a wait, too."""

    def __init__(self, ask: Callable[[Manifest], Manifest | None], mender: Mends | None) -> None:
        self._ask, self._mender = ask, mender
        self._found: Manifest | None = None

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch that comes behind `standing`, if one does."""
        found, self._found = self._found, None
        return found or self._ask(standing)

    def wait(self, seconds: float, standing: Manifest, stop: world.Event) -> None:
        """Wait for so long, until something comes behind `standing`, or until told to stop."""
        until = world.steady_seconds() + seconds
        while (left := until - world.steady_seconds()) > _ASK_SECONDS:
            if stop.wait(_ASK_SECONDS):
                return
            self._found = self._ask(standing)
            if self._found is not None or (self._mender is not None and self._mender.due()):
                return
        stop.wait(max(0.0, left))
