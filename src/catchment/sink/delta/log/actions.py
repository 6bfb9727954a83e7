"""Actions of Delta's log, as far as a table of a lake has them (Delta protocol: Actions).

deltalake 1.6 writes no deletion vectors, a commit of its takes several times as long, and its checkpoints hold removed
files for a week. So commits and checkpoints are written here. Schemas and queries are deltalake's.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

from catchment.model.version import __version__

# The feature's name.
VECTORS = "deletionVectors"
_OURS = "catchment/"


class Vector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where the deletion vector of a file lies (Delta protocol: Deletion Vector Descriptor Schema)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None


class Add(msgspec.Struct, frozen=True, rename="camel"):
    """A file is in the table from this version on, with the rows that its vector does not name."""

    path: str
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    partition_values: dict[str, str | None] = {}
    deletion_vector: Vector | None = None

    @property
    def file(self) -> str:
        """Its path as the file system has it, relative to the table."""
        return unquote(self.path)


class Remove(msgspec.Struct, frozen=True, rename="camel"):
    """A file, under the vector that it had, is no longer in the table."""

    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    size: int | None = None
    extended_file_metadata: bool = True
    partition_values: dict[str, str | None] = {}
    deletion_vector: Vector | None = None

    @property
    def file(self) -> str:
        """Its path as the file system has it, relative to the table."""
        return unquote(self.path)


class Cdc(msgspec.Struct, frozen=True, rename="camel"):
    """A file of rows before and after the commit (Delta protocol: Add CDC File). It is no part of the table."""

    path: str
    size: int
    partition_values: dict[str, str | None] = {}
    data_change: bool = False


class Txn(msgspec.Struct, frozen=True, rename="camel"):
    """The newest version that an application has written."""

    app_id: str
    version: int
    last_updated: int | None = None


class MetaData(msgspec.Struct, frozen=True, rename="camel"):
    """Schema and properties. `schema_string` is JSON of its own."""

    id: str
    schema_string: str
    created_time: int | None = None
    configuration: dict[str, str] = {}
    partition_columns: list[str] = []
    format: dict[str, Any] = msgspec.field(default_factory=lambda: {"provider": "parquet", "options": {}})
    name: str | None = None
    description: str | None = None


class Protocol(msgspec.Struct, frozen=True, rename="camel"):
    """What a reader and a writer must be able to do."""

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None

    @property
    def features(self) -> frozenset[str]:
        """All that it names."""
        return frozenset([*(self.reader_features or ()), *(self.writer_features or ())])

    def brought_to(self, other: "Protocol") -> "Protocol":
        """It, and what another one names; without deletion vectors where that has none."""
        dropped = {VECTORS} - other.features
        found = protocol(
            {*(self.reader_features or ()), *(other.reader_features or ())} - dropped,
            {*(self.writer_features or ()), *(other.writer_features or ())} - dropped,
        )
        return self if found.features == self.features else found


def protocol(reader_features: Iterable[str], writer_features: Iterable[str]) -> Protocol:
    """What a table with these features asks for (Delta protocol: Protocol Evolution). A table that asks nothing of
    readers is read by the oldest ones."""
    reader = sorted(reader_features)
    return Protocol(3 if reader else 1, 7, reader or None, sorted(writer_features))


class Line(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line of a commit: one action. Others than these are not needed to know the files, and are passed over."""

    commit_info: dict[str, Any] | None = None
    protocol: Protocol | None = None
    meta_data: MetaData | None = None
    txn: Txn | None = None
    remove: Remove | None = None
    add: Add | None = None
    cdc: Cdc | None = None


Action = Protocol | MetaData | Txn | Add | Remove | Cdc

_NAMES: dict[type[Action], str] = {
    Protocol: "protocol",
    MetaData: "metaData",
    Txn: "txn",
    Add: "add",
    Remove: "remove",
    Cdc: "cdc",
}

_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


def lines(commit: bytes) -> list[Line]:
    """The lines of a commit; raises msgspec.DecodeError."""
    return [_decode(line) for line in commit.splitlines() if line]


def commit_info(operation: str, now_ms: int, **notes: str) -> dict[str, Any]:
    """What was done, as other programs show it in the table's history."""
    return {
        "timestamp": now_ms,
        "operation": operation,
        "operationParameters": {},
        "engineInfo": f"{_OURS}{__version__}",
        "catchment.version": __version__,
        **notes,
    }


def is_ours(info: dict[str, Any]) -> bool:
    """Whether a commit of this info was made by a Catchment."""
    return str(info.get("engineInfo", "")).startswith(_OURS)


def encoded(info: dict[str, Any], actions: Iterable[Action]) -> bytes:
    """A commit; `info` is what `commit_info` gives.

    A field that has no value is left out, as Spark does. Some readers ask whether `deletionVector` is there, and not
    whether it is null (delta-io/delta-rs#3055).
    """
    made = [{"commitInfo": info}, *({_NAMES[type(action)]: _given(action)} for action in actions)]
    return b"".join(_encode(line) + b"\n" for line in made)


def _given(action: Action) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(action)
    return {name: value for name, value in fields.items() if value is not None}
