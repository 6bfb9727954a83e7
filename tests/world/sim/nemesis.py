"""What breaks the feed's own side: its processes, its engine and the machine's clock."""

from collections.abc import Callable, Sequence
from typing import Any

from catchment.engine.guarded import Guarded, receipts
from catchment.model.errors import EngineError
from tests.world.sim.scheduler import Process, SimWorld
from tests.world.sim.theme import Theme

# Where a run may die or stand still most often: a chance per step alone would seldom meet what lies between two writes.
_THERE = 0.05
_PLACES = (
    "before a transaction of the state store",
    "behind a transaction of the state store",
    "write inline rows",
    "before a table's commit",
    "behind a table's commit",
    "before the epoch's row",
    "behind the epoch's row",
    "take a table over",
    "restore a table",
)
_DAY_US = 86_400_000_000
_JUMPS_US = (300_000, 5_000_000, 3_600_000_000, 3 * _DAY_US)


class Nemesis:
    """Kills and freezes processes at their steps while `dangerous`, and sets the machine's clock.

    `kills`: how many so far. `jumps`: how often the clock was set.
    """

    def __init__(self, world: SimWorld, theme: Theme) -> None:
        self.world = world
        self.dangerous = True
        self.kills = self.jumps = 0
        rng = world.rng
        self._kill = rng.choice((0.0, 0.0015, 0.004))
        self._freeze = rng.choice(theme.freezes)
        self._standstills = theme.standstills
        self._place = rng.choice((None, *_PLACES))
        self._kills_there = rng.random() < 0.6
        self._step_seconds = rng.choice((0.0, 0.0, 0.002, 0.01))
        self._sets_clocks = rng.random() < 0.3

    def meet(self, process: Process, what: str) -> None:
        """A process takes a step: time passes, and it may die or stand still."""
        rng = self.world.rng
        self.world.now += self._step_seconds * rng.random()
        chance = rng.random()
        there = what == self._place and chance < _THERE
        if chance < self._kill or (there and self._kills_there):
            self.kills += 1
            self.world.kill(process)
        elif chance < self._kill + self._freeze or there:
            process.frozen_until = self.world.now + rng.choice(self._standstills)

    def set_clocks(self) -> None:
        """Set the machine's clock forth and back, as long as it is dangerous."""
        while self._sets_clocks and self.dangerous:
            self.world.sleep(self.world.rng.expovariate(1 / 3.0))
            self.world.skew_us += self.world.rng.choice((-1, 1)) * self.world.rng.choice(_JUMPS_US)
            self.jumps += 1


class SimEngine:
    """Runs tasks in threads of the process; now and then a task runs twice, or is lost."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """As the port has it."""
        rng = self._world.rng
        lost = rng.random() < 0.02
        twice = [task for task in tasks if rng.random() < 0.05]
        with self._world.pool(3, "task") as pool:
            found = list(pool.map(Guarded(work), [*tasks, *twice]))
        if lost:
            raise EngineError("an executor was lost")
        # Of two attempts either may be the one that counts.
        results = found[: len(tasks)]
        for task, again in zip(twice, found[len(tasks) :], strict=True):
            if rng.random() < 0.5:
                results[list(tasks).index(task)] = again
        return receipts(results)

    def check(self) -> None:
        """It has started."""

    def cancel(self) -> None:
        """Nothing to cancel: tasks end soon."""

    def rest(self) -> None:
        """Nothing to give back."""

    def close(self) -> None:
        """Nothing to end."""
