"""Values that rows of a plain table have by its shape, and that no log has brought.

Where a shard has dropped a column that others keep, its old rows lose their values. Where a column came with a value,
older rows have that; where it was renamed, what they have in the former column. Where a column's type became wider,
older files have its values in the narrower one.

Catchment's own reader goes by the table's shape. Other readers know no shapes, so a settle writes such rows once more.
The table's properties say what has been done.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.fill import Fill
from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import EPOCH, SHARD, arrow_schema, former_types
from catchment.sink.delta.log.actions import MetaData
from catchment.sink.delta.log.schemas import arrow_of
from catchment.wire.cells.types import scalar_of

_TORN, _FILLED = "catchment.torn", "catchment.filled"
_BATCH_ROWS = 1 << 17

# Physical columns, each with the shards that have dropped it.
Torn = dict[str, list[str]]


class Amended(msgspec.Struct, frozen=True):
    """Columns that some shards have dropped and others keep, what columns came with, and types that columns have and
    older files have not. `lent`: columns, with their types, that the table has no more, and others came with."""

    torn: Torn
    fills: tuple[Fill, ...]
    types: dict[str, pa.DataType] = {}
    lent: dict[str, pa.DataType] = {}

    def __bool__(self) -> bool:
        return bool(self.torn or self.fills or self.types)

    @property
    def types_alone(self) -> "Amended":
        """What leaves every value as it is."""
        return Amended({}, (), self.types)


def amended_in(shape: TableShape) -> Amended:
    """What a shape says of rows that the log does not."""
    torn = {c.physical: sorted(c.missing) for c in shape.kept if c.torn}
    kept = {c.physical for c in shape.kept}
    schema = arrow_schema(shape)
    types = {name: schema.field(name).type for name in former_types(shape) if name in kept}
    fills = _leading_to(kept, shape.fills)
    lent = {fill.source: schema.field(fill.source).type for fill in fills if fill.source not in {"", *kept}}
    return Amended(torn, fills, types, lent)


def _leading_to(columns: set[str], fills: Iterable[Fill]) -> tuple[Fill, ...]:
    """The fills of these columns, and those of columns that these came with."""
    known, left = tuple(fill for fill in fills if fill.column in columns), tuple(fills)
    sources = {fill.source for fill in known} - {"", *columns}
    return known + _leading_to(sources, left) if sources else known


def not_written(amended: Amended, metadata: MetaData) -> Amended:
    """That of it which the table's files do not have yet."""
    done = msgspec.json.decode(metadata.configuration.get(_TORN, "{}"), type=Torn)
    left = {name: sorted(set(shards) - set(done.get(name, ()))) for name, shards in amended.torn.items()}
    filled = msgspec.json.decode(metadata.configuration.get(_FILLED, "[]"), type=tuple[Fill, ...])
    known = {(fill.column, shard, fill.before) for fill in filled for shard in fill.shards}
    fills = (
        msgspec.structs.replace(
            fill, shards=tuple(s for s in fill.shards if (fill.column, s, fill.before) not in known)
        )
        for fill in amended.fills
    )
    torn = {name: shards for name, shards in left.items() if shards}
    left_fills = tuple(fill for fill in fills if fill.shards)
    sources = {fill.source for fill in left_fills}
    lent = {name: kind for name, kind in amended.lent.items() if name in sources}
    return Amended(torn, left_fills, _others(amended, metadata), lent)


def _others(amended: Amended, metadata: MetaData) -> dict[str, pa.DataType]:
    """The types that columns of the table have not yet."""
    if not amended.types:
        return {}
    held = arrow_of(metadata.schema_string)
    return {
        name: kind
        for name, kind in amended.types.items()
        if name in held.names and held.field(name).type != kind
    }


def noted(amended: Amended, metadata: MetaData) -> MetaData:
    """The table's properties once all of it is written."""
    said = {_TORN: amended.torn, _FILLED: amended.fills}
    told = {name: msgspec.json.encode(value).decode() for name, value in said.items() if value}
    return msgspec.structs.replace(metadata, configuration=metadata.configuration | told)


