"""When a shard is tried again that somebody has to mend: after pauses that grow, and that are long where a try is."""

from typing import Final

from catchment import world
from catchment.model.errors import CatchmentError

_SECONDS_FIRST: Final = 0.5
_SECONDS_MAX: Final = 10.0
# A log that cannot be read grows meanwhile, and each try reads it from where the shard stands.
_TIMES_A_TRY: Final = 10.0


class Pause:
    """Of one shard; one thread at a time uses it. `error`: what it met last; None: nothing since it was well."""

    def __init__(self) -> None:
        self.error: CatchmentError | None = None
        self._failures = 0
        self._until = 0.0

    @property
    def over(self) -> bool:
        """Whether the shard may be tried now."""
        return self.error is None or world.steady_seconds() >= self._until

    def must_be_over(self) -> None:
        """Raise what the shard met last while it is not to be tried."""
        if self.error is not None and not self.over:
            raise self.error.with_traceback(None)

    def after(self, error: CatchmentError, began: float) -> None:
        """Begin another pause, after a try that began at `began` (steady seconds)."""
        now = world.steady_seconds()
        grown = min(_SECONDS_MAX, _SECONDS_FIRST * 2.0 ** min(self._failures, 10))
        self._failures += 1
        self._until = now + max(grown, (now - began) * _TIMES_A_TRY)
        self.error = error

    def end(self) -> None:
        """The shard is well."""
        self.error, self._failures, self._until = None, 0, 0.0
