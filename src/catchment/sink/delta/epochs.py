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

import msgspec
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
from catchment.sink.delta.files import delta_stats, lake_file, write_parquet
from catchment.sink.delta.layout import epochs_dir, fence_app

SCHEMA = pa.schema(
    [
        pa.field("feed", pa.string()),
        pa.field("epoch", pa.int64()),
        pa.field("committed_us", pa.int64()),
        pa.field("manifest", pa.string()),
        pa.field("versions", pa.string()),
        pa.field("digest", pa.string()),
        pa.field("fence", pa.int64()),
    ]
)
_NAME = "epochs table"
# So many files of up to 31 rows become one, so many of up to 1,023 become one, and so on; 32,768 rows are enough.
_LEVEL_FILES_MIN = 32
_LEVELS = 3
_BATCH_ROWS = 256
_RUNNER_BITS = 62
# Built while one thread is there: msgspec 0.22 crashes the process where two threads build a decoder at once.
_decode_manifest = msgspec.json.Decoder(Manifest).decode
_decode_versions = msgspec.json.Decoder(dict[str, int]).decode


class EpochsTable:
    """The epochs of one feed in a lake."""

    def __init__(self, root: str | Path, feed: str) -> None:
        self.feed = feed
        self._directory = epochs_dir(root)
        self._table = LakeTable(_NAME, self._directory)

    def append(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """Make an epoch visible to readers, once. Raises LeaseLost when a later runner has written."""
        file: list[AddAction] = []

        def attempt(table: DeltaTable) -> bool:
            check_fence(table, self.feed, fence, _NAME)
            applied = table.transaction_version(self._app)
            if applied is not None and applied >= manifest.epoch:
                return True
            if not file:
                file.append(self._write([_rows([EpochRow(manifest, commit, fence)])]))
            return self._commit(table, file, fence, Transaction(self._app, manifest.epoch))

        self._table.commit(attempt, self._create)

    def take_over(self, fence: int) -> None:
        """Carry the fence of a new runner, so that an older one cannot add an epoch from now on.

        Raises LeaseLost when another runner did so under the same fence: a state store that was lost gives one twice.
        """
        ours = secrets.randbits(_RUNNER_BITS)

        def attempt(table: DeltaTable) -> bool:
            check_fence(table, self.feed, fence, _NAME)
            runner = table.transaction_version(self._runner_app)
            if runner == ours:
                return True
            if runner is not None and table.transaction_version(fence_app(self.feed)) == fence:
                raise LeaseLost(
                    f"{_NAME}: another runner of feed {self.feed} has written under this one's fence {fence}: the "
                    "state store was lost while it ran; stop this one"
                )
            return self._commit(table, [], fence, Transaction(self._runner_app, ours))

        def mark(table: DeltaTable) -> bool:
            check_fence(table, self.feed, fence, _NAME)
            mark_layout(table, self._directory, self.feed, fence)
            return True

        self._table.commit(attempt, self._create)
        self._table.commit(mark, self._create)

    def compact(self, fence: int) -> int:
        """Bring small files together in one commit; how many there were. Runs beside `append`."""
        taken: list[dict[str, Any]] = []
        merged: list[AddAction] = []

        def attempt(table: DeltaTable) -> int:
            check_fence(table, self.feed, fence, _NAME)
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
        rows = []
        for path in dict.fromkeys(path for _, path in found):
            numbers = [number for number, where in found if where == path]
            rows += self._decode(self._read([path], [("epoch", "in", numbers)]))
        return sorted(rows, key=lambda row: -row.manifest.epoch)

    def numbers(self) -> list[int]:
        """The numbers of all committed epochs, in order."""
        table = self._table.refreshed()
        files = [] if table is None else _files(table)
        return sorted(number for file in files for number in self._numbers(file, None))

    def at(self, epoch: int) -> EpochRow | None:
        """The epoch of exactly that number; None when it was not committed."""
        table = self._table.refreshed()
        if table is None:
            return None
        files = [f["path"] for f in _files(table) if f["min.epoch"] <= epoch <= f["max.epoch"]]
        rows = self._decode(self._read(files, [("epoch", "=", epoch)]))
        return rows[0] if rows else None

    def fence(self) -> int:
        """The newest fence that the table carries, also of a runner that committed no epoch; 0 before the first."""
        table = self._table.refreshed()
        return 0 if table is None else table.transaction_version(fence_app(self.feed)) or 0

    def read_all(self) -> list[EpochRow]:
        """All committed epochs in order."""
        table = self._table.refreshed()
        return [] if table is None else self._decode(self._read([f["path"] for f in _files(table)]))

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

    def _decode(self, rows: pa.Table) -> list[EpochRow]:
        found = [_row(r) for r in rows.to_pylist() if r["feed"] == self.feed]
        return sorted(found, key=lambda row: row.manifest.epoch)


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


def _rows(rows: list[EpochRow]) -> pa.Table:
    columns = {
        "feed": [r.manifest.feed for r in rows],
        "epoch": [r.manifest.epoch for r in rows],
        "committed_us": [r.commit.time_us for r in rows],
        "manifest": [_without_deltas(r.manifest) for r in rows],
        "versions": [msgspec.json.encode(r.commit.versions).decode() for r in rows],
        "digest": [r.commit.digest for r in rows],
        "fence": [r.fence for r in rows],
    }
    return pa.table(columns, schema=SCHEMA)


def _without_deltas(manifest: Manifest) -> str:
    return msgspec.json.encode(msgspec.structs.replace(manifest, deltas=())).decode()


def _row(row: dict[str, Any]) -> EpochRow:
    manifest, versions = _decode_manifest(row["manifest"]), _decode_versions(row["versions"])
    return EpochRow(
        manifest, Commit(row["epoch"], row["digest"], row["committed_us"], versions), row["fence"]
    )
