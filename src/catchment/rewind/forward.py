"""Rows of children that SELECTs returned while parents went, brought forward to the end of the log after their floor.

Keys of which that log has images are as it says, from the last image on. Any other key got no row there, and lost none
by a statement of its own. So a row that no SELECT returned is not there at the end either. One that was returned has
met some of the events and has still to meet the others; which ones, nobody knows. Yet the end is the same (DESIGN 4):
events before the SELECT do nothing to values that they gave, and those after it do what they do. That fails only for
values that went and then came back to other rows, which is looked for here. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import ForeignKey
from catchment.model.image import DELETED
from catchment.model.table import TableId
from catchment.rewind.cascades import cascades
from catchment.rewind.certain import must_have_one_end, must_know_parents, must_not_come_again
from catchment.rewind.lives import Fates, Lake
from catchment.rewind.parents import Side


def forward(
    foreign_keys: Sequence[ForeignKey],
    sides: Mapping[TableId, Side],
    row_keys: Mapping[TableId, tuple[str, ...]],
    rows: Lake,
    selected: Collection[TableId],
    trees: Mapping[TableId, pa.Table] = MappingProxyType({}),
) -> dict[TableId, Fates]:
    """What became of `selected` tables up to the end of a stretch. `rows`: those that SELECTs returned of these, and of
    other children those at the beginning of the stretch. `trees`: all rows, as of one moment, of selected tables that
    are their own parents.

    Raises Unfollowed, also where one state at the end does not follow.
    """
    found = cascades(foreign_keys, sides, row_keys, rows, selected)
    for key in foreign_keys:
        if key.child == key.parent and key.child in selected:
            must_not_come_again(found.children[key.child])
            if key.child in sides:
                must_know_parents(key, sides, partial(_all_of, trees[key.child]))
    for number, events in found.events.items():
        key = foreign_keys[number]
        if key.child in selected:
            must_have_one_end(found.children[key.child], key, events)
    return {table: fates for table, fates in found.fates().items() if table in selected}


def _all_of(tree: pa.Table, _: pa.Table) -> pa.Table:
    return tree


def with_fates(rows: pa.Table, fates: Fates) -> pa.Table:
    """Rows as the log alone leaves them, without those that foreign keys ended, and with the values that they gave."""
    there = rows.append_column(DELETED, pa.array(np.zeros(rows.num_rows, bool)))
    after = fates.applied(there)
    return after.filter(pc.invert(after.column(DELETED))).drop_columns([DELETED])
