"""Checkpoints of a table's log, of any version (Delta protocol: Checkpoints).

Without them whoever opens the table reads every commit since its beginning. They hold no removed files, which readers
pass over and a vacuum alone asks for: the cleaner tells what nobody needs by the versions that stay. deltalake would
write each removed file into every checkpoint for a week, and it names an old version as the newest checkpoint.

A checkpoint may be written while rows are erased, or from a version of before. It has no bounds of files that left the
table since then.
"""

import io
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catchment.model.errors import SinkConflict
from catchment.sink.delta.files import replace_bytes
from catchment.sink.delta.log.actions import Action, Add, Txn
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.log.erased import erasures
from catchment.sink.delta.statistics import unbounded

# Commits between two checkpoints: reading so many takes some 20 ms.
INTERVAL = 50

_ATTEMPTS = 50
_TEXTS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_FILE = [
    ("path", pa.string()),
    ("partitionValues", _TEXTS),
    ("size", pa.int64()),
    ("deletionVector", _VECTOR),
]
_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    *_FILE,
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    *_FILE,
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("extendedFileMetadata", pa.bool_()),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _LIST),
                    ("createdTime", pa.int64()),
                    ("configuration", _TEXTS),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _LIST),
                    ("writerFeatures", _LIST),
                ]
            ),
        ),
    ]
)


def checkpoint(log: DeltaLog) -> None:
    """Write a checkpoint of the newest version where one is due, from which readers begin. Raises SinkError."""
    on = log.newest()
    if on is None or on.version - log.checkpointed() < INTERVAL:
        return
    rows = write_checkpoint(log, on)
    last = msgspec.json.encode({"version": on.version, "size": rows})
    replace_bytes(log.directory / "_delta_log" / "_last_checkpoint", last)


def write_checkpoint(log: DeltaLog, of: Snapshot) -> int:
    """Write a checkpoint of a version, durably; its rows. Readers find it by its name.

    Raises SinkError; SinkConflict where rows were erased again at each attempt.
    """
    place = log.directory / "_delta_log" / f"{of.version:020d}.checkpoint.parquet"
    newest = log.newest() or of
    for _ in range(_ATTEMPTS):
        rows = pa.Table.from_pylist(list(_rows(of, newest)), _SCHEMA)
        content = io.BytesIO()
        pq.write_table(rows, content, compression="snappy")
        replace_bytes(place, content.getvalue())
        written, newest = newest, log.newest() or newest
        if erasures(newest) == erasures(written):
            return len(rows)
    raise SinkConflict(
        f"{log.directory}: rows were erased at each of {_ATTEMPTS} attempts to write {place.name}"
    )


def _rows(of: Snapshot, newest: Snapshot) -> list[dict[str, Any]]:
    rows = [_row("protocol", of.protocol), _row("metaData", of.metadata)]
    rows += [_row("txn", Txn(name, version)) for name, version in of.transactions.items()]
    erased = erasures(of) != erasures(newest)
    adds = (
        _unbounded(file) if erased and path not in newest.files else file.add
        for path, file in of.files.items()
    )
    return rows + [_row("add", add) for add in adds]


def _unbounded(file: LakeFile) -> Add:
    """The entry of a file without what it says of its values."""
    return msgspec.structs.replace(file.add, stats=unbounded(file.add.stats))


def _row(kind: str, action: Action) -> dict[str, Any]:
    return {kind: msgspec.to_builtins(action)}
