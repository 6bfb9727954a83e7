"""Least and largest values that a Delta log names, taken out of its entries and checkpoints.

A bound of a column may be a value of an erased row. Statistics are optional (Delta protocol: Per-file Statistics), so
an entry without them says the same of the table. It takes the place of the other in one rename, with its time and its
size. For delta-rs 1.6 lists a checkpoint first, and looks for the footer at the end that it was told.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catchment import world
from catchment.model.location import Location
from catchment.sink.delta.files import delete, lake_file, lake_files, read_rows
from catchment.sink.delta.statistics import unbounded
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.port import Stored
from catchment.sink.storage.refused import refused

_DRAFT_SECONDS = 3600.0  # a draft that is younger may be put still
_PARSED = "stats_parsed"  # of a checkpoint that has them as columns, too
Tells = Callable[[str], bool]


def without_bounds(directory: Location, tells: Tells) -> int:
    """Take bounds of files out of a table's log, but for those of shard and epoch. `tells`: whether a file, by its path
    in the table, is meant. How many entries and checkpoints were written again.

    May be repeated. Raises SinkError.
    """
    log = directory / "_delta_log"
    written = 0
    _delete_copies(log)
    storage = storage_of(log)
    for entry in _sorted(lake_files(log, ".json")):
        with lake_file(entry.place):
            content = storage.read(entry.place)
        after = b"".join(_line(line, tells) for line in content.splitlines(keepends=True))
        if after != content:
            _replace(entry.place, after)
            written += 1
    with lake_file(log):
        checkpoints = storage.below(log, ".parquet")
    for checkpoint in _sorted(checkpoints):
        changed = _rows(read_rows(checkpoint.place), tells)
        if changed is not None:
            _replace(checkpoint.place, _parquet(changed, checkpoint.size))
            written += 1
    return written


def _delete_copies(log: Location) -> None:
    """Delete what repeats actions and nobody needs: drafts of commits that a crash left, and other writers' checksums.
    Those may list all files (Delta protocol: Version Checksum File)."""
    for checksum in lake_files(log, ".crc"):
        if checksum.place.name[0].isdigit():
            delete(checksum.place)
    for draft in lake_files(log, ".tmp"):
        if draft.since < world.now_us() / 1e6 - _DRAFT_SECONDS:
            delete(draft.place)


def _sorted(files: list[Stored[Any]]) -> list[Stored[Any]]:
    return sorted(files, key=lambda one: str(one.place))


def _line(line: bytes, tells: Tells) -> bytes:
    if b'"stats"' not in line:
        return line
    action = msgspec.json.decode(line)
    stripped = [_stripped(action.get(name), tells) for name in ("add", "remove")]
    return msgspec.json.encode(action).ljust(len(line) - 1) + b"\n" if any(stripped) else line


def _rows(rows: pa.Table, tells: Tells) -> pa.Table | None:
    """A checkpoint's rows; None where nothing is to be taken out."""
    if "add" not in rows.schema.names:
        return None
    adds = rows["add"].to_pylist()
    if not any([_stripped(add, tells) for add in adds]):
        return None
    field = rows.schema.field("add")
    return rows.set_column(rows.schema.get_field_index("add"), field, pa.array(adds, field.type))


def _stripped(add: dict[str, Any] | None, tells: Tells) -> bool:
    """Whether there was something to take out of an action, which is changed."""
    if add is None or not tells(unquote(add["path"])):
        return False
    before = add.get("stats")
    if (after := unbounded(before)) != before:
        add["stats"] = after
    parsed = add.pop(_PARSED, None)
    return add.get("stats") != before or parsed is not None


def _parquet(rows: pa.Table, size: int) -> bytes:
    """A Parquet file of that size, or of more where it must be. Zeros fill it between the columns, whose places the
    footer tells, and the footer, which is found from the end."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", store_schema=False, write_statistics=False)
    content: bytes = sink.getvalue().to_pybytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    return content[:-footer].ljust(size - footer, b"\0") + content[-footer:]


def _replace(target: Location, content: bytes) -> None:
    """Write a file of a log once more. Its time stays: by it programs tell how old an entry is. Raises SinkError."""
    try:
        storage_of(target).replace(target, content, ages=True)
    except OSError as error:
        raise refused(error, f"cannot write {target}: {error}; check space and rights there") from error
