"""Files of an epoch: those that tasks wrote, and one per table and part for the rows that came inline."""

import uuid
from pathlib import Path

import pyarrow as pa

from catchment.flow.sink.files import write_file
from catchment.flow.sink.layout import arrow_schema, identity_columns, table_dir
from catchment.model.epoch import DataFile, Part
from catchment.model.table import TableId
from catchment.run.assemble import Gathered


def write_inline(root: Path, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
    """All data files of the epoch by table; writes the small outputs of all tasks together, a file per table
    and part.
    """
    files: dict[TableId, list[DataFile]] = {}
    inline: dict[tuple[TableId, Part], list[pa.Table]] = {}
    for output in gathered.outputs:
        if output.file is not None:
            files.setdefault(output.table, []).append(output.file)
        else:
            rows = pa.ipc.open_stream(output.inline).read_all()
            inline.setdefault((output.table, output.part), []).append(rows)
    shapes = {shape.table: shape for shape in gathered.shapes}
    for (table, part), parts in inline.items():
        shape = shapes[table]
        schema = arrow_schema(shape)
        # A task that saw fewer columns (its shard has not been altered yet) leaves the others null.
        rows = (
            pa.concat_tables([*parts, schema.empty_table()], promote_options="default")
            .select(schema.names)
            .cast(schema)
        )
        name = f"{epoch}-{uuid.uuid4().hex[:12]}"
        file = write_file(table_dir(root, table), part, name, [rows], schema, identity_columns(shape)[1:])
        files.setdefault(table, []).append(file)
    return files
