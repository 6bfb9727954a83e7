"""One loop after another, in one run. A loop ends where the log of a shard is lost, and where an order sets aside what
stopped it. Then the shard begins again, and another loop goes on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catchment import world
from catchment.feed.between import Mends
from catchment.feed.clock import Clock
from catchment.feed.commands import Commands
from catchment.feed.loop import Loop
from catchment.feed.taken_up import TakenUp
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, LogLost, Retry
from catchment.model.source import Endpoint

Between = Callable[[Manifest], Manifest | None]


@dataclass(frozen=True)
class Turns:
    """What a loop asks between its turns: whether it is done, which tables enter, and what is mended."""

    done: Callable[[Manifest], bool]
    newcomers: Between
    mender: Mends | None


@dataclass(frozen=True)
class Loops:
    """Makes the loops of a run, and the clock of each. `loop_of` takes `standing` and `clock`. `stop` is set when the
    run is to end: what it would try again then is left to the next run."""

    endpoints: Mapping[str, Endpoint]
    commands: Commands
    clock_of: Callable[[TakenUp], Clock]
    loop_of: Callable[..., Loop]
    stop: world.Event

    def run(self, began: TakenUp, clock: Clock, turns: Turns) -> Manifest:
        """The last manifest committed, as `Loop.run`. `clock`: of the first loop; it is stopped, as all others are.

        Raises what ended a loop, where the run cannot go on from it.
        """
        try:
            while True:
                loop = self.loop_of(standing=began.standing, clock=clock)
                try:
                    between = _between(began.first, self.commands.next, turns.newcomers)
                    last = loop.run(turns.done, between, turns.mender)
                    if not self.stop.is_set():
                        clock.must_be_whole(last.cut.positions)
                    self.commands.answer(last)
                    return last
                except CatchmentError as met:
                    clock.stop()
                    if self.stop.is_set() and met.retry is Retry.SAME:
                        return loop.committed  # the next run goes on from there
                    began = self._behind(began, loop.standing, clock.number, met)
                clock = self.clock_of(began)
        finally:
            clock.stop()

    def _behind(self, began: TakenUp, standing: Manifest, highest: int, met: CatchmentError) -> TakenUp:
        if isinstance(met, LogLost):
            return began.again(standing, highest, self.endpoints, met)
        at = self.commands.set_aside_at(met)
        if at is None:
            raise met
        return began.behind(standing, highest, self.endpoints, met, at)


def _between(first: Manifest | None, *asked: Between) -> Between:
    """What comes between two turns: `first` once, then the first that any of the others has."""
    due = [first] if first is not None else []

    def next_one(standing: Manifest) -> Manifest | None:
        if due:
            return due.pop()
        return next((found for ask in asked if (found := ask(standing)) is not None), None)

    return next_one
