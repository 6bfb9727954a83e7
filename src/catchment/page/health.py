"""Whether a run does its work, and whether readers of its lake see all of the source as it is now."""

from collections.abc import Collection, Iterable

from catchment import world
from catchment.model.epoch import Manifest
from catchment.state.notes import Trouble

# Beyond the feed's interval. A large epoch takes longer, and is worth a look.
PATIENCE_SECONDS = 60.0
# A reason names so many shards or tables, and counts the others.
_NAMED_MAX = 5


class Health:
    """Whether the loop commits epochs, or rests in order: a run that does not may need a restart. Hears of each turn of
    the loop; any thread may ask."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
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
        if silent <= PATIENCE_SECONDS + self._interval:
            return ""
        return "; ".join((f"no epoch and no rest for {silent:.0f} s", *map(str, troubles)))


class Readiness:
    """Whether every table of the lake is as of now. What is not may heal by itself, so it is no reason for a restart.
    Hears what a run tells its observer; any thread may ask."""

    def __init__(self) -> None:
        self._standing: Manifest | None = None
        self._absent: Collection[str] = ()
        self._troubles: tuple[Trouble, ...] = ()

    def stands_at(self, manifest: Manifest) -> None:
        """The run goes on from an epoch, or has committed it."""
        self._standing, self._absent = manifest, manifest.absent.keys()

    def rested(self, absent: Collection[str]) -> None:
        """A turn brought no epoch, and these shards did not answer."""
        self._absent = absent

    def in_trouble(self, troubles: tuple[Trouble, ...]) -> None:
        """What the run tries again now."""
        self._troubles = troubles

    def reasons(self) -> tuple[str, ...]:
        """Why it is not; empty where it is."""
        standing, absent = self._standing, self._absent
        if standing is None:
            return ("no epoch yet",)
        stale = sorted(str(one.table) for one in standing.stale)
        copying = {str(table) for state in standing.cut.shards.values() for table in state.copying}
        again = [f"{one.what}: trying again" for one in self._troubles if one.shard not in absent]
        found = (
            _named("shard is away", "shards are away", sorted(absent)),
            _named("table is stale", "tables are stale", stale),
            _named("table is being copied", "tables are being copied", sorted(copying - {*stale})),
            *dict.fromkeys(again),
        )
        return tuple(reason for reason in found if reason)


def _named(one: str, many: str, names: list[str]) -> str:
    if not names:
        return ""
    more = ", ..." if len(names) > _NAMED_MAX else ""
    return f"{len(names)} {one if len(names) == 1 else many} ({', '.join(names[:_NAMED_MAX])}{more})"
