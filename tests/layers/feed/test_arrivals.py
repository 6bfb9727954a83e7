"""Epochs close without a shard that holds up itself, and such a shard is tried again after pauses."""

import pytest
from msgspec.structs import replace

from catchment.epoch.work import Failed
from catchment.feed.arrivals import Arrivals
from catchment.model.cut import Tick
from catchment.model.errors import (
    CatchmentError,
    ConnectionLost,
    CorruptLog,
    Diverged,
    HeldUp,
    OtherServer,
    ProgramFault,
    SchemaChangeFails,
    Unsupported,
)
from tests.world import records
from tests.world.worlds import SetClocks, put

HOUR = 3600.0
MANIFEST = records.manifest(1)
STATE = MANIFEST.cut.shards["-80"]
STANDING = replace(MANIFEST, cut=replace(MANIFEST.cut, shards={"-80": STATE, "80-": STATE}))
TICK = Tick(2, 0, 0, {"-80": records.offset(2), "80-": records.offset(2)})
ALONE = Tick(2, 0, 0, {"80-": records.offset(2)})


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> SetClocks:
    return put(monkeypatch, SetClocks(steady=0.0))


@pytest.fixture
def arrivals(clocks: SetClocks) -> Arrivals:
    return Arrivals(STANDING, HOUR, bears=True)


def fails(arrivals: Arrivals, error: CatchmentError, began: float = 0.0) -> None:
    arrivals.must_do_without([Failed("-80", error)], ["80-"], began)
    arrivals.absent(ALONE, ["80-"])


@pytest.mark.parametrize("error", [OtherServer("399"), Unsupported("text"), CorruptLog("torn")])
def test_a_shard_that_a_person_has_to_mend_is_left_out_for_a_while(
    arrivals: Arrivals, clocks: SetClocks, error: CatchmentError
) -> None:
    fails(arrivals, error)
    assert arrivals.of(TICK) == ALONE
    clocks.steady = 0.6
    assert arrivals.of(TICK) == TICK


def test_its_pauses_grow_until_it_arrives(arrivals: Arrivals, clocks: SetClocks) -> None:
    now = 0.0
    for pause in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0):
        fails(arrivals, OtherServer("399"), now)
        clocks.steady = now + pause - 0.25
        assert arrivals.of(TICK) == ALONE
        clocks.steady = now = now + pause
        assert arrivals.of(TICK) == TICK
    arrivals.absent(TICK, ["-80", "80-"])
    fails(arrivals, OtherServer("399"), now)
    clocks.steady = now + 0.5
    assert arrivals.of(TICK) == TICK


def test_a_try_that_takes_long_is_made_seldom(arrivals: Arrivals, clocks: SetClocks) -> None:
    clocks.steady = 20.0
    fails(arrivals, Unsupported("text, at the end of a long log"), began=0.0)
    clocks.steady = 219.0
    assert arrivals.of(TICK) == ALONE
    clocks.steady = 220.0
    assert arrivals.of(TICK) == TICK


def test_what_does_not_answer_is_tried_at_once(arrivals: Arrivals) -> None:
    fails(arrivals, ConnectionLost("gone"))
    assert arrivals.of(TICK) == TICK


@pytest.mark.parametrize("error", [Diverged("reset"), ProgramFault("bug"), SchemaChangeFails("by policy")])
def test_no_epoch_closes_over_what_is_not_the_shards_own(arrivals: Arrivals, error: CatchmentError) -> None:
    with pytest.raises(type(error)):
        fails(arrivals, error)


def test_a_run_that_is_to_end_does_not_wait_for_a_person(clocks: SetClocks) -> None:
    with pytest.raises(OtherServer):
        fails(Arrivals(STANDING, HOUR), OtherServer("399"))


def test_without_any_other_shard_and_after_long_it_is_waited_for(
    arrivals: Arrivals, clocks: SetClocks
) -> None:
    with pytest.raises(HeldUp, match="399") as held:
        arrivals.must_do_without([Failed("-80", OtherServer("399"))], [], 0.0)
    assert held.value.exit_code == OtherServer.exit_code
    with pytest.raises(HeldUp):
        arrivals.of(replace(TICK, offsets={"-80": records.offset(2)}))
    clocks.steady = HOUR
    with pytest.raises(HeldUp, match="399"):
        fails(arrivals, OtherServer("399"), HOUR)
