"""Rows as the files of a plain table are to have them: kept apart by partition, and in order within a file.

The column of a partition is in the files, too (Delta protocol: Materialize Partition Columns). So polars knows its
values, which it takes from files or from their paths, never from the log.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.epoch import TableShape
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.log.actions import Add
from catchment.sink.delta.log.delta_log import LakeFile

# Rows that are arranged at a time, in memory.
SLICE_BYTES = 256 * 1024 * 1024
# The most of a file of rows that memory holds: several are written, and later searched, at a time.
FILE_ROWS = 1 << 20

Rows = npt.NDArray[np.int64]
Values = dict[str, str | None]


class Piece(msgspec.Struct, frozen=True):
    """Rows for one file, and the values of its partition."""

    rows: Iterable[pa.Table]
    values: Values = {}


def partition_columns(shape: TableShape) -> list[str]:
    """The columns by which a plain table is partitioned."""
    if shape.arrangement.partition is None:
        return []
    return [shape.partition_column or SHARD]


def cluster_columns(shape: TableShape) -> list[str]:
    """Physical names of the columns by which rows are to be in order. One that has gone no longer counts."""
    found = (shape.column(name) for name in shape.arrangement.cluster_by)
    return [column.physical for column in found if column is not None]


def is_arranged(shape: TableShape) -> bool:
    """Whether files are to have rows otherwise than they come: in order of key, whatever partition."""
    return bool(partition_columns(shape) or cluster_columns(shape))


def pieces(parts: Iterable[pa.Table], shape: TableShape) -> Iterator[Piece]:
    """The files to make of some rows: one as they come, or of each slice one for each partition."""
    if not is_arranged(shape):
        yield Piece(parts)
        return
    for rows in _slices(parts):
        yield from _apart(_with_partition(rows, shape), shape)


def pieces_of(rows: pa.Table, shape: TableShape) -> list[Piece]:
    """The files to make of rows that memory holds."""
    if is_arranged(shape):
        return [*pieces([rows], shape)]
    most = math.ceil(rows.num_rows / max(1, math.ceil(rows.num_rows / FILE_ROWS)))
    return [Piece([rows.slice(first, most)]) for first in range(0, rows.num_rows, most)] if most else []


def _with_partition(rows: pa.Table, shape: TableShape) -> pa.Table:
    """Rows of the plain table's schema with the first day of their span, where the table is partitioned by one."""
    partition, name = shape.arrangement.partition, shape.partition_column
    if partition is None or partition.span is None or name is None:
        return rows
    place = rows.schema.get_field_index(name)
    of_source = shape.column(partition.column)
    if of_source is None:  # the source has it no longer: a row that was there keeps its partition
        return rows
    days = pc.floor_temporal(rows[of_source.physical], unit=partition.span.value).cast(pa.date32())
    return rows.set_column(place, rows.schema.field(place), days)


def clustered(rows: pa.Table, shape: TableShape, order: Rows) -> Rows:
    """The order of rows by the columns of the cluster; those that are alike in these stay in `order`."""
    names = cluster_columns(shape)
    if not names:
        return order
    first = rows.select(names).take(pa.array(order))
    keys = [(name, "ascending") for name in names]
    return order[np.asarray(pc.sort_indices(first, sort_keys=keys), np.int64)]  # a stable sort


def _in_order(rows: pa.Table, shape: TableShape) -> pa.Table:
    return rows.take(pa.array(clustered(rows, shape, np.arange(rows.num_rows))))


def one_partition(add: Add, shape: TableShape) -> Values | None:
    """The values of the partition that has all rows of a file, as its bounds tell; None where there may be several."""
    values: Values = {}
    for name in partition_columns(shape):
        bounds = LakeFile(add, 0).bounds().of(name)
        if bounds is None or bounds[0] != bounds[1]:
            return None
        values[name] = bounds[0]
    return values


def _slices(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    size = 0
    for part in parts:
        if not part.num_rows:
            continue
        if held and size + part.nbytes > SLICE_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield pa.concat_tables(held)


def _apart(rows: pa.Table, shape: TableShape) -> Iterator[Piece]:
    """One piece for each partition, in order."""
    names = partition_columns(shape)
    if not names:
        yield Piece([_in_order(rows, shape)])
        return
    (name,) = names
    coded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
    values: Sequence[str | None] = coded.dictionary.cast(pa.string()).to_pylist()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    whole = rows.take(pa.array(order))
    ends = np.searchsorted(codes[order], np.arange(len(values)), "right").tolist()
    for value, begin, end in zip(values, [0, *ends], ends, strict=False):
        yield Piece([_in_order(whole.slice(begin, end - begin), shape)], {name: value})
