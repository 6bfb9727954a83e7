"""What a loop bears: it waits for what is away, and gives up what fails again and again."""

import threading

import pytest

from catchment.epoch.work import Failed
from catchment.feed.arrivals import Arrivals
from catchment.feed.tries import Tries
from catchment.model import retries
from catchment.model.errors import (
    CatchmentError,
    ConnectionLost,
    CutMissed,
    EngineError,
    SinkAway,
    SinkError,
    StateError,
)
from catchment.watch.troubles import Troubles
from tests.world import records
from tests.world.worlds import SetClocks, put

HOUR = 3600.0


class Stop(threading.Event):
    """Nobody waits for it."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> SetClocks:
    return put(monkeypatch, SetClocks(steady=0.0))


def borne(error: CatchmentError, wait_max: float | None, clocks: SetClocks, every: float = 10.0) -> int:
    """How many tries a loop makes, one each so many seconds, until it gives up; at most those of a day."""
    clocks.steady = 0.0
    tries = Tries(wait_max, Troubles(), Stop())
    for count in range(1, round(24 * HOUR / every)):
        clocks.steady = count * every
        try:
            tries.failed(error, count * every)
        except CatchmentError:
            return count
    return 0


@pytest.mark.parametrize("error", [ConnectionLost("gone"), SinkAway("gone")])
def test_what_is_away_is_waited_for(clocks: SetClocks, error: CatchmentError) -> None:
    assert borne(error, None, clocks) == 0
    assert borne(error, HOUR, clocks) == HOUR / 10
    assert borne(error, 0.0, clocks) == retries.TIMES_MAX + 1


@pytest.mark.parametrize("error", [CutMissed("torn"), EngineError("a worker died")])
def test_what_may_go_well_is_tried_some_times(clocks: SetClocks, error: CatchmentError) -> None:
    assert borne(error, None, clocks) == retries.TIMES_MAX + 1


@pytest.mark.parametrize("error", [SinkError("403"), StateError("damaged")])
def test_what_cannot_pass_is_not_tried_again(clocks: SetClocks, error: CatchmentError) -> None:
    assert borne(error, None, clocks) == 1


def test_a_success_makes_the_next_failure_a_first_one(clocks: SetClocks) -> None:
    tries = Tries(None, Troubles(), Stop())
    for _ in range(3 * retries.TIMES_MAX):
        tries.failed(CutMissed("torn"), 0.0)
        tries.succeeded()


def test_a_lake_that_is_away_is_named_until_it_is_back(clocks: SetClocks) -> None:
    troubles = Troubles()
    tries = Tries(None, troubles, Stop())
    tries.failed(SinkAway("s3://b: no answer"), 0.0)
    assert [one.what for one in troubles.now] == ["the lake is away"]
    tries.succeeded()
    assert troubles.now == ()


def test_no_shard_is_left_out_of_an_epoch_because_the_lake_is_away(clocks: SetClocks) -> None:
    arrivals = Arrivals(records.manifest(1), HOUR)
    arrivals.must_do_without([Failed("-80", ConnectionLost("gone"))], ["80-"], 0.0)
    with pytest.raises(SinkAway):
        arrivals.must_do_without([Failed("-80", SinkAway("gone"))], ["80-"], 0.0)
