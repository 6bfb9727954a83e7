"""The SELECTs of a group of chunks, one after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from catchment import world
from catchment.epoch.work import CopiedChunk
from catchment.model.chunk import Chunk
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import TableShape
from catchment.model.errors import (
    ConnectionLost,
    CorruptResult,
    Diverged,
    OtherServer,
    ServerSaid,
    SourceError,
)
from catchment.model.table import Table, TableId
from catchment.rewind.keyless import must_have_keys
from catchment.source.catalog import read_table
from catchment.source.select import select_chunk
from catchment.source.session import Session
from catchment.wire.cells.masks import ColumnMasks

Read = tuple[CopiedChunk, pa.Table]


@dataclass(frozen=True)
class Selected:
    """Rows of the chunks, per table an unbroken run from the first on; and the chunks that are refused."""

    reads: dict[TableId, list[Read]] = field(default_factory=dict)
    refused: list[tuple[Chunk, str]] = field(default_factory=list)


def select_all(
    chunks: Sequence[Chunk],
    shapes: Mapping[TableId, TableShape],
    mask_key: MaskKey | None,
    opened: Callable[[], Session],
) -> Selected:
    """SELECT chunks of one shard. `opened` gives a session, and another one where a result was left in its midst.
    Raises ConnectionLost, CorruptResult, Diverged, OtherServer."""
    found = Selected()
    broken: dict[TableId, str] = {}
    session = opened()
    try:
        tables: dict[TableId, Table] = {}
        masks = {table: ColumnMasks(shape.rules, mask_key) for table, shape in shapes.items()}
        for chunk in chunks:
            if chunk.table in broken:
                found.refused.append((chunk, broken[chunk.table]))
                continue
            try:
                if chunk.table not in tables:
                    table = _as_planned(read_table(session, chunk.table), shapes[chunk.table], chunk.shard)
                    tables[chunk.table] = Table(table.id, masks[table.id].kept(table.columns), table.key)
                began = world.steady_seconds()
                rows = masks[chunk.table].applied(select_chunk(session, tables[chunk.table], chunk))
                must_have_keys(rows, shapes[chunk.table].key, f"shard {chunk.shard}, {chunk.table}")
                seconds = world.steady_seconds() - began
            except (ConnectionLost, Diverged, OtherServer):
                raise
            except (SourceError, CorruptResult) as error:
                if not isinstance(error, ServerSaid):
                    session.abandon()  # in the midst of a result
                    session = opened()
                why: str | None = str(error)
                if isinstance(error, CorruptResult):
                    why = _altered(session, chunk, shapes[chunk.table])
                if why is None:
                    raise
                broken[chunk.table] = why
                found.refused.append((chunk, why))
                continue
            found.reads.setdefault(chunk.table, []).append(
                (CopiedChunk(chunk, rows.num_rows, rows.nbytes, seconds), rows)
            )
    finally:
        session.abandon()
    return found


def _altered(session: Session, chunk: Chunk, shape: TableShape) -> str | None:
    """What DDL made of a chunk's table since its SELECT was planned; None where it is as planned. Rows of another type
    cannot always be decoded: a DECIMAL may have more digits. Raises ConnectionLost, Diverged, OtherServer."""
    try:
        _as_planned(read_table(session, chunk.table), shape, chunk.shard)
    except (ConnectionLost, Diverged, OtherServer):
        raise
    except SourceError as altered:
        return str(altered)
    return None


def _as_planned(table: Table, shape: TableShape, shard: str) -> Table:
    """The table as the catalog has it now; raises SourceError when the lake's shape does not know its columns
    yet.
    """
    known = {c.column.name: shape.type_on(shard, c) for c in shape.columns if c.live}
    strange = [c.name for c in table.columns if known.get(c.name) != c.type]
    if strange or table.key != shape.key:
        raise SourceError(
            f"{table.id}: its definition is not that of the lake ({', '.join(strange) or 'key'}); copied when the log "
            "has brought the ALTER"
        )
    return table
