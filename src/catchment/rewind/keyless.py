"""Rows whose key cannot be carried: a zero date, or one that no calendar has. Such a date is NULL in the lake, where
two such rows would be one. So the rows are never in the lake, and a row event that takes one away takes nothing from
it.
"""

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import Unsupported
from catchment.model.image import INSERT, OP, SIDE, UNCHECKED, UPDATE
from catchment.rewind.states import AFTER, BEFORE


def must_have_keys(rows: pa.Table, key: tuple[str, ...], where: str) -> None:
    """Raise Unsupported, which begins with `where` (shard and table), for rows of which a key column is NULL."""
    for name in key:
        if count := rows.column(name).null_count:
            raise Unsupported(
                f"{where}: key column {name!r} holds a zero date or one that no calendar has, in {count} rows; "
                "readers would see NULL, and one row for two of these: correct them on the server, or exclude the table"
            )


def apart(images: pa.Table, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table | None]:
    """Images that have a key, and those that have none; None where all have, which costs no look at a row."""
    without = _without(images, key)
    return (images, None) if without is None else (images.filter(pc.invert(without)), images.filter(without))


def with_keys(images: pa.Table, key: tuple[str, ...], where: str) -> pa.Table:
    """Images of rows that have a key. Raises Unsupported where a row without one is written."""
    kept, keyless = apart(images, key)
    if keyless is not None:
        must_have_keys(keyless.filter(pc.equal(keyless.column(SIDE), AFTER)), key, where)
    return kept


def as_inserts(images: pa.Table, key: tuple[str, ...], where: str) -> pa.Table:
    """As `with_keys`, for those who tell changes: an UPDATE of a row without a key brings one that nobody was told of.

    Images in the order of the log, where the sides of an update follow one another.
    """
    without = _without(images, key)
    if without is None:
        return images
    gone = np.asarray(without)
    before = pc.equal(images.column(SIDE), BEFORE).to_numpy()
    ops = images.column(OP).to_numpy()
    comes = ~before & (ops % UNCHECKED == UPDATE) & np.roll(gone & before, 1)
    ops = np.where(comes, ops - UPDATE + INSERT, ops).astype(np.uint8)
    place = images.schema.get_field_index(OP)
    changed = images.set_column(place, images.schema.field(OP), pa.array(ops, images.schema.field(OP).type))
    return with_keys(changed, key, where)


def _without(images: pa.Table, key: tuple[str, ...]) -> pa.ChunkedArray | None:
    """Which images have no key; None where all have one."""
    lacking = [images.column(name) for name in key if images.column(name).null_count]
    return reduce(pc.or_, (column.is_null() for column in lacking)) if lacking else None
