"""Where things lie in a lake and what every row carries (DESIGN 10).

    <root>/<schema>/<table>/            one plain Delta table per source table, all shards in one
    <root>/_catchment/tail/<schema>/<table>/  epochs that the plain table does not have yet, a Delta table, too
        _part=base/                     chunks: rows that were copied
        _part=changes/                  net changes
    <root>/_catchment/tail-<epoch>/<schema>/<table>/  the same of a copy that began with that epoch
    <root>/_catchment/epochs/           one row per committed epoch
    <root>/_catchment/versions/         one row per version of a plain table
    <root>/_catchment/kept/             one row per epoch that is kept beyond the readers' window
    <root>/_catchment/staged/<feed>/    rows that wait for the cut at which they count, seconds long
    <root>/_catchment/held/<schema>/<table>/held.json  a note of the files that those need

Holds names only, touches no file.
"""

import hashlib
import re
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec
import pyarrow as pa

from catchment.model.column_rule import ColumnRule
from catchment.model.epoch import LakeColumn, Part, TableShape
from catchment.model.location import Location
from catchment.model.table import ENDED, VALID_FROM, VALID_TO, Column, TableId
from catchment.wire.cells.masks import kept_type

Root = TypeVar("Root", bound=Location)
_OURS, _TAIL = "_catchment", "tail"

PART = "_part"
SHARD = "_shard"
EPOCH = "_epoch"
DELETED = "_deleted"
# Columns of change data, which Delta's readers add to those of the table (Delta protocol: Change Data Files).
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
OF_CHANGES = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


class Change(StrEnum):
    """What a row of change data says, in its column `_change_type`."""

    INSERT = "insert"
    DELETE = "delete"
    BEFORE = "update_preimage"
    AFTER = "update_postimage"


_ROW_FIELDS = (pa.field(SHARD, pa.string()), pa.field(EPOCH, pa.int64()), pa.field(DELETED, pa.bool_()))
_TIME = pa.timestamp("us", tz="UTC")
# Of a table that keeps each version of a row: the epoch that ended it, and the times of both epochs.
VERSION_FIELDS = (pa.field(ENDED, pa.int64()), pa.field(VALID_FROM, _TIME), pa.field(VALID_TO, _TIME))
# Schemas of so many tables are remembered: an epoch asks for that of each table that it writes, several times.
_SCHEMAS_MAX = 1 << 12
_NAME_MAX = 255  # bytes; of ext4, XFS and others
_UNSAFE = re.compile(r"^_|[^A-Za-z0-9_$-]")


def directory_name(name: str) -> str:
    """A schema's or table's name as a directory: other characters become `@` and 4 hexadecimal digits.

    MariaDB's own mapping of identifiers to file names works this way. A percent sign cannot stand for the
    escape, since Delta writers decode it. A leading `_` is escaped too: `_catchment` is ours. What is longer than
    file systems take ends with a digest instead.
    """
    whole = _UNSAFE.sub(lambda m: "".join(f"@{ord(c):04x}" for c in m[0]), name)
    if len(whole) <= _NAME_MAX:
        return whole
    return f"{whole[: _NAME_MAX - 33]}@{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _below(root: Root, *names: str) -> Root:
    found: Any = root
    for name in names:
        found = found / name
    return cast(Root, found)


def table_dir(root: Root, table: TableId) -> Root:
    """Directory of a table's plain Delta table, which anybody may read."""
    return _below(root, directory_name(table.schema), directory_name(table.name))


class Tail(msgspec.Struct, frozen=True, cache_hash=True):
    """Which copy of a table a tail is of."""

    table: TableId
    generation: int

    @classmethod
    def of(cls, shape: TableShape) -> "Tail":
        """The tail of a table as an epoch has it."""
        return cls(shape.lake_table, shape.generation)


def tail_dir(root: Root, table: TableId, generation: int = 0) -> Root:
    """Directory of the tail of a table's copy: what its plain table does not have yet."""
    return table_dir(tails_dir(root, generation), table)


def tail_of(root: Root, shape: TableShape) -> Root:
    """Directory of the tail of a table as an epoch has it."""
    return tail_dir(root, shape.lake_table, shape.generation)


