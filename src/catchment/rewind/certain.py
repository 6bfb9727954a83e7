"""Whether it is certain what becomes of rows that were read while foreign keys changed rows.

What a SELECT returned has met some of the events in front of a place, nobody knows which. As a rule that makes no
difference to what the row is behind that place (DESIGN 4). The exceptions are looked for here. Pure.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import ForeignKey
from catchment.model.image import SIDE
from catchment.model.table import TableId
from catchment.rewind.lives import Child, Unfollowed
from catchment.rewind.parents import Events, Side, all_valid
from catchment.rewind.states import AFTER
from catchment.wire.keys import keys


def must_have_one_end(child: Child, key: ForeignKey, events: Events) -> None:
    """Raise Unfollowed where what was read may become one thing or another."""
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


def must_not_come_again(child: Child) -> None:
    """Raise Unfollowed where events met rows of a table that is a parent itself, of whose keys a statement made others
    later. Which of the two was read is not known, and so not, which rows went with the first."""
    if child.changes is None or child.side is None or not child.side.images.num_rows:
        return
    met = child.changes.before.filter(pa.array(child.changes.first))
    if keys.KeySet(keys.encode(child.side.images, child.key)).contains(keys.encode(met, child.key)).any():
        raise Unfollowed(child.table, "rows went with others, and came again while rows were read")


def must_know_parents(
    key: ForeignKey,
    sides: Mapping[TableId, Side],
    parents: Callable[[pa.Table], pa.Table],
) -> None:
    """Raise Unfollowed where a statement wrote a row whose parent neither SELECTs nor the log show until then. Such a
    parent went with one of its own in front of the SELECTs, and no event says when. `parents`: the rows of the parent
    that were read and have one of these values, under the names that the key refers to."""
    side = sides[key.child]
    after = pc.equal(side.images.column(SIDE), AFTER).to_numpy()
    written = side.images.select(key.columns).filter(pa.array(after))
    valid = all_valid(written)
    written, places = written.filter(pa.array(valid)), side.places[after][valid]
    if not written.num_rows:
        return
    wanted = keys.encode(written, key.columns)
    logged, known = np.zeros(written.num_rows, bool), np.zeros(written.num_rows, bool)
    if key.parent in sides:
        theirs = sides[key.parent]
        first = keys.first_of_each(keys.encode(theirs.images, key.referenced))
        images = theirs.images.take(pa.array(first))
        at = keys.KeySet(keys.encode(images, key.referenced)).find(wanted)
        known = at >= 0
        came = pc.equal(images.column(SIDE), AFTER).to_numpy()[np.maximum(at, 0)]
        logged = known & (~came | (theirs.places[first][np.maximum(at, 0)] < places))
    rows = parents(written.rename_columns(list(key.referenced)))
    shown = ~known & keys.KeySet(keys.encode(rows, key.referenced)).contains(wanted)
    if not (logged | shown).all():
        raise Unfollowed(key.child, f"rows came below others that had gone by the {key} while rows were read")


def _first_places(key: ForeignKey, events: Events) -> tuple[keys.KeySet, np.ndarray]:
    """The values that went, and the first place of each."""
    order = np.argsort(events.places)
    old = events.old.take(pa.array(order))
    first = keys.first_of_each(keys.encode(old, key.columns))
    return keys.KeySet(keys.encode(old.take(pa.array(first)), key.columns)), events.places[order][first]
