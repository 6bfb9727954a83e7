"""From images to states: the net changes of a stretch of log, and a chunk brought to an epoch.

An image row is one side of a row event: SIDE 0 is the row before, 1 the row after. An absent row has no
image. A key update stands in the log as the old key's before image and the new key's after image. So it falls
apart into a delete and an insert by itself. If the last image of a key is a before image, the key is gone. If
the first image of a key is an after image, the key was not there (DESIGN 4).
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.image import DELETED, GROUP, INTERNAL, SEQ, SIDE
from catchment.rewind.retyped import apart_name, source_name
from catchment.wire.keys import keys

BEFORE, AFTER = 0, 1
# With a type, for Arrow infers one at a cost of 0.1 ms, which counts where an epoch has hundreds of tables.
_BEFORE, _AFTER = pa.scalar(BEFORE, pa.uint8()), pa.scalar(AFTER, pa.uint8())

Voids = list[tuple[int, int]]
_DROPPED = -1
_INTERNAL = frozenset(INTERNAL)


def without_voids(images: pa.Table, voids: Voids) -> pa.Table:
    """Images that were not undone; `voids` are half-open ranges of SEQ, ascending."""
    if not voids or images.num_rows == 0:
        return images
    seq = images.column(SEQ).to_numpy()
    starts = np.array([lo for lo, _ in voids], dtype=np.int64)
    ends = np.array([hi for _, hi in voids], dtype=np.int64)
    nearest = np.searchsorted(starts, seq, side="right") - 1
    undone = (nearest >= 0) & (seq < ends[np.maximum(nearest, 0)])
    return images if not undone.any() else images.filter(pa.array(~undone))


def in_commit_order(images: pa.Table, moves: Mapping[int, int | None]) -> pa.Table:
    """Images in the order of the log. Those of XA transactions stand where they count: in the group of the XA
    COMMIT, not of the XA PREPARE. `moves` names that group for each group with such images; None: it counts for
    nothing.

    A decoder hands on the images of one definition of a table together. So a table that was altered back and
    forth comes out of order.
    """
    if not moves and images.num_rows < 2:
        return images
    numbers = images.column(SEQ).to_numpy()
    if not moves:
        in_order = bool((numbers[1:] >= numbers[:-1]).all())
        return images if in_order else images.take(pa.array(np.argsort(numbers, kind="stable")))
    groups = images.column(GROUP).to_numpy()
    known = np.array(sorted(moves), dtype=np.int64)
    targets = np.array([_DROPPED if (to := moves[int(n)]) is None else to for n in known], dtype=np.int64)
    nearest = np.minimum(np.searchsorted(known, groups), len(known) - 1)
    moved = np.where(known[nearest] == groups, targets[nearest], groups)
    order = np.lexsort((numbers, moved))
    order = order[moved[order] != _DROPPED]
    at = images.schema.get_field_index(GROUP)
    return images.set_column(at, images.schema.field(at), pa.array(moved)).take(pa.array(order))


def without_values(images: pa.Table, columns: tuple[str, ...], group: int) -> pa.Table:
    """Images whose values of `columns`, named in any case, are null before a group: it dropped them, and added
    some of them again. A column without a value left is left out.
    """
    earlier = pc.less(images.column(GROUP), group)
    dropped = {name.lower() for name in columns}
    for at, field in reversed(list(enumerate(images.schema))):
        if source_name(field.name).lower() in dropped:
            values = pc.if_else(earlier, pa.scalar(None, field.type), images.column(at))
            gone = values.null_count == images.num_rows
            images = images.remove_column(at) if gone else images.set_column(at, field, values)
    return images


def with_value(images: pa.Table, column: str, value: pa.Scalar, group: int) -> pa.Table:
    """Images that have a value in a column before a group: it added the column, and filled the rows that were there."""
    earlier = pc.less(images.column(GROUP), group)
    null = pa.scalar(None, value.type)
    for at, field in enumerate(images.schema):
        if source_name(field.name).lower() == column.lower() and field.type == value.type:
            return images.set_column(at, field, pc.if_else(earlier, value, images.column(at)))
    name = apart_name(column, value.type) if column in images.schema.names else column
    return images.append_column(pa.field(name, value.type), pc.if_else(earlier, value, null))


def with_name(images: pa.Table, old: str, new: str, group: int) -> pa.Table:
    """Images that have in the column `new` what they had in the column `old` before a group: it renamed the column.

    Both are named in any case. What they had in `new` themselves must be gone, but for what a group before has filled.
    """
    earlier = pc.less(images.column(GROUP), group)
    for name in [name for name in images.schema.names if source_name(name).lower() == old.lower()]:
        at = images.schema.get_field_index(name)
        field, nothing = images.schema.field(at), pa.scalar(None, images.schema.field(at).type)
        moved = pc.if_else(earlier, images.column(at), nothing)
        left = pc.if_else(earlier, nothing, images.column(at))
        gone = left.null_count == images.num_rows
        images = images.remove_column(at) if gone else images.set_column(at, field, left)
        images = _with_those(images, new, moved)
    return images


def _with_those(images: pa.Table, column: str, values: pa.ChunkedArray) -> pa.Table:
    """Images with values in a column, where there are any."""
    if values.null_count == images.num_rows:
        return images
    for at, field in enumerate(images.schema):
        if source_name(field.name).lower() == column.lower() and field.type == values.type:
            return images.set_column(at, field, pc.coalesce(values, images.column(at)))
    name = apart_name(column, values.type) if column in images.schema.names else column
    return images.append_column(pa.field(name, values.type), values)


def behind(images: pa.Table, group: int) -> pa.Table:
    """Images from a group on: it took all rows that were there. No XA transaction is prepared in front of it and
    committed behind, since servers let none pass a TRUNCATE."""
    later = pc.greater_equal(images.column(GROUP), group)
    return images.filter(later)


def last_images(images: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The last image of every key, in the same order."""
    last = keys.last_of_each(keys.encode(images, key)) if images.num_rows > 1 else ()
    return images if images.num_rows in (len(last), 1) else images.take(pa.array(last))


