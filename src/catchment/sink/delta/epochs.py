"""The epochs table: one row per committed epoch, from which readers start (DESIGN 5).

Together with the lake tables it holds all that the state store needs to be rebuilt. Every row is written
once, as a file of its own; `compact` brings small files together, so that the list of files stays short. No
row is ever dropped.
"""

import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from catchment import world
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.errors import LeaseLost
from catchment.sink.delta.commit import (
    LakeTable,
    check_fence,
    commit_properties,
    create_table,
    mark_layout,
    open_table,
    sync_version,
)
from catchment.sink.delta.epoch_rows import NAME, SCHEMA, Record, RowBase, RowReader, encoded_row
from catchment.sink.delta.files import delta_stats, lake_file, write_parquet
from catchment.sink.delta.layout import epochs_dir, fence_app

# So many files of up to 31 rows become one, so many of up to 1,023 become one, and so on; 32,768 rows are enough.
_LEVEL_FILES_MIN = 32
_LEVELS = 3
_BATCH_ROWS = 256
_RUNNER_BITS = 62


class EpochsTable:
    """The epochs of one feed in a lake."""

    def __init__(self, root: str | Path, feed: str) -> None:
        self.feed = feed
        self._directory = epochs_dir(root)
        self._table = LakeTable(NAME, self._directory)
        self._base: RowBase | None = None

    def append(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """Make an epoch visible to readers, once. Raises LeaseLost when a later runner has written.

        The first row that an object appends is whole; later ones build on it for a while.
        """
        row, base = encoded_row(EpochRow(manifest, commit, fence), self._base)
        file: list[AddAction] = []

        def attempt(table: DeltaTable) -> RowBase | bool | None:
            check_fence(table, self.feed, fence, NAME)
            applied = table.transaction_version(self._app)
            if applied is not None and applied >= manifest.epoch:
                return False
            if mark_layout(table, self._directory, self.feed, fence):
                return None  # earlier programs refuse the table before there is a row that they would misread
            if not file:
                file.append(self._write([row]))
            self._commit(table, file, fence, Transaction(self._app, manifest.epoch))
            return base

        written = self._table.commit(attempt, self._create)
        # Nobody knows who wrote a row that stood already, so nothing may build on it.
        self._base = written if isinstance(written, RowBase) else None

    def take_over(self, fence: int) -> None:
        """Carry the fence of a new runner, so that an older one cannot add an epoch from now on.

        Raises LeaseLost when another runner did so under the same fence: a state store that was lost gives one twice.
        """
        ours = secrets.randbits(_RUNNER_BITS)

        def attempt(table: DeltaTable) -> bool:
            check_fence(table, self.feed, fence, NAME)
            runner = table.transaction_version(self._runner_app)
            if runner == ours:
                return True
            if runner is not None and table.transaction_version(fence_app(self.feed)) == fence:
                raise LeaseLost(
                    f"{NAME}: another runner of feed {self.feed} has written under this one's fence {fence}: the "
                    "state store was lost while it ran; stop this one"
                )
            return self._commit(table, [], fence, Transaction(self._runner_app, ours))

        def mark(table: DeltaTable) -> bool:
            check_fence(table, self.feed, fence, NAME)
            mark_layout(table, self._directory, self.feed, fence)
            return True

        self._table.commit(attempt, self._create)
        self._table.commit(mark, self._create)

    def compact(self, fence: int) -> int:
        """Bring small files together in one commit; how many there were. Runs beside `append`."""
        taken: list[dict[str, Any]] = []
        merged: list[AddAction] = []

        def attempt(table: DeltaTable) -> int:
            check_fence(table, self.feed, fence, NAME)
            files = _files(table)
            present = {f["path"] for f in files}
            if any(file.path in present for file in merged):
                return len(taken)  # an attempt that failed after its commit
            if not merged:
                taken.extend(_one_level(files))
            if not taken or any(f["path"] not in present for f in taken):
                return 0
            if not merged:
                merged.append(self._write(self._batches(taken)))
            now_ms = world.now_us() // 1000
            removes = [RemoveAction(f["path"], True, now_ms, f["size_bytes"], {}) for f in taken]
            self._commit(table, [*merged, *removes], fence)
            return len(taken)

        return self._table.commit(attempt, self._create)

    def newest(self) -> EpochRow | None:
        """The newest committed epoch; None before the first."""
        rows = self.last(1)
        return rows[0] if rows else None

    def last(self, count: int, until: int | None = None) -> list[EpochRow]:
        """The newest `count` epochs, of those up to number `until`; the newest first."""
        table = self._table.refreshed()
        files = (
            [] if table is None else [f for f in _files(table) if until is None or f["min.epoch"] <= until]
        )
        found: list[tuple[int, str]] = []
        # Feeds that share a lake share its files: one may end with an epoch that is not ours.
        for file in sorted(files, key=lambda f: -int(f["max.epoch"])):
            if len(found) == count and file["max.epoch"] <= found[-1][0]:
                break
            mine = ((number, file["path"]) for number in self._numbers(file, until))
            found = sorted([*found, *mine], reverse=True)[:count]
        records: list[Record] = []
        for path in dict.fromkeys(path for _, path in found):
            numbers = [number for number, where in found if where == path]
            records += self._mine(self._read([path], [("epoch", "in", numbers)]))
        reader = self._reader(table)
        return [reader.row(record) for record in sorted(records, key=lambda r: -r["epoch"])]

    def numbers(self) -> list[int]:
        """The numbers of all committed epochs, in order."""
        table = self._table.refreshed()
        files = [] if table is None else _files(table)
        return sorted(number for file in files for number in self._numbers(file, None))

    def at(self, epoch: int) -> EpochRow | None:
        """The epoch of exactly that number; None when it was not committed."""
        table = self._table.refreshed()
        record = self._record(table, epoch)
        return None if record is None else self._reader(table).row(record)

    def fence(self) -> int:
        """The newest fence that the table carries, also of a runner that committed no epoch; 0 before the first."""
        table = self._table.refreshed()
        return 0 if table is None else table.transaction_version(fence_app(self.feed)) or 0

    def read_all(self) -> list[EpochRow]:
        """All committed epochs in order."""
        table = self._table.refreshed()
        records = [] if table is None else self._mine(self._read([f["path"] for f in _files(table)]))
        reader = self._reader(table)
        return [reader.row(record) for record in sorted(records, key=lambda r: r["epoch"])]

    @property
    def _app(self) -> str:
        return f"catchment/{self.feed}/epochs"

    @property
    def _runner_app(self) -> str:
        """Its version tells two runners of one fence apart."""
        return f"catchment/{self.feed}/runner"

    def _create(self) -> DeltaTable:
        return create_table(self._directory, SCHEMA, [])

    def _write(self, rows: Iterable[pa.Table | pa.RecordBatch]) -> AddAction:
        path = f"{world.token()}.parquet"
        size, footer = write_parquet(self._directory / path, rows, SCHEMA)
        now_ms = world.now_us() // 1000
        return AddAction(path, size, {}, now_ms, True, delta_stats(footer, ("feed", "epoch")))

    def _commit(self, table: DeltaTable, actions: list[Any], fence: int, *transactions: Transaction) -> bool:
        version: int = table.version() + 1
        table.create_write_transaction(
            actions, "append", SCHEMA, commit_properties=commit_properties(self.feed, fence, *transactions)
        )
        sync_version(self._directory, version)
        return True

    def _numbers(self, file: dict[str, Any], until: int | None) -> list[int]:
        """The feed's epochs in a file, up to `until`."""
        held = _read(self._directory / file["path"], columns=["feed", "epoch"])
        numbers: list[int] = held.filter(pc.equal(held["feed"], self.feed))["epoch"].to_pylist()
        return [number for number in numbers if until is None or number <= until]

    def _read(self, paths: Sequence[str], filters: list[tuple[str, str, Any]] | None = None) -> pa.Table:
        tables = [_read(self._directory / path, schema=SCHEMA, filters=filters) for path in paths]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def _batches(self, files: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """All rows, a few at a time: together they may be larger than memory."""
        for file in files:
            path = self._directory / file["path"]
            with lake_file(path), pq.ParquetFile(path) as source:
                yield from source.iter_batches(_BATCH_ROWS)

    def _mine(self, rows: pa.Table) -> list[Record]:
        return [record for record in rows.to_pylist() if record["feed"] == self.feed]

    def _record(self, table: DeltaTable | None, epoch: int) -> Record | None:
        """The record of an epoch in a version of the table."""
        files = [] if table is None else _files(table)
        paths = [f["path"] for f in files if f["min.epoch"] <= epoch <= f["max.epoch"]]
        return next(iter(self._mine(self._read(paths, [("epoch", "=", epoch)]))), None)

    def _reader(self, table: DeltaTable | None) -> RowReader:
        return RowReader(lambda epoch: self._record(table, epoch))


def feeds(root: str | Path) -> list[str]:
    """Names of the feeds that have epochs in a lake."""
    table = open_table(epochs_dir(root))
    if table is None:
        return []
    names: set[str] = set()
    for file in _files(table):
        if file["min.feed"] == file["max.feed"]:
            names.add(file["min.feed"])
        else:
            names.update(_read(epochs_dir(root) / file["path"], columns=["feed"])["feed"].to_pylist())
    return sorted(names)


def _one_level(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Files of about the same number of rows, if there are enough: so each row is written anew once a level."""
    levels: list[list[dict[str, Any]]] = [[] for _ in range(_LEVELS)]
    for file in sorted(files, key=lambda f: int(f["min.epoch"])):
        level = int(math.log(file["num_records"], _LEVEL_FILES_MIN))
        if level < _LEVELS:
            levels[level].append(file)
    return next((level for level in levels if len(level) >= _LEVEL_FILES_MIN), [])


def _read(path: Path, **options: Any) -> pa.Table:
    with lake_file(path):
        return pq.read_table(path, **options)


def _files(table: DeltaTable) -> list[dict[str, Any]]:
    return list(pa.table(table.get_add_actions(flatten=True)).to_pylist())
