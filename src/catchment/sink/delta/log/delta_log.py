"""Delta's log of a table: its files with their vectors, and commits that are put where none stands yet."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.log.actions import (
    Action,
    Add,
    Line,
    MetaData,
    Protocol,
    Remove,
    Vector,
    encoded,
    lines,
)
from catchment.sink.delta.log.properties import must_be_known
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused

# What a writer of ours keeps when it commits. Of a table with more, others expect what we do not know.
KNOWN = frozenset(
    {
        "deletionVectors",
        "appendOnly",
        "invariants",
        "timestampNtz",
        "changeDataFeed",
        "materializePartitionColumns",
    }
)
_LAST = "_last_checkpoint"
_NOT_TOLD = -1
_PARTITION = "partitionValues"


class Bounds(msgspec.Struct, frozen=True, rename="camel"):
    """How many rows a file has, and the bounds of columns (Delta protocol: Per-file Statistics)."""

    num_records: int | None = None
    min_values: dict[str, Any] = {}
    max_values: dict[str, Any] = {}
    null_count: dict[str, Any] = {}

    def of(self, column: str) -> tuple[Any, Any] | None:
        """The least and the largest value of a column; None where the log does not tell."""
        least, largest = self.min_values.get(column), self.max_values.get(column)
        return None if least is None or largest is None else (least, largest)


class LakeFile(msgspec.Struct, frozen=True):
    """A data file of a version. `dead`: where its dead rows are named; None while all live."""

    add: Add
    rows: int

    @property
    def path(self) -> str:
        """Relative to the table, as the file system has it."""
        return self.add.file

    @property
    def dead(self) -> Vector | None:
        """The vector in the log."""
        return self.add.deletion_vector

    def bounds(self) -> "Bounds":
        """What the log says of its rows, dead ones too."""
        return Bounds() if self.add.stats is None else msgspec.json.decode(self.add.stats, type=Bounds)

    @property
    def counted(self) -> bool:
        """Whether it is known how many rows it has."""
        return self.rows != _NOT_TOLD

    @property
    def live(self) -> int:
        """Rows that are not dead."""
        return self.rows - (self.dead.cardinality if self.dead else 0)

    def removed(self, now_ms: int, *, data_change: bool) -> Remove:
        """The action that takes it out of the table."""
        add = self.add
        return Remove(
            add.path, data_change, now_ms, add.size, True, add.partition_values, add.deletion_vector
        )


class Snapshot(msgspec.Struct, frozen=True):
    """A version of a table. `files`: by their paths as the file system has them. `transactions`: versions of
    applications (Txn), by their names."""

    version: int
    protocol: Protocol
    metadata: MetaData
    files: Mapping[str, LakeFile]
    transactions: Mapping[str, int]


class _LastCheckpoint(msgspec.Struct):
    version: int
    parts: int | None = None


class _Read(NamedTuple):
    """A version that was read or committed. `seal`: the digest of its entry, None where the entry is gone."""

    snapshot: Snapshot
    seal: bytes | None


class DeltaLog:
    """The log of one table; it remembers the version that it has read, and reads on from there."""

    def __init__(self, directory: Location) -> None:
        self.directory = directory
        self._log = directory / "_delta_log"
        self._storage = storage_of(directory)
        self._known: _Read | None = None

    def newest(self) -> Snapshot | None:
        """The newest version, None where there is no table. Raises SinkError."""
        try:
            known = self._followed(
                self._known if self._known is not None and self._stands(self._known) else self._checkpoint()
            )
            if known is not None and (later := self._later_checkpoint(known.snapshot.version)) is not None:
                known = self._followed(self._checkpointed_at(later))
        except (OSError, msgspec.DecodeError, pa.ArrowException) as error:
            raise refused(
                error, f"{self._log} cannot be read: {error}; put back a copy of the lake"
            ) from error
        if known is not None and known is not self._known:
            must_be_known(known.snapshot.metadata.configuration, self.directory)
            known = known._replace(snapshot=_counted(known.snapshot, self.directory))
        self._known = known
        return None if known is None else known.snapshot

    def _followed(self, known: _Read | None) -> _Read | None:
        """A version, and all commits on top of it whose entries follow one another."""
        snapshot, seal = (None, None) if known is None else known
        version = -1 if snapshot is None else snapshot.version
        while (content := self._commit(version + 1)) is not None:
            version += 1
            snapshot, seal = applied(snapshot, version, lines(content), self.directory), _seal(content)
        if known is not None and snapshot is known.snapshot:
            return known
        return None if snapshot is None else _Read(snapshot, seal)

    def _later_checkpoint(self, version: int) -> int | None:
        """The newest checkpoint behind a version whose next entry is gone: that was a kept version of old, not the
        newest. None where there is none."""
        last = self._last()
        if last is None or last.version < version:
            return None
        newest = last.version if last.version > version else max(self.checkpoints(), default=version)
        return newest if newest > version else None

    def at(self, version: int) -> Snapshot | None:
        """An older version, None where the log does not reach back to it. Raises SinkError."""
        found = self.told_at(version)
        return None if found is None else _counted(found, self.directory)

    def told_at(self, version: int) -> Snapshot | None:
        """The same as the log tells it: of files of others it may not say how many rows they have (`LakeFile.counted`).
        No data file is read, so they may be gone. Raises SinkError."""
        found: Snapshot | None = None
        try:
            begin = max((c for c in self.checkpoints() if c <= version), default=-1)
            if begin >= 0:
                found = self._read_checkpoint(begin)
            for number in range(begin + 1, version + 1):
                content = self._commit(number)
                if content is None:
                    return None
                found = applied(found, number, lines(content), self.directory)
        except (OSError, msgspec.DecodeError, pa.ArrowException) as error:
            raise refused(
                error, f"{self._log} cannot be read: {error}; put back a copy of the lake"
            ) from error
        return found

    def lines_of(self, version: int) -> list[Line] | None:
        """The lines of one commit; None where its entry is gone. Raises SinkError."""
        try:
            content = self._commit(version)
            return None if content is None else lines(content)
        except (OSError, msgspec.DecodeError) as error:
            raise refused(
                error, f"{self._log} cannot be read: {error}; put back a copy of the lake"
            ) from error

    def carrying(self, name: str, most: int) -> Snapshot | None:
        """The last version that carries at most `most` of an application, of those whose log is there; None where none
        does. What is carried never falls. Raises SinkError.
        """
        newest = self.newest()
        if newest is None:
            return None
        low, high = 0, newest.version
        while low < high:
            middle = (low + high + 1) // 2
            carried = self._carried(name, middle)
            if carried is None or carried <= most:
                low = middle
            else:
                high = middle - 1
        carried = self._carried(name, low)
        return self.at(low) if carried is not None and carried <= most else None

    def _carried(self, name: str, version: int) -> int | None:
        """What an application had reached at a version; None where the log does not tell any more."""
        for number in range(version, -1, -1):
            content = self._commit(number)
            if content is None:
                begin = number + 1  # where the log begins there is a checkpoint
                told = begin <= version and self._stored(self._checkpoint_path(begin))
                return self._read_checkpoint(begin).transactions.get(name) if told else None
            for line in lines(content):
                if line.txn is not None and line.txn.app_id == name:
                    return line.txn.version
        return None

    def checkpointed(self) -> int:
        """The version of the newest checkpoint, 0 before the first. Raises SinkError."""
        try:
            last = self._last()
        except (OSError, msgspec.DecodeError) as error:
            raise refused(
                error, f"{self._log} cannot be read: {error}; put back a copy of the lake"
            ) from error
        return 0 if last is None else last.version

    def put(self, on: Snapshot | None, info: dict[str, Any], actions: Iterable[Action]) -> Snapshot | None:
        """Commit on top of a version; None when another commit came first. Durable when it returns.

        Raises SinkError.
        """
        version = 0 if on is None else on.version + 1
        # No other commit has it: where an answer was lost, it tells whose commit stands there.
        content = encoded(info | {"txnId": uuid.uuid4().hex}, actions)
        after = applied(on, version, lines(content), self.directory)
        try:
            self._storage.create(self._path(version), content)
        except FileExistsError:
            return None
        except OSError as error:
            raise refused(
                error, f"cannot commit to {self._log}: {error}; check space and rights there"
            ) from error
        self._known = _Read(after, _seal(content))
        return after

    def flush(self, version: int) -> None:
        """Make a commit durable that was found: whoever wrote it may have died before it was.

        Raises SinkError: a flush that failed does not succeed by being asked for again.
        """
        entry = self._path(version)
        try:
            self._storage.flush(entry)
        except OSError as error:
            raise refused(
                error, f"cannot flush {entry} to the disk: {error}; check the disk, then start again"
            ) from error

    def _stands(self, known: _Read) -> bool:
        """Whether the log still has the version that is remembered: a copy of the table may have been put back. It may
        have as many versions, so the entries themselves are compared."""
        content = self._commit(known.snapshot.version)
        return content is not None and _seal(content) == known.seal

    def _stored(self, entry: Location) -> bool:
        return self._storage.stored(entry) is not None

    def _path(self, version: int) -> Location:
        return self._log / f"{version:020d}.json"

    def _commit(self, version: int) -> bytes | None:
        try:
            return self._storage.read(self._path(version))
        except FileNotFoundError:
            return None

    def checkpoints(self) -> list[int]:
        """The versions that have a checkpoint, in order."""
        found = self._storage.listed(self._log, ".checkpoint.parquet")
        return sorted(int(one.place.name[:20]) for one in found)

    def _checkpoint(self) -> _Read | None:
        """The newest checkpoint, None before the first."""
        last = self._last()
        if last is None:
            found = self.checkpoints()
            return self._checkpointed_at(found[-1]) if found else None
        if last.parts is None and self._stored(self._checkpoint_path(last.version)):
            return self._checkpointed_at(last.version)
        # Of two that were written, the older may have come last (Delta protocol: Last Checkpoint File).
        found = self.checkpoints()
        if last.parts is not None or not found:
            raise SinkError(
                f"{self._log}: the checkpoint of version {last.version} is of a kind that is not known here; "
                "let deltalake write one: DeltaTable(path).create_checkpoint()"
            )
        return self._checkpointed_at(found[-1])

    def _last(self) -> _LastCheckpoint | None:
        """What the log says of its newest checkpoint; None before the first."""
        try:
            return msgspec.json.decode(self._storage.read(self._log / _LAST), type=_LastCheckpoint)
        except FileNotFoundError:
            return None

    def _checkpoint_path(self, version: int) -> Location:
        return self._log / f"{version:020d}.checkpoint.parquet"

    def _checkpointed_at(self, version: int) -> _Read:
        """The version of a checkpoint as what is read on from."""
        content = self._commit(version)
        return _Read(self._read_checkpoint(version), None if content is None else _seal(content))

    def _read_checkpoint(self, version: int) -> Snapshot:
        with self._storage.opened(self._checkpoint_path(version)) as file:
            rows = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
        found = [_line(row) for row in rows]
        return applied(None, version, found, self.directory)


def _seal(content: bytes) -> bytes:
    """A digest of an entry of the log; no two commits of ours have the same (`DeltaLog.put`)."""
    return hashlib.blake2b(content, digest_size=16).digest()


def _line(row: dict[str, Any]) -> Line:
    """A row of a checkpoint: the action that is not null in it."""
    held = {name: _filled(value) for name, value in row.items() if value is not None}
    return msgspec.convert(held, Line)


def _filled(value: Any) -> Any:
    """Without nulls: what is optional is left out. That of a partition is a value."""
    if not isinstance(value, dict):
        return value
    return {k: v if k == _PARTITION else _filled(v) for k, v in value.items() if v is not None}


def applied(known: Snapshot | None, version: int, commit: Iterable[Line], where: Location) -> Snapshot:
    """A version, and the commit on top of it. Raises SinkError for a table that asks for more than is known."""
    protocol, metadata = (known.protocol, known.metadata) if known else (None, None)
    files = dict(known.files) if known else {}
    transactions = dict(known.transactions) if known else {}
    adds = []
    for line in commit:
        if line.protocol is not None:
            protocol = line.protocol
        if line.meta_data is not None:
            metadata = line.meta_data
        if line.txn is not None:
            transactions[line.txn.app_id] = line.txn.version
        if line.remove is not None:
            files.pop(line.remove.file, None)
        if line.add is not None:
            adds.append(line.add)
    # A commit that changes a file's vector removes and adds one path, in whatever order.
    for add in adds:
        files[add.file] = LakeFile(add, _told_rows(add))
    if protocol is None or metadata is None:
        raise SinkError(f"{where}: the Delta log begins without a protocol: is a part of it gone?")
    unknown = protocol.features - KNOWN
    if unknown:
        raise SinkError(
            f"{where}: the Delta table has features that are not known here: {', '.join(sorted(unknown))}; "
            "was it altered by another program?"
        )
    return Snapshot(version, protocol, metadata, files, transactions)


def _told_rows(add: Add) -> int:
    """Rows of a file, dead ones too. Other writers may leave statistics out (Delta protocol: Per-file Statistics)."""
    stats = Bounds() if add.stats is None else msgspec.json.decode(add.stats, type=Bounds)
    return _NOT_TOLD if stats.num_records is None else stats.num_records


def _counted(of: Snapshot, directory: Location) -> Snapshot:
    """A version in which each file's rows are known. Of versions in between a file may be gone by now."""
    if all(file.counted for file in of.files.values()):
        return of
    files = {
        path: file if file.counted else LakeFile(file.add, _rows_in(directory / file.path))
        for path, file in of.files.items()
    }
    return msgspec.structs.replace(of, files=files)


def _rows_in(path: Location) -> int:
    with lake_parquet(path) as file:
        rows: int = file.metadata.num_rows
    return rows
