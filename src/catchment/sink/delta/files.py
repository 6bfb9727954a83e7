"""Writing one data file of a lake table: Parquet, durable, with Delta's statistics. Needs no table handle.

A file is named by no Delta log until a commit adds it, so a failed attempt leaves a file for the cleaner.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catchment.model.epoch import DataFile, Part
from catchment.model.errors import NEW_FEED
from catchment.model.location import Location, location
from catchment.sink.delta.layout import EPOCH, SHARD, file_path
from catchment.sink.delta.statistics import delta_stats
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.port import Stored
from catchment.sink.storage.refused import refused
from catchment.wire.cells.size import bytes_of

ROW_GROUP_ROWS = 256 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
_FOOTER_THREADS = 8


class Written(msgspec.Struct, frozen=True):
    """A Parquet file that stands whole: where, its bytes, and its footer."""

    place: Location
    size: int
    footer: pq.FileMetaData


def write_file(
    tail_dir: Location,
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
    told = (SHARD, EPOCH, *key_columns)
    # Chunks become files of the plain table as they stand.
    written = write_parquet(tail_dir / path, batches, schema, None if part is Part.BASE else told)
    stats = delta_stats(written.footer, told)
    return DataFile(path, written.size, written.footer.num_rows, part, stats)


def write_parquet(
    target: Location,
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: pa.Schema,
    told: Sequence[str] | None = None,
) -> Written:
    """A new durable Parquet file, with bounds of the `told` columns, of all by default. Raises SinkError and leaves
    nothing then."""
    with _new_file(target) as file:
        footer = _write(file, batches, schema, told)
        size = file.tell()
    return Written(target, size, footer)


def written(place: Location) -> Written:
    """A Parquet file of the lake that somebody else wrote. Raises SinkError."""
    with lake_file(place), storage_of(place).opened(place) as file:
        size = file.size()
        return Written(place, size, pq.read_metadata(file))


def write_bytes(target: Location, content: bytes) -> None:
    """A new durable file. Raises SinkError and leaves nothing then."""
    with _new_file(target) as file:
        file.write(content)


@contextmanager
def _new_file(target: Location) -> Iterator[IO[bytes]]:
    try:
        with storage_of(target).written(target) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise refused(error, f"cannot write {target}: {error}; check space and rights there") from error


def replace_bytes(target: Location, content: bytes) -> None:
    """A durable file, in place of what may stand there: readers find the one or the other whole. Raises SinkError."""
    try:
        storage_of(target).replace(target, content)
    except OSError as error:
        raise refused(error, f"cannot write {target}: {error}; check space and rights there") from error


def make_directory(directory: Location) -> None:
    """Make a directory with all those above it, and their names durable. Raises SinkError."""
    try:
        storage_of(directory).make_directory(directory)
    except OSError as error:
        raise refused(error, f"cannot make {directory}: {error}; check space and rights there") from error


def _write(
    file: Any,
    batches: Iterable[pa.RecordBatch | pa.Table],
    schema: pa.Schema,
    told: Sequence[str] | None,
) -> pq.FileMetaData:
    """One row group per group of batches. No dictionary: keys do not repeat. No schema of Arrow's beside that of
    Parquet, which says the same of these types: a tenth of a small file."""
    footers: list[pq.FileMetaData] = []
    with pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        use_dictionary=[SHARD, EPOCH],
        column_encoding=_encodings(schema),
        write_statistics=True if told is None else list(told),
        store_schema=False,
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
        size += bytes_of(table)
        if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


@contextmanager
def lake_file(path: Location) -> Iterator[None]:
    """Raise SinkError when a file of the lake, read in the block, is gone or damaged."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise refused(
            error,
            f"{path} cannot be read: {error}; is it gone or damaged? put back a copy of the lake, or "
            f"start {NEW_FEED} to copy again",
        ) from error


@contextmanager
def lake_parquet(path: Location, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file of the lake; `options` are those of `pyarrow.parquet.ParquetFile`. Raises SinkError."""
    with (
        lake_file(path),
        storage_of(path).opened(path) as file,
        pq.ParquetFile(file, coerce_int96_timestamp_unit="us", **options) as held,
    ):
        yield held


def lake_files(directory: Location, suffix: str) -> list[Stored[Any]]:
    """The files right in a directory whose names end so. Raises SinkError."""
    with lake_file(directory):
        return storage_of(directory).listed(directory, suffix)


def delete(path: Location) -> None:
    """Delete a file of the lake, if it is there. Raises SinkError."""
    try:
        storage_of(path).delete(path)
    except OSError as error:
        raise refused(error, f"cannot delete {path}: {error}; check the lake's rights and mount") from error


def name_within(directory: Location, path: Location) -> str:
    """The path of a file relative to its table, as logs have it."""
    return str(path)[len(str(directory)) + 1 :]


def read_rows(path: Location, **options: Any) -> pa.Table:
    """Rows of a Parquet file of the lake; `options` are those of `pyarrow.parquet.read_table`. Raises SinkError."""
    with lake_file(path), storage_of(path).opened(path) as file:
        return pq.read_table(file, **options)


def exists(path: Location) -> bool:
    """Whether a file of the lake is there. Raises SinkError."""
    with lake_file(path):
        return storage_of(path).stored(path) is not None


class FileColumns(msgspec.Struct, frozen=True):
    """The columns of a file, and the types of those that are narrower than the table's."""

    names: frozenset[str]
    narrower: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Those types by the names of columns."""
        return dict(self.narrower)


def by_columns(
    paths: Sequence[str], former: Mapping[str, Collection[pa.DataType]] = MappingProxyType({})
) -> dict[FileColumns, list[str]]:
    """Files by the columns that their footers name, and which of these have a `former` type.

    Raises SinkError for a file that is no longer there, or damaged.
    """
    found: dict[FileColumns, list[str]] = {}
    try:
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            told = pool.map(lambda path: _columns_of(path, former), paths)
            for path, columns in zip(paths, told, strict=True):
                found.setdefault(columns, []).append(path)
    except (OSError, pa.ArrowException) as error:
        raise refused(
            error,
            f"a file of the lake cannot be read: {error}; one that another replaced stays for the feed's sink.keep: "
            "read the table again",
        ) from error
    return found


def _columns_of(path: str, former: Mapping[str, Collection[pa.DataType]]) -> FileColumns:
    place = location(path)
    with storage_of(place).opened(place) as file:
        schema = pq.read_schema(file)
    types = ((name, schema.field(name).type) for name in former if name in schema.names)
    narrower = tuple((name, kind) for name, kind in types if kind in former[name])
    return FileColumns(frozenset(schema.names), narrower)
