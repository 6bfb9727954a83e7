"""Orders obeyed by a pure function: every move is a legal one, and to obey again changes nothing."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.epoch.obey import Obeyed, obey
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.order import Action, Kept, Order
from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import Copy, ShardState
from catchment.model.stale import Stale
from catchment.model.table import TableId
from catchment.model.table_state import MOVES, Cause, TableState, state_of
from tests.layers.sink.model import INT, shape

T, U = TableId("shop", "t"), TableId("shop", "u")
SHARDS = ("-80", "80-")
EPOCH = epoch_number(1_790_000_000)
NOW = 1_790_000_001_000_000
ACTIONS = (Action.START, Action.PAUSE, Action.RESUME, Action.RESTART)
COPIES = {
    TableState.COPYING: Copy(T, copied=(5,), rows=5),
    TableState.PAUSED: Copy(T, copied=(5,), rows=5, paused=True),
    TableState.FOLLOWING: Copy(T, done=True, rows=9),
    TableState.RENEWING: Copy(T),
    TableState.HALTED: Copy(T, paused=True),
}


def manifest(state: TableState) -> Manifest:
    """A feed of two tables, of which the first stands so."""
    own = (COPIES[state],) if state in COPIES else ()
    position = Position(LogOffset("binlog.000001", 4), 1, Server(1, "db", 3306, ""), GtidList(()))
    states = {s: ShardState(position, None, (*own, Copy(U, done=True))) for s in SHARDS}
    stale = (Stale(T, EPOCH - 1, NOW, SHARDS, "it was truncated"),)
    shapes = [shape(one.name, {"id": INT}, ("id",)) for one in (*([T] if own else []), U)]
    stands = state in (TableState.STALE, TableState.RENEWING, TableState.HALTED)
    return Manifest(
        "shop", EPOCH - 1, 0, Cut(EPOCH, NOW, states), tuple(shapes), (), stale=stale if stands else ()
    )


def ordered(standing: Manifest, *orders: tuple[Action, str]) -> Obeyed:
    kept = [
        Kept(number, Order(action, "ada", NOW, T, shard)) for number, (action, shard) in enumerate(orders, 1)
    ]
    return obey(standing, kept, 1, NOW)


STATES = [state for state in TableState if state not in (TableState.WAITING, TableState.LEFT)]


@pytest.mark.parametrize("state", STATES)
def test_the_manifests_of_this_test_stand_so(state: TableState) -> None:
    assert state_of(manifest(state), T) is state


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", STATES)
def test_each_order_moves_as_the_table_of_moves_says(state: TableState, action: Action) -> None:
    standing = manifest(state)
    obeyed = ordered(standing, (action, ""))
    after = obeyed.manifest or standing
    moved = MOVES[state].get(Cause(action.value))
    assert state_of(after, T) is (moved or state)
    if moved not in (None, state):
        assert obeyed.answers[0].done
    if moved is None and not obeyed.answers[0].done:
        assert state.value in obeyed.answers[0].said
    assert state_of(after, U) is TableState.FOLLOWING


@given(
    st.sampled_from(STATES),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(["", *SHARDS])), max_size=8),
)
def test_to_obey_again_changes_nothing(state: TableState, orders: Sequence[tuple[Action, str]]) -> None:
    standing = manifest(state)
    for order in orders:
        once = ordered(standing, order)
        if once.manifest is None:
            continue
        assert once.manifest.previous == standing.epoch
        assert once.manifest.epoch > standing.epoch
        again = ordered(once.manifest, order)
        assert again.manifest is None
        assert again.answers[0].done
        standing = once.manifest


@pytest.mark.parametrize("state", [TableState.COPYING, TableState.FOLLOWING, TableState.PAUSED])
def test_a_restart_stands_as_of_now(state: TableState) -> None:
    after = ordered(manifest(state), (Action.RESTART, "")).manifest
    assert after is not None
    (stale,) = after.stale
    assert (stale.epoch, stale.shards, stale.asked) == (EPOCH, SHARDS, True)
    assert "ada" in stale.reason
    assert {one.table for one in after.shapes} == {U}


def test_a_restart_of_what_is_renewed_stands_as_before() -> None:
    after = ordered(manifest(TableState.RENEWING), (Action.RESTART, "")).manifest
    assert after is not None
    assert [one.epoch for one in after.stale] == [EPOCH - 1]


def test_a_copy_is_paused_on_one_shard() -> None:
    after = ordered(manifest(TableState.COPYING), (Action.PAUSE, "80-")).manifest
    assert after is not None
    assert [state_of(after, T, shard) for shard in SHARDS] == [TableState.COPYING, TableState.PAUSED]
    assert state_of(after, T) is TableState.COPYING
    assert [state.idle for state in after.cut.shards.values()] == [False, True]


@pytest.mark.parametrize(
    ("order", "said"),
    [((Action.PAUSE, "nowhere"), "no shard nowhere"), ((Action.RESTART, "80-"), "give no shard")],
)
def test_what_cannot_be_is_refused(order: tuple[Action, str], said: str) -> None:
    obeyed = ordered(manifest(TableState.COPYING), order)
    assert obeyed.manifest is None
    assert not obeyed.answers[0].done
    assert said in obeyed.answers[0].said


def test_a_run_ends_by_an_order_that_is_for_it() -> None:
    stop = Order(Action.STOP, "ada", NOW, fence=7)
    standing = manifest(TableState.FOLLOWING)
    assert obey(standing, [Kept(1, stop)], 7, NOW).stops
    late = obey(standing, [Kept(1, stop)], 8, NOW)
    assert not late.stops
    assert not late.answers[0].done
