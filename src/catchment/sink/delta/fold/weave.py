"""The rows of a base file with its changes worked in, batch by batch, in the order of the file."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catchment.model.errors import SinkError
from catchment.sink.delta.files import lake_file
from catchment.sink.delta.fold.base_file import BaseFile, Reach, Touch
from catchment.sink.delta.fold.net import NetChanges, Pinned, Rows, conform
from catchment.wire.keys.keys import encode
from catchment.wire.keys.splice import splice

_BATCH_ROWS = 128 * 1024
_BATCH_BYTES = 64 * 1024 * 1024
NONE = np.empty(0, np.int64)


def batches(pinned: Pinned, file: BaseFile) -> Iterator[tuple[int, pa.Table]]:
    """Batches of a file, each with the number of its first row."""
    start = 0
    path = pinned.directory / file.path
    with lake_file(path), pq.ParquetFile(path) as source:
        size = sum(source.metadata.row_group(n).total_byte_size for n in range(source.num_row_groups))
        rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * file.rows // max(size, 1)))
        for batch in source.iter_batches(rows):
            yield start, conform(pa.Table.from_batches([batch]), pinned.schema)
            start += batch.num_rows


def slices(pinned: Pinned, name: str, bytes_max: int) -> Iterator[Iterator[pa.Table]]:
    """A file's row groups, in runs of up to `bytes_max` bytes not compressed, or of one row group."""
    path = pinned.directory / name
    with lake_file(path):
        footer = pq.read_metadata(path)
    runs: list[list[int]] = []
    size = bytes_max
    for number in range(footer.num_row_groups):
        own = footer.row_group(number).total_byte_size
        if size + own > bytes_max:
            runs.append([])
            size = 0
        runs[-1].append(number)
        size += own
    for run in runs:
        yield _row_groups(pinned, path, run)


def _row_groups(pinned: Pinned, path: Path, run: list[int]) -> Iterator[pa.Table]:
    with lake_file(path), pq.ParquetFile(path) as source:
        for number in run:
            yield conform(source.read_row_group(number), pinned.schema)


def woven(pinned: Pinned, reach: Reach, net: NetChanges) -> Iterator[pa.Table]:
    """A file in order of key with all changes in its range, in one pass.

    Raises SinkError when the file is not in the order that its footer claims.
    """
    at, end = reach.start, reach.end
    asked = net.slice_keys(at, end).to_binary()
    before = b""
    for start, batch in batches(pinned, reach.file):
        keys = encode(batch, pinned.identity)
        binary = keys.to_binary()
        last = start + batch.num_rows == reach.file.rows
        if keys[0] <= before or pc.all(pc.less(binary[:-1], binary[1:])).as_py() is False:
            raise SinkError(
                f"{pinned.directory / reach.file.path}: not in the order that its footer claims, near row {start}: "
                "was it written by another program? restore it, or start a new feed in another directory"
            )
        before = keys[len(keys) - 1]
        stop = (
            end
            if last
            else reach.start
            + int(pc.search_sorted(asked, pa.scalar(before, asked.type), side="right").as_py())
        )
        here = asked[at - reach.start : stop - reach.start]
        places = pc.search_sorted(binary, here).to_numpy().astype(np.int64)
        inside = pa.array(np.minimum(places, batch.num_rows - 1))
        same = pc.equal(binary.take(inside), here).to_numpy(zero_copy_only=False)
        yield splice(batch, net.rows, places, same, _put(net, np.arange(at, stop)))
        at = stop


def streamed(pinned: Pinned, file: BaseFile, found: Touch | None, net: NetChanges) -> Iterator[pa.Table]:
    """A file in whatever order, with those of its rows replaced that have changed; no new ones."""
    for start, batch in batches(pinned, file):
        yield batch if found is None else replaced(batch, start, found, net, (NONE, NONE))


def replaced(
    batch: pa.Table, start: int, found: Touch, net: NetChanges, inserts: tuple[Rows, Rows]
) -> pa.Table:
    """A batch, from the file's row `start` on, with its changes; `inserts`: new rows and before which row."""
    first, last = np.searchsorted(found.rows, [start, start + batch.num_rows])
    return changed(batch, (found.rows[first:last] - start, found.changes[first:last]), inserts, net)


def changed(
    batch: pa.Table, replaces: tuple[Rows, Rows], inserts: tuple[Rows, Rows], net: NetChanges
) -> pa.Table:
    """A batch with changes: `replaces`: which rows, and by which change; `inserts`: new rows and before
    which row.
    """
    (rows, changes), (new, places) = replaces, inserts
    at = np.concatenate([places, rows])
    order = np.argsort(at, kind="stable")
    gone = np.repeat([0, 1], [len(places), len(rows)])
    put = np.concatenate([new, _put(net, changes)])
    return splice(batch, net.rows, at[order], gone[order], put[order])


def _put(net: NetChanges, changes: Rows) -> Rows:
    """The changes, -1 for deletes."""
    return np.where(net.deleted[changes], -1, changes)


def taken(net: NetChanges, changes: Rows) -> pa.Table:
    """The rows of some changes."""
    return net.rows.take(pa.array(changes))