def schema_read(schema: pa.Schema, amended: Amended) -> pa.Schema:
    """The columns that rows must have to be told what others came with: those of the table, and those that are lent."""
    return pa.schema([*schema, *(pa.field(name, kind) for name, kind in amended.lent.items())])


def as_told(rows: pa.Table, amended: Amended) -> pa.Table:
    """The rows with the values that they have by the shape, without columns that are lent. A shard that has dropped a
    column has no value of it.

    Of rows that were told once it is not known any more what renamed columns came with.
    """
    names = dict.fromkeys(fill.column for fill in amended.fills)
    told = {name: _value(rows, name, amended.fills) for name in names if name in rows.column_names}
    for name, values in told.items():
        rows = _with(rows, name, values)
    for name, shards in amended.torn.items():
        if name in rows.column_names:
            gone = pc.is_in(rows[SHARD], pa.array(shards, pa.string()))
            rows = _with(rows, name, pc.if_else(gone, pa.scalar(None, rows[name].type), rows[name]))
    return rows.drop_columns([name for name in amended.lent if name in rows.column_names])


def _with(rows: pa.Table, column: str, values: pa.ChunkedArray) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, rows.schema.field(place), values)


def _value(rows: pa.Table, column: str, fills: Sequence[Fill]) -> pa.ChunkedArray:
    """What rows have in a column by these fills, each of which may take what they have in another one."""
    values = rows[column]
    for fill in fills:
        if fill.column == column:
            older = _older(rows, fill)
            values = pc.if_else(older, _came_with(rows, fill, fills, older, values.type), values)
    return values


def _came_with(
    rows: pa.Table, fill: Fill, fills: Sequence[Fill], older: pa.ChunkedArray, kind: pa.DataType
) -> pa.ChunkedArray | pa.Scalar:
    if not fill.source:
        return scalar_of(fill.value, kind)
    had = _value(rows, fill.source, fills)
    # Of others it may have values that the type does not have.
    return pc.if_else(older, had, pa.scalar(None, had.type)).cast(kind)


def _older(rows: pa.Table | pa.RecordBatch, fill: Fill) -> pa.ChunkedArray | pa.Array:
    """Of each row whether it is older than what a column came with."""
    mine = pc.is_in(rows[SHARD], pa.array(fill.shards, pa.string()))
    return pc.and_(mine, pc.less(rows[EPOCH], fill.before))


def is_narrower(path: Location, amended: Amended) -> bool:
    """Whether a file has a column in another type than the shape says. Raises SinkError."""
    with lake_parquet(path) as file:
        return _is_narrower(file.schema_arrow, amended)


def _is_narrower(schema: pa.Schema, amended: Amended) -> bool:
    return any(
        name in schema.names and schema.field(name).type != kind for name, kind in amended.types.items()
    )


def rows_to_write(path: Location, amended: Amended, *, narrower: bool = False) -> BitMap:
    """Row numbers of a file, from 0, that have other values than the shape says; all of one that `is_narrower`, if that
    is asked for. Raises SinkError."""
    found = BitMap()
    first = 0
    with lake_parquet(path) as file:
        if narrower and _is_narrower(file.schema_arrow, amended):
            return BitMap(range(file.metadata.num_rows))
        held = [name for name in amended.torn if name in file.schema_arrow.names]
        if not held and not amended.fills:
            return found
        for batch in file.iter_batches(_BATCH_ROWS, columns=[SHARD, EPOCH, *held]):
            for stale in _stale(batch, amended, held):
                numbers = np.flatnonzero(stale.to_numpy(zero_copy_only=False)) + first
                found |= BitMap(numbers.astype(np.uint32))
            first += batch.num_rows
    return found


def _stale(batch: pa.RecordBatch, amended: Amended, held: list[str]) -> Iterator[pa.Array]:
    for name in held:
        gone = pc.is_in(batch[SHARD], pa.array(amended.torn[name], pa.string()))
        yield pc.and_(gone, pc.is_valid(batch[name]))
    yield from (_older(batch, fill) for fill in amended.fills)
