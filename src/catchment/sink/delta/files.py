"""Writing one data file of a lake table: Parquet, durable, with Delta's statistics. Needs no table handle.

A file is named by no Delta log until a commit adds it, so a failed attempt leaves a file for the cleaner.
"""

import datetime as dt
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catchment.model.epoch import DataFile, Part
from catchment.model.errors import NEW_FEED, SinkError
from catchment.sink.delta.layout import EPOCH, SHARD, file_path

ROW_GROUP_ROWS = 256 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
_STRING_STATS_CHARS = 32
_FOOTER_THREADS = 8


def write_file(
    tail_dir: str | Path,
    part: Part,
    name: str,
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: pa.Schema,
    key_columns: Sequence[str],
) -> DataFile:
    """Write `batches` as `_part=<part>/<name>.parquet` and flush it to the disk.

    `schema` is `layout.arrow_schema` of the table's shape, and that of the batches; `key_columns` are
    physical names. `name` must hold an id of the attempt: a file that exists is never written over. Raises
    SinkError, after removing what was written.
    """
    path = file_path(part, name)
    size, footer = write_parquet(Path(tail_dir) / path, batches, schema)
    stats = delta_stats(footer, (SHARD, EPOCH, *key_columns))
    return DataFile(path, size, footer.num_rows, part, stats)


def write_parquet(
    target: Path, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> tuple[int, pq.FileMetaData]:
    """A new durable Parquet file; its bytes and its footer. Raises SinkError and leaves nothing then."""
    try:
        make_directory(target.parent)
        file = target.open("xb")
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with file:
            footer = _write(file, batches, schema)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        sync_directory(target.parent)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError | pa.ArrowException):
            raise _unwritable(target, error) from error
        raise
    return size, footer


def write_bytes(target: Path, content: bytes) -> None:
    """A new durable file. Raises SinkError and leaves nothing then."""
    try:
        make_directory(target.parent)
        file = target.open("xb")
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(target.parent)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: Exception) -> SinkError:
    return SinkError(f"cannot write {target}: {error}; check space and rights there")


def make_directory(directory: Path) -> None:
    """Make a directory with all those above it, and their names durable."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(file: Any, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema) -> pq.FileMetaData:
    """One row group per group of batches. No dictionary: keys do not repeat."""
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=[SHARD, EPOCH],
        column_encoding=_encodings(schema),
        metadata_collector=footers,
    ) as writer:
        for rows in _row_groups(batches):
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
    return footers[0]


def _encodings(schema: pa.Schema) -> dict[str, str]:
    """Lengths apart from bytes, integers as differences: a tenth smaller, and a quarter less CPU for writers
    and for DuckDB than plain values.
    """
    found = {}
    for field in schema:
        kind = field.type
        if field.name in (SHARD, EPOCH):
            continue
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            found[field.name] = "DELTA_LENGTH_BYTE_ARRAY"
        elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            found[field.name] = "DELTA_BINARY_PACKED"
    return found


def _row_groups(batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.Table]:
    """Bring small batches together: every table written starts a row group of its own."""
    held: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        held.append(table)
        rows += table.num_rows
        size += table.nbytes
        if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def delta_stats(footer: pq.FileMetaData, columns: Sequence[str]) -> str:
    """Statistics JSON of an Add action, from the file's footer (Delta protocol: Per-file Statistics)."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    at = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    for name in columns:
        groups = [footer.row_group(g).column(at[name]).statistics for g in range(footer.num_row_groups)]
        if not all(s is not None and s.has_null_count for s in groups):
            continue
        nulls[name] = sum(s.null_count for s in groups)
        bounds = [s for s in groups if s.has_min_max]
        if bounds and len(bounds) == len(groups):
            _put_bounds(name, min(s.min for s in bounds), max(s.max for s in bounds), low, high)
    stats = {"numRecords": footer.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps(stats, ensure_ascii=False)


def _put_bounds(name: str, least: Any, most: Any, low: dict[str, Any], high: dict[str, Any]) -> None:
    """Bounds of the types whose JSON form every reader takes exactly: not decimals, binaries and floats."""
    if isinstance(least, str):
        low[name] = least[:_STRING_STATS_CHARS]
        above = _string_above(most)
        if above is not None:
            high[name] = above
    elif isinstance(least, int) and not isinstance(least, bool):
        low[name], high[name] = least, most
    elif isinstance(least, dt.datetime):
        low[name] = _in_ms(least)
        rest = dt.timedelta(microseconds=-most.microsecond % 1000)
        if most.replace(tzinfo=None) <= dt.datetime.max - rest:
            high[name] = _in_ms(most + rest)
    elif isinstance(least, dt.date):
        low[name], high[name] = least.isoformat(), most.isoformat()


def _in_ms(moment: dt.datetime) -> str:
    """A time as statistics have it: in UTC, its milliseconds alone."""
    zone = "" if moment.tzinfo is None else "Z"
    naive = moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    return naive.isoformat(timespec="milliseconds") + zone


def _string_above(most: str) -> str | None:
    """`most`, or a short string after every string with the same first characters; None if there is none."""
    if len(most) <= _STRING_STATS_CHARS:
        return most
    for length in range(_STRING_STATS_CHARS, 0, -1):
        following = ord(most[length - 1]) + 1
        if following == 0xD800:  # surrogates are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return most[: length - 1] + chr(following)
    return None


@contextmanager
def lake_file(path: Path) -> Iterator[None]:
    """Raise SinkError when a file of the lake, read in the block, is gone or damaged."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            f"{path} cannot be read: {error}; is it gone or damaged? put back a copy of the lake, or "
            f"start {NEW_FEED} to copy again"
        ) from error


def by_columns(paths: Sequence[str]) -> dict[frozenset[str], list[str]]:
    """Files by the columns that their footers name; raises SinkError for one that is no longer there, or damaged."""
    found: dict[frozenset[str], list[str]] = {}
    try:
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            for path, schema in zip(paths, pool.map(pq.read_schema, paths), strict=True):
                found.setdefault(frozenset(schema.names), []).append(path)
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            f"a file of the lake cannot be read: {error}; one that another replaced stays for the feed's sink.keep: "
            "read the table again"
        ) from error
    return found