def tails_dir(root: Root, generation: int = 0) -> Root:
    """Directory under which the tails of a generation lie, as plain tables lie under the root."""
    return _below(root, _OURS, f"{_TAIL}-{generation}" if generation else _TAIL)


def ours_dir(root: Root) -> Root:
    """Directory of all that is Catchment's own."""
    return _below(root, _OURS)


def generation_of(name: str) -> int | None:
    """The generation whose tails lie below a directory of this name; None where none do."""
    first, dash, number = name.partition("-")
    if first != _TAIL or (dash and not number.isdecimal()):
        return None
    return int(number) if dash else 0


def epochs_dir(root: Root) -> Root:
    """Directory of the epochs table."""
    return _below(root, _OURS, "epochs")


def versions_dir(root: Root) -> Root:
    """Directory of the table that tells which version of each plain table is which epoch."""
    return _below(root, _OURS, "versions")


def kept_dir(root: Root) -> Root:
    """Directory of the table that tells which epochs are kept beyond the readers' window."""
    return _below(root, _OURS, "kept")


def staged_dir(root: Root, feed: str) -> Root:
    """Directory of the rows that a feed has read and that belong to no epoch yet."""
    return _below(root, _OURS, "staged", directory_name(feed))


def held_file(root: Root, table: TableId) -> Root:
    """A note of the files of a plain table that kept epochs need."""
    return _below(table_dir(_below(root, _OURS, "held"), table), "held.json")


def file_path(part: Part, name: str) -> str:
    """Path of a data file relative to its table; `name` has no suffix and holds the attempt's id."""
    return f"{PART}={part.value}/{name}.parquet"


def arrow_schema(shape: TableShape) -> pa.Schema:
    """Schema of a data file: `_shard`, `_epoch`, `_deleted`, then all physical columns, dropped ones too."""
    return _arrow_schema(shape.columns, shape.rules)


@lru_cache(_SCHEMAS_MAX)
def _arrow_schema(columns: tuple[LakeColumn, ...], rules: tuple[ColumnRule, ...]) -> pa.Schema:
    kinds = ((c.physical, kept_type(rules, c.column)) for c in columns)
    return pa.schema([*_ROW_FIELDS, *(pa.field(name, kind) for name, kind in kinds if kind is not None)])


def former_types(shape: TableShape) -> dict[str, set[pa.DataType]]:
    """Types that older files have of columns, by their physical names, beside those of `arrow_schema`."""
    columns = {c.physical: c.column.name for c in shape.columns}
    found: dict[str, set[pa.DataType]] = {}
    for one in shape.widened:
        kind = kept_type(shape.rules, Column(columns[one.column], one.type))
        if kind is not None:
            found.setdefault(one.column, set()).add(kind)
    schema = arrow_schema(shape) if found else pa.schema([])
    return {name: others for name, kinds in found.items() if (others := kinds - {schema.field(name).type})}


def delta_schema(shape: TableShape) -> pa.Schema:
    """Schema of the Delta table: that of its files and the partition column."""
    return pa.schema([pa.field(PART, pa.string()), *arrow_schema(shape)])


def key_columns(shape: TableShape) -> tuple[str, ...]:
    """Physical names of the key columns, in key order."""
    physical = {c.column.name: c.physical for c in shape.columns if c.live}
    return tuple(physical[name] for name in shape.key)


def identity_columns(shape: TableShape) -> tuple[str, ...]:
    """Columns that tell one row of the lake table from another: the shard, then the key."""
    return (SHARD, *key_columns(shape))


def epoch_app(feed: str, table: TableId) -> str:
    """Application id under which a table carries its newest epoch."""
    return f"catchment/{feed}/{table}"


def generation_app(epochs: str) -> str:
    """Application id under which a plain table carries of which copy of the table it is; `epochs`: of its epochs."""
    return f"{epochs}/generation"


def settled_app(feed: str, table: TableId) -> str:
    """Application id under which a tail carries up to which epoch it was trimmed."""
    return f"catchment/{feed}/{table}/settled"


def fence_app(feed: str) -> str:
    """Application id under which a table carries the fence of its last writer."""
    return f"catchment/{feed}/fence"
