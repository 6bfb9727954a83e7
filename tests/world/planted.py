"""Damage in the tables of a lake, done as a fault of Catchment would do it: the log says that the commit is its own."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment import world
from catchment.model.epoch import Part, TableShape
from catchment.sink.delta.files import read_rows, write_file, write_parquet
from catchment.sink.delta.layout import PART, identity_columns
from catchment.sink.delta.log.actions import Action, Add, commit_info
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile
from catchment.sink.delta.plain.described import described
from catchment.sink.delta.plain.vectors import load
from catchment.sink.delta.tail.apply import add_action

Rewrite = Callable[[pa.Table], pa.Table]


def plant(directory: Path, shape: TableShape, rewrite: Rewrite, part: Part | None = None) -> int:
    """Write the data files of a table again whose rows `rewrite` changes; how many. `part`: those of a tail's part."""
    log = DeltaLog(directory)
    while True:
        on = log.newest()
        if on is None:
            return 0
        now_ms = world.now_us() // 1000
        actions: list[Action] = []
        count = 0
        for file in on.files.values():
            if part is not None and file.add.partition_values[PART] != part.value:
                continue
            rows = _living(directory, file)
            after = rewrite(rows)
            if after.equals(rows):
                continue
            count += 1
            actions.append(file.removed(now_ms, data_change=True))
            if after.num_rows:
                actions.append(_written(directory, shape, after, file, part))
        if not actions or log.put(on, commit_info("WRITE", now_ms), actions) is not None:
            return count


def _living(directory: Path, file: LakeFile) -> pa.Table:
    lives = BitMap(range(file.rows)) - load(directory, file.dead)
    return read_rows(directory / file.path).take(pa.array(lives.to_array(), pa.int64()))


def _written(directory: Path, shape: TableShape, rows: pa.Table, like: LakeFile, part: Part | None) -> Add:
    name = f"planted-{uuid.uuid4().hex}"
    if part is not None:
        keys = identity_columns(shape)[1:]
        return add_action(write_file(directory, part, name, [rows], rows.schema, keys))
    written = write_parquet(directory / f"{name}.parquet", [rows], rows.schema)
    add = described(written, shape, world.now_us() // 1000)
    return Add(add.path, add.size, add.modification_time, True, add.stats, like.add.partition_values)


def without(key: str, *values: object) -> Rewrite:
    """Rows go."""
    return lambda rows: rows.filter(pc.invert(pc.is_in(rows[key], pa.array(values, rows[key].type))))


def with_values(key: str, value: object, column: str, other: object) -> Rewrite:
    """A row's value is another one."""

    def rewrite(rows: pa.Table) -> pa.Table:
        hit = pc.equal(rows[key], pa.scalar(value, rows[key].type))
        values = pc.if_else(hit, pa.scalar(other, rows[column].type), rows[column])
        return rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), values)

    return rewrite


def with_copy(key: str, value: object, column: str, other: object) -> Rewrite:
    """A row stands there once more, with another value in a column: another key, another shard."""

    def rewrite(rows: pa.Table) -> pa.Table:
        hit = rows.filter(pc.equal(rows[key], pa.scalar(value, rows[key].type)))
        return pa.concat_tables([rows, with_values(key, value, column, other)(hit)])

    return rewrite
