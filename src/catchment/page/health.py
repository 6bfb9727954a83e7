"""Whether a run does its work: its loop commits epochs, or rests in order."""

from collections.abc import Iterable

from catchment import world
from catchment.state.notes import Trouble

# Beyond the feed's interval. A large epoch takes longer, and is worth a look.
PATIENCE_SECONDS = 60.0


class Health:
    """Hears of each turn of the loop; any thread may ask."""

    def __init__(self, interval: float) -> None:
        self._seconds = PATIENCE_SECONDS + interval
        self._doing = "starting"
        self._turned: float | None = None

    def doing(self, what: str) -> None:
        """The run is busy with `what` before its first turn."""
        self._doing = what

    def turned(self) -> None:
        """An epoch is committed, or a turn brought none."""
        self._turned = world.steady_seconds()

    def fault(self, troubles: Iterable[Trouble]) -> str:
        """What is wrong; empty where nothing is."""
        if self._turned is None:
            return f"no epoch yet: {self._doing}"
        silent = world.steady_seconds() - self._turned
        if silent <= self._seconds:
            return ""
        return "; ".join((f"no epoch and no rest for {silent:.0f} s", *map(str, troubles)))
