"""Files of an epoch: those that tasks wrote, and one per table and part for the rows that came inline."""

from collections.abc import Sequence

import pyarrow as pa

from catchment import world
from catchment.epoch.gather import Gathered
from catchment.epoch.work import FewRows
from catchment.model.epoch import DataFile, Part, TableShape
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, identity_columns, tail_of

# Most of the time of a small file goes into waiting for the disk (two flushes).
_THREADS = 16


def write_inline(root: Location, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
    """All data files of the epoch by table; writes the small outputs of all tasks together, a file per table
    and part.
    """
    files: dict[TableId, list[DataFile]] = {}
    inline: dict[tuple[TableId, Part], list[pa.Table]] = {}
    for output in gathered.outputs:
        if isinstance(output.held, FewRows):
            inline.setdefault((output.table, output.part), []).append(output.held.rows)
        else:
            files.setdefault(output.table, []).append(output.held)
    shapes = gathered.followed.by_table if inline else {}
    if len(inline) == 1:
        (((table, part), parts),) = inline.items()
        files.setdefault(table, []).append(_write(root, epoch, shapes[table], part, parts))
        return files
    with world.pool(_THREADS, "inline") as pool:
        written = [
            (table, pool.submit(_write, root, epoch, shapes[table], part, parts))
            for (table, part), parts in inline.items()
        ]
    for table, file in written:
        files.setdefault(table, []).append(file.result())
    return files


def _write(root: Location, epoch: int, shape: TableShape, part: Part, parts: Sequence[pa.Table]) -> DataFile:
    schema, tables = arrow_schema(shape), parts
    if any(table.schema != schema for table in tables):
        # A task may have seen fewer columns, or narrower ones: its shard has not been altered yet.
        tables = [conform(table, schema) for table in tables]
    name = f"{epoch}-{world.token()[:12]}"
    directory = tail_of(root, shape)
    return write_file(directory, part, name, tables, schema, identity_columns(shape)[1:])
