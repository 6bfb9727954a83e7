"""Rows that the source has no longer, in a table that keeps them: with their last values, marked as deleted."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from catchment.sink.delta.conform import conform
from catchment.sink.delta.layout import DELETED, EPOCH
from catchment.sink.delta.plain.net import Lost
from catchment.wire.keys.keys import KeySet, encode
from catchment.wire.keys.order import last_in_order


def with_deleted(lost: Lost, hit: Iterable[pa.Table], comes: pa.Table, identity: Sequence[str]) -> pa.Table:
    """What comes, and the rows of lost keys, in order of key. `hit`: the table's rows that the changes replace.

    A row has its values from these changes, if they had it before they deleted it, else from the table. Its epoch is
    that of the delete. A row that was deleted before stays as it is.
    """
    if not lost.deletes.num_rows:
        return comes
    newer, dead = KeySet(encode(lost.rows, identity)), KeySet(encode(lost.deletes, identity))
    rows = [conform(lost.rows, comes.schema)]
    for part in hit:
        keys = encode(part, identity)
        rows.append(part.filter(pa.array(dead.contains(keys) & ~newer.contains(keys))))
    had = pa.concat_tables(rows)
    place = dead.find(encode(had, identity))
    before = had[DELETED].fill_null(False).to_numpy()
    epochs = np.where(before, had[EPOCH].to_numpy(), lost.deletes[EPOCH].to_numpy()[place])
    had = had.set_column(had.schema.get_field_index(EPOCH), comes.schema.field(EPOCH), pa.array(epochs))
    marks = pa.array(np.ones(had.num_rows, np.bool_))
    had = had.set_column(had.schema.get_field_index(DELETED), comes.schema.field(DELETED), marks)
    whole = pa.concat_tables([comes, had])
    return whole.take(pa.array(last_in_order(encode(whole, identity)))).combine_chunks()
