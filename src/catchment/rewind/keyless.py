"""Rows whose key cannot be carried: a zero date, or one that no calendar has. Such a date is NULL in the lake, where
two such rows would be one. So the rows are never in the lake, and a row event that takes one away takes nothing from
it.
"""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import Unsupported
from catchment.model.image import SIDE
from catchment.rewind.states import AFTER


def must_have_keys(rows: pa.Table, key: tuple[str, ...], where: str) -> None:
    """Raise Unsupported, which begins with `where` (shard and table), for rows of which a key column is NULL."""
    for name in key:
        if count := rows.column(name).null_count:
            raise Unsupported(
                f"{where}: key column {name!r} holds a zero date or one that no calendar has, in {count} rows; in the "
                "lake it would be NULL, which no key may be: correct the rows on the server, or exclude the table"
            )


def apart(images: pa.Table, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table | None]:
    """Images that have a key, and those that have none; None where all have, which costs no look at a row."""
    lacking = [images.column(name) for name in key if images.column(name).null_count]
    if not lacking:
        return images, None
    without = reduce(pc.or_, (column.is_null() for column in lacking))
    return images.filter(pc.invert(without)), images.filter(without)


def with_keys(images: pa.Table, key: tuple[str, ...], where: str) -> pa.Table:
    """Images of rows that have a key. Raises Unsupported where a row without one is written."""
    kept, keyless = apart(images, key)
    if keyless is not None:
        must_have_keys(keyless.filter(pc.equal(keyless.column(SIDE), AFTER)), key, where)
    return kept
