"""How a loop bears failures: what may go well later is done again, and what is away is waited for."""

from catchment import world
from catchment.model.errors import CatchmentError, HeldUp, SinkAway
from catchment.model.retries import is_waited_for, may_repeat, pause_seconds
from catchment.watch.troubles import Troubles


class Tries:
    """The tries of one loop. `wait_max`: seconds for which it waits for what is away; None: for ever."""

    def __init__(self, wait_max: float | None, troubles: Troubles, stop: world.Event) -> None:
        self._wait_max, self._troubles, self._stop = wait_max, troubles, stop
        self._failures, self._well_at = 0, world.steady_seconds()
        self._without_lake = False

    def failed(self, error: CatchmentError, began: float) -> None:
        """Wait before the next try, after one that began at `began` (steady seconds). Raises the error where no other
        one is worth it."""
        self._failures += 1
        away = began - self._well_at
        if not may_repeat(error, self._failures) and not is_waited_for(error, away, self._wait_max):
            raise error
        if isinstance(error, HeldUp):
            self._troubles.log_unread(error.cause)
        elif isinstance(error, SinkAway):
            self._without_lake = True
            self._troubles.went_away(error)
        else:
            self._troubles.failed(error)
        self._stop.wait(pause_seconds(self._failures))

    def succeeded(self) -> None:
        """The next failure is a first one. Whoever knows that no shard is away says so to the troubles."""
        self._failures, self._well_at = 0, world.steady_seconds()
        if self._without_lake:
            self._without_lake = False
            self._troubles.came_back(SinkAway.away)
