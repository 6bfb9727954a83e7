"""Which orders to mend make sense, and the epoch that carries them out: it ends where the one before does."""

import pytest
from msgspec.structs import replace

from catchment.epoch.mend import mended, why_not
from catchment.epoch.work import FewRows, Output
from catchment.model.chunk import Chunk
from catchment.model.epoch import DataFile, Part
from catchment.model.order import Action, Order
from catchment.model.table_state import TableState
from tests.layers.epoch.test_obey import NOW, STATES, T, U, manifest

CHUNKS = (Chunk("-80", T, None, (5,)), Chunk("-80", T, (5,), None, last=True))
ORDER = Order(Action.MEND, "ada", NOW, T, "-80", chunks=CHUNKS)


@pytest.mark.parametrize("state", STATES)
def test_a_table_is_mended_where_it_follows_the_log(state: TableState) -> None:
    for order in (ORDER, replace(ORDER, shard="", chunks=())):
        why = why_not(manifest(state), order)
        assert (why == "") is (state is TableState.FOLLOWING)
        assert not why or why.startswith(f"it is {state.value}")


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (replace(ORDER, table=None), "no table"),
        (replace(ORDER, chunks=()), "chunks without their shard"),
        (replace(ORDER, shard=""), "chunks without their shard"),
        (replace(ORDER, shard="nowhere"), "no shard nowhere"),
        (replace(ORDER, shard="80-"), "another table or shard"),
        (replace(ORDER, table=U), "another table or shard"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(order: Order, why: str) -> None:
    assert why in why_not(manifest(TableState.FOLLOWING), order)


def test_the_epoch_ends_where_the_one_before_does() -> None:
    standing = manifest(TableState.FOLLOWING)
    file = DataFile("f", 1, 3, Part.CHANGES, "")
    outputs = [Output(T, Part.CHANGES, FewRows(ORDER), 2, 1), Output(T, Part.CHANGES, file, 4, 0)]
    after = mended(standing, standing.epoch + 1, outputs, {T: [file]})
    assert (after.previous, after.epoch) == (standing.epoch, standing.epoch + 1)
    assert after.cut.shards == standing.cut.shards
    assert after.cut.time_us == standing.cut.time_us
    (delta,) = after.deltas
    assert (delta.shape.table, delta.files, delta.upserts, delta.deletes) == (T, (file,), 6, 1)
    assert after.changes == 7