def net(images: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The last state of every key: the row's columns and DELETED; a deleted row has its key and nulls or
    old values.
    """
    return states_of(last_images(images, key))


def states_of(last: pa.Table) -> pa.Table:
    """As `net`, of images of which each key has one."""
    deleted = pc.equal(last.column(SIDE), _BEFORE)
    return last.select(_shown(last)).append_column(DELETED, deleted)


def _shown(images: pa.Table) -> list[str]:
    """The names of a row's own columns."""
    return [name for name in images.schema.names if name not in _INTERNAL]


def states_at(images: pa.Table, key: tuple[str, ...], boundary: int) -> pa.Table:
    """States at an epoch of the keys touched around it, DELETED meaning absent.

    `boundary` is the ordinal of the first group beyond the epoch. The last image before it counts. Where
    there is none, the first image from it on counts, and its before image shows the row as it was.
    """
    groups = images.column(GROUP).to_numpy()
    split = int(np.searchsorted(groups, boundary, side="left"))
    until, beyond = images.slice(0, split), images.slice(split)
    parts = []
    if until.num_rows:
        parts.append(net(until, key))
    if beyond.num_rows:
        encoded = keys.encode(beyond, key)
        first = beyond.take(pa.array(keys.first_of_each(encoded)))
        if until.num_rows:
            known = keys.KeySet(keys.encode(parts[0], key)).contains(keys.encode(first, key))
            first = first.filter(pc.invert(pa.array(known)))
        absent = pc.equal(first.column(SIDE), _AFTER)
        parts.append(first.drop_columns(list(INTERNAL)).append_column(DELETED, absent))
    if not parts:
        return images.drop_columns(list(INTERNAL)).append_column(DELETED, pa.array([], pa.bool_()))
    return pa.concat_tables(parts, promote_options="default")


def rewound(rows: pa.Table, states: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Rows that SELECTs returned, brought to the epoch whose `states` of touched keys are given.

    `states` must already be limited to the ranges that the SELECTs covered. The result is not sorted where
    rows were replaced.
    """
    if states.num_rows == 0:
        return rows
    touched = keys.KeySet(keys.encode(states, key))
    untouched = (
        rows.filter(pc.invert(pa.array(touched.contains(keys.encode(rows, key))))) if rows.num_rows else rows
    )
    present = states.filter(pc.invert(states.column(DELETED))).select(rows.schema.names)
    return pa.concat_tables([untouched, present.cast(rows.schema)])
