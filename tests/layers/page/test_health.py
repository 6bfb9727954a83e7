"""What keeps a lake from being as of now, as a probe for readiness and the head of the page say it."""

import pytest
from msgspec.structs import replace

from catchment.page.health import Readiness
from catchment.state.notes import Trouble
from tests.layers.watch.test_metrics import manifest

STANDING = manifest(1)
T = STANDING.shapes[0].table


def done() -> Readiness:
    """A run whose tables are all copied."""
    found = Readiness()
    shards = {
        shard: replace(state, copies=tuple(replace(copy, done=True) for copy in state.copies))
        for shard, state in STANDING.cut.shards.items()
    }
    found.stands_at(replace(STANDING, cut=replace(STANDING.cut, shards=shards)))
    return found


def test_each_reason_comes_and_goes() -> None:
    assert Readiness().reasons() == ("no epoch yet",)
    found = done()
    assert found.reasons() == ()
    found.rested({"-80": 1})
    assert found.reasons() == ("1 shard is away (-80)",)
    found.in_trouble((Trouble("-80", 0, 3, "ConnectionLost", "no answer", "shard -80"),))
    assert found.reasons() == ("1 shard is away (-80)",)
    found.in_trouble((Trouble("", 0, 3, "StateAway", "no answer", "the state store"),))
    found.rested({})
    (reason,) = found.reasons()
    assert reason.startswith("the state store")
    found.in_trouble(())
    assert found.reasons() == ()


def test_tables_that_are_stale_or_being_copied_are_named() -> None:
    found = Readiness()
    found.stands_at(STANDING)
    assert found.reasons() == (f"1 table is being copied ({T})",)
    found.stands_at(replace(STANDING, stale=(STANDING.stopped(T, 0, "it was altered"),)))
    assert found.reasons() == (f"1 table is stale ({T})",)


@pytest.mark.parametrize(("shards", "said"), [(5, "s4)"), (6, "s4, ...)")])
def test_a_reason_names_five_of_many(shards: int, said: str) -> None:
    found = done()
    found.rested({f"s{number}": 0 for number in range(shards)})
    assert found.reasons()[0].endswith(said)
