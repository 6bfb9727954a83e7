"""Which keys the source still has, as far as the newest version of a plain table tells: their rows would come again."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.model.table import ENDED
from catchment.model.treatment import Mode
from catchment.sink.delta.erasure.sought import Held, Numbers
from catchment.sink.delta.layout import DELETED, EPOCH, identity_columns
from catchment.sink.delta.log.delta_log import Snapshot
from catchment.sink.delta.plain.rows import rows_of
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.vectors import load

Row = Mapping[str, Any]


def living(directory: Location, on: Snapshot, held: Mapping[str, Held]) -> dict[str, Held]:
    """Of the rows that files of a version have, by path, those that are not dead in it. Raises SinkError."""
    found = {}
    for path, of_file in held.items():
        file = on.files.get(path)
        if file is None:
            continue
        dead = np.asarray(load(directory, file.dead).to_array(), np.int64)
        lives = ~np.isin(of_file.rows, dead)
        if np.any(lives):
            found[path] = Held(of_file.rows[lives], of_file.keys[lives], of_file.other[lives])
    return found


def alive(directory: Location, shape: TableShape, live: Mapping[str, Held]) -> Numbers:
    """The keys that the source has, of live rows by path; numbers in order. Raises SinkError."""
    if shape.mode is Mode.MIRROR:
        found = {int(key) for held in live.values() for key in held.keys}
    elif shape.mode is Mode.HISTORY:
        found = {key for key, row in _rows(directory, shape, live) if row[ENDED] is None}
    elif shape.mode is Mode.SOFT_DELETE:
        found = {key for key, row in _rows(directory, shape, live) if not row[DELETED]}
    else:
        found = _not_deleted_last(directory, shape, live)
    return np.asarray(sorted(found), np.int64)


def _not_deleted_last(directory: Location, shape: TableShape, live: Mapping[str, Held]) -> set[int]:
    """The keys of which the newest change is no delete. A chunk and the log of its epoch may bring one row twice."""
    identity = identity_columns(shape)
    newest: dict[tuple[Any, ...], tuple[int, bool, int]] = {}
    for key, row in _rows(directory, shape, live):
        change = (row[EPOCH], not row[DELETED], key)
        of = tuple(row[name] for name in identity)
        newest[of] = max(newest.get(of, change), change)
    return {key for _, lives, key in newest.values() if lives}


def _rows(directory: Location, shape: TableShape, live: Mapping[str, Held]) -> Iterator[tuple[int, Row]]:
    """Each live row with the number of its key."""
    wanted = {*identity_columns(shape), EPOCH, DELETED, ENDED}
    schema = pa.schema([field for field in plain_schema(shape) if field.name in wanted])
    for path, held in live.items():
        parts = rows_of(directory / path, held.positions, schema)
        rows = (row for part in parts for row in part.to_pylist())
        yield from zip(held.keys.tolist(), rows, strict=True)
