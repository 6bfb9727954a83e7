"""What a log says of the parents of foreign keys: which went, and which got another key. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.image import GROUP, OP, SEQ, SIDE, UNCHECKED, UPDATE
from catchment.model.table import TableId
from catchment.rewind.states import BEFORE

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The images of one table in a stretch, in the order in which they count, without those that were undone. `places`:
    of each. `key`: by which the lake tells its rows apart."""

    images: pa.Table
    places: Places
    key: tuple[str, ...]


@dataclass(frozen=True)
class Events:
    """Parents that went, or whose key changed: their values under the child's names, the new ones, the places, and
    whether the children go."""

    old: pa.Table
    new: pa.Table
    places: Places
    ends: npt.NDArray[np.bool_]

    def __add__(self, other: "Events") -> "Events":
        return Events(
            pa.concat_tables([self.old, other.old]),
            pa.concat_tables([self.new, other.new]),
            np.concatenate([self.places, other.places]),
            np.concatenate([self.ends, other.ends]),
        )

    def same(self, other: "Events") -> bool:
        return (
            np.array_equal(self.places, other.places)
            and np.array_equal(self.ends, other.ends)
            and self.old.equals(other.old)
            and self.new.equals(other.new)
        )


def sides_of(
    images: Mapping[TableId, pa.Table], row_keys: Mapping[TableId, tuple[str, ...]]
) -> dict[TableId, Side]:
    """The sides of tables, with even places in the order in which the images of all of them count."""
    tables = list(images)
    if not tables:
        return {}
    groups = np.concatenate([images[table].column(GROUP).to_numpy() for table in tables])
    numbers = np.concatenate([images[table].column(SEQ).to_numpy() for table in tables])
    places = np.empty(len(groups), np.int64)
    places[np.lexsort((numbers, groups))] = 2 * np.arange(len(groups), dtype=np.int64)
    ends = np.cumsum([images[table].num_rows for table in tables])[:-1]
    apart = dict(zip(tables, np.split(places, ends), strict=True))
    return {table: Side(found, apart[table], row_keys[table]) for table, found in images.items()}


def events_of(key: ForeignKey, side: Side) -> Events:
    """What the log says of a key's parents."""
    images = side.images
    before = pc.and_(pc.equal(images.column(SIDE), BEFORE), pc.less(images.column(OP), UNCHECKED))
    at = np.flatnonzero(before.to_numpy())
    told = images.take(pa.array(at))
    updated = pc.equal(told.column(OP), UPDATE).to_numpy()
    after = np.minimum(at + updated, max(0, images.num_rows - 1))  # the image behind that of an update
    return caused(
        key,
        told.select(key.referenced),
        images.take(pa.array(after)).select(key.referenced),
        side.places[at],
        ~updated,
    )


def caused(
    key: ForeignKey, old: pa.Table, new: pa.Table, places: Places, gone: npt.NDArray[np.bool_]
) -> Events:
    """What parents that went or changed do to the children of a key."""
    known = all_valid(old)
    moved = ~_same(old, new)
    acts = known & np.where(gone, key.on_delete is not Does.KEEP, moved & (key.on_update is not Does.KEEP))
    does = np.where(gone, key.on_delete is Does.FORGET, key.on_update is Does.FORGET)[acts]
    at = pa.array(np.flatnonzero(acts))
    old, new = (table.take(at).rename_columns(list(key.columns)) for table in (old, new))
    empty = pa.array(does)
    for number, field_ in enumerate(new.schema):
        values = pc.if_else(empty, pa.scalar(None, field_.type), new.column(number))
        new = new.set_column(number, field_, values)
    ends = gone[acts] & (key.on_delete is Does.FOLLOW)
    return Events(old, new, places[acts], ends)


def all_valid(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """The rows without a NULL: others have no parent."""
    valid = np.ones(rows.num_rows, bool)
    for column in rows.columns:
        valid &= pc.is_valid(column).to_numpy()
    return valid


def _same(left: pa.Table, right: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether rows are equal; a NULL equals none."""
    same = np.ones(left.num_rows, bool)
    for one, other in zip(left.columns, right.columns, strict=True):
        same &= pc.fill_null(pc.equal(one, other), False).to_numpy()
    return same
