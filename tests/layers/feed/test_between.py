"""What comes between two epochs is asked for while a loop waits for the next one, however long the interval is."""

from collections.abc import Callable

import pytest

from catchment import world
from catchment.feed.between import Between
from catchment.model.epoch import Manifest
from catchment.model.errors import SinkAway
from catchment.model.table_state import TableState
from tests.layers.epoch.test_obey import manifest
from tests.world.sim.scheduler import Process, SimWorld

HOUR = 3600.0
STANDING, ORDERED = manifest(TableState.COPYING), manifest(TableState.PAUSED)


class Waiting:
    """A wait for an hour in a world of its own: `seconds` that it took, and what `came` behind it."""

    def __init__(
        self,
        ask: Callable[[], Manifest | None] = lambda: None,
        due: Callable[[], bool] = lambda: False,
        stops_at: float = 2 * HOUR,
    ) -> None:
        self._due, self._stops_at = due, stops_at
        self.asked = 0
        self.came: list[Manifest | None] = []
        simulated = SimWorld(1)
        with world.instead(simulated):
            self._stop = simulated.event()
            outside = Process("loop")
            simulated.spawn(outside, "operator", self._operate)
            self._between = Between(lambda standing: self._ask(ask), self)
            simulated.run(simulated.spawn(outside, "loop", self._wait))

    def _ask(self, ask: Callable[[], Manifest | None]) -> Manifest | None:
        self.asked += 1
        return ask()

    def _operate(self) -> None:
        world.sleep(self._stops_at)
        self._stop.set()

    def _wait(self) -> None:
        began = world.steady_seconds()
        self._between.wait(HOUR, STANDING, self._stop)
        self.seconds = world.steady_seconds() - began
        self.came = [self._between.next(STANDING), self._between.next(STANDING)]

    def due(self) -> bool:
        return self._due()

    def next(self, standing: Manifest) -> Manifest | None:
        raise AssertionError("the loop asks for that")


def test_an_order_ends_it_and_is_obeyed_once() -> None:
    def ordered() -> Manifest | None:
        return given.pop() if given and world.steady_seconds() >= 5 else None

    given = [ORDERED]
    found = Waiting(ordered)
    assert 5 <= found.seconds < 7
    assert found.came == [ORDERED, None]


def test_a_look_that_fails_ends_it_and_is_done_again_by_the_loop() -> None:
    """The loop counts failures, and waits for a lake that is away."""

    def failing() -> Manifest | None:
        if looks.pop():
            raise SinkAway("no answer")
        return ORDERED

    looks = [False, False, True]
    found = Waiting(failing)
    assert found.seconds < 2
    assert found.came == [ORDERED, ORDERED]


def test_rows_to_mend_end_it() -> None:
    assert 5 <= Waiting(due=lambda: world.steady_seconds() >= 5).seconds < 7


@pytest.mark.parametrize(("stops_at", "seconds"), [(90.0, 90.0), (2 * HOUR, HOUR)])
def test_it_lasts_until_its_end_or_until_it_is_to_stop(stops_at: float, seconds: float) -> None:
    found = Waiting(stops_at=stops_at)
    assert found.seconds == pytest.approx(seconds)
    assert found.asked == pytest.approx(seconds, abs=5), "the state store is asked once a second"
    assert found.came == [None, None]
