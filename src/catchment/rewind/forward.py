"""Rows of children that SELECTs returned while parents went, brought forward to the end of the log after their floor.

Keys of which that log has images are as it says, from the last image on. Any other key got no row there, and lost none
by a statement of its own. So a row that no SELECT returned is not there at the end either. One that was returned has
met some of the events and has still to meet the others; which ones, nobody knows. Yet the end is the same (DESIGN 4):
events before the SELECT do nothing to values that they gave, and those after it do what they do. That fails only for
values that went and then came back to other rows, which is looked for here. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import ForeignKey
from catchment.model.image import DELETED, SIDE
from catchment.model.table import TableId
from catchment.rewind.cascades import cascades
from catchment.rewind.lives import Child, Fates, Lake, Unfollowed
from catchment.rewind.parents import Events, Side, all_valid
from catchment.rewind.states import AFTER
from catchment.wire.keys import keys


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
            _must_not_come_again(found.children[key.child])
            if key.child in sides:
                _must_know_parents(key, sides[key.child], trees[key.child])
    for number, events in found.events.items():
        key = foreign_keys[number]
        if key.child in selected:
            _must_have_one_end(found.children[key.child], key, events)
    return {table: fates for table, fates in found.fates().items() if table in selected}


def with_fates(rows: pa.Table, fates: Fates) -> pa.Table:
    """Rows as the log alone leaves them, without those that foreign keys ended, and with the values that they gave."""
    there = rows.append_column(DELETED, pa.array(np.zeros(rows.num_rows, bool)))
    after = fates.applied(there)
    return after.filter(pc.invert(after.column(DELETED))).drop_columns([DELETED])


def _must_have_one_end(child: Child, key: ForeignKey, events: Events) -> None:
    """Raise Unfollowed where what a SELECT returned may become one thing or another."""
    moved = ~events.ends
    if not moved.any():
        return
    if set(key.columns) & set(child.key):
        # A row may have left the range of one SELECT and come to that of another.
        raise Unfollowed(child.table, f"the {key} changed its primary key")
    went, first = _first_places(key, events)
    moved &= all_valid(events.new)
    new, places = events.new.filter(pa.array(moved)), events.places[moved]
    at = went.find(keys.encode(new, key.columns))
    came_back = (at >= 0) & (first[np.maximum(at, 0)] < places)
    again, rows = new.filter(pa.array(came_back)), child.kept
    if again.num_rows == 0 or rows is None:
        return
    rows = rows.filter(pa.array(all_valid(rows.select(key.columns))))
    if keys.KeySet(keys.encode(again, key.columns)).contains(keys.encode(rows, key.columns)).any():
        raise Unfollowed(child.table, f"values of the {key} went and came back while rows were read")


def _must_not_come_again(tree: Child) -> None:
    """Raise Unfollowed where events met rows of a tree of whose keys a statement made others later. Which of the two a
    SELECT returned is not known, and so not, which rows went with the first."""
    if tree.changes is None or tree.side is None or not tree.side.images.num_rows:
        return
    met = tree.changes.before.filter(pa.array(tree.changes.first))
    if keys.KeySet(keys.encode(tree.side.images, tree.key)).contains(keys.encode(met, tree.key)).any():
        raise Unfollowed(tree.table, "rows went with others, and came again while rows were read")


def _must_know_parents(key: ForeignKey, side: Side, rows: pa.Table) -> None:
    """Raise Unfollowed where a statement wrote a row whose parent neither the SELECTs nor the log show until then. Such
    a parent went with one of its own in front of the SELECTs, and no event says when."""
    after = pc.equal(side.images.column(SIDE), AFTER).to_numpy()
    written = side.images.select(key.columns).filter(pa.array(after))
    known = all_valid(written)
    written, places = written.filter(pa.array(known)), side.places[after][known]
    if not written.num_rows:
        return
    wanted = keys.encode(written, key.columns)
    first = keys.first_of_each(keys.encode(side.images, key.referenced))
    images = side.images.take(pa.array(first))
    at = keys.KeySet(keys.encode(images, key.referenced)).find(wanted)
    came = after[first][np.maximum(at, 0)]
    logged = (at >= 0) & (~came | (side.places[first][np.maximum(at, 0)] < places))
    shown = (at < 0) & keys.KeySet(keys.encode(rows, key.referenced)).contains(wanted)
    if not (logged | shown).all():
        raise Unfollowed(key.child, f"rows came below others that had gone by the {key} while rows were read")


def _first_places(key: ForeignKey, events: Events) -> tuple[keys.KeySet, np.ndarray]:
    """The values that went, and the first place of each."""
    order = np.argsort(events.places)
    old = events.old.take(pa.array(order))
    first = keys.first_of_each(keys.encode(old, key.columns))
    return keys.KeySet(keys.encode(old.take(pa.array(first)), key.columns)), events.places[order][first]
