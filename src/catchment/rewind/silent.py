"""Images of what foreign keys did to children in a stretch of log, which has none of that.

A view shows the rows as of one moment, which lies between the beginning of the stretch and a place within it: the log
up to the beginning is visible to it, and nothing behind that place is. So from that place on it is known of each row
what it was (DESIGN 4), and each row that an event meets has an image before and, unless it went, one after. These
count where the image of the parent stands. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from catchment.model.foreign_key import ForeignKey
from catchment.model.image import DELETE, GROUP, OP, SEQ, SIDE, UPDATE
from catchment.model.table import TableId
from catchment.rewind.cascades import Cascades, cascades
from catchment.rewind.certain import must_have_one_end, must_know_parents, must_not_come_again
from catchment.rewind.lives import Changes, Fates, Lake
from catchment.rewind.parents import Side
from catchment.rewind.states import AFTER, BEFORE

Columns = Mapping[TableId, tuple[str, ...]]


@dataclass(frozen=True)
class Silent:
    """What foreign keys did to children. `images`: rows before and after, in the order in which that happened, each
    with GROUP and SEQ of the image of the parent that went or changed. `fates`: what became of rows of which the log
    says nothing later."""

    images: Mapping[TableId, pa.Table]
    fates: Mapping[TableId, Fates]


def silent(
    foreign_keys: Sequence[ForeignKey],
    sides: Mapping[TableId, Side],
    row_keys: Columns,
    view: Lake,
    columns: Columns,
    behind: int,
) -> Silent:
    """What the keys did in a stretch. `sides`: the images of the stretch; `row_keys` and `columns`: of all children.
    `behind`: the first group behind all that the view shows. Only of images from there on it is certain what they are.

    Raises Unfollowed.
    """
    numbers = _Numbers.of(sides)
    moment = 2 * int(np.searchsorted(numbers.groups, behind))
    found = cascades(foreign_keys, sides, row_keys, view, row_keys.keys(), columns, moment)
    changes = {table: child.changes for table, child in found.children.items()}
    return Silent(
        {table: numbers.images(one) for table, one in changes.items() if one is not None}, found.fates()
    )


def must_be_clear(
    foreign_keys: Sequence[ForeignKey], sides: Mapping[TableId, Side], row_keys: Columns, view: Lake
) -> None:
    """Raise Unfollowed where a view does not tell what rows are behind a stretch. `sides`: images of all that it may
    show or not."""
    found: Cascades = cascades(foreign_keys, sides, row_keys, view, row_keys.keys())
    for number, events in found.events.items():
        key = foreign_keys[number]
        must_have_one_end(found.children[key.child], key, events)
    if not found.events:
        return
    for key in foreign_keys:
        if key.parent not in found.children:
            continue
        must_not_come_again(found.children[key.parent])
        if key.child in sides:
            parents = replace(key, child=key.parent, columns=key.referenced)
            must_know_parents(key, sides, partial(view, parents))


@dataclass(frozen=True)
class _Numbers:
    """GROUP and SEQ of the images of a stretch, by their places."""

    groups: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sides: Mapping[TableId, Side]) -> "_Numbers":
        count = sum(side.images.num_rows for side in sides.values())
        groups, numbers = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for side in sides.values():
            groups[side.places // 2] = side.images.column(GROUP).to_numpy()
            numbers[side.places // 2] = side.images.column(SEQ).to_numpy()
        return cls(groups, numbers)

    def images(self, changes: Changes) -> pa.Table:
        """The rows of changes as images."""
        stays = np.flatnonzero(~changes.ended)
        rows = pa.concat_tables([changes.before, changes.after.take(pa.array(stays))])
        which = np.concatenate([np.arange(len(changes.places)), stays])
        side = np.concatenate([np.full(len(changes.places), BEFORE), np.full(len(stays), AFTER)])
        order = np.lexsort((side, which, changes.places[which]))
        which, side = which[order], side[order]
        at = changes.places[which] // 2
        own = {
            SIDE: pa.array(side, pa.uint8()),
            OP: pa.array(np.where(changes.ended[which], DELETE, UPDATE), pa.uint8()),
            SEQ: pa.array(self.numbers[at], pa.int64()),
            GROUP: pa.array(self.groups[at], pa.int64()),
        }
        rows = rows.take(pa.array(order))
        for name, values in own.items():
            rows = rows.append_column(name, values)
        return rows
