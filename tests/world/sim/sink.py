"""A sink in memory that keeps its promises, each in one step that a crash comes before or behind."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec.structs import replace

from catchment.epoch.gather import Gathered
from catchment.epoch.work import FewRows, Output, Reader
from catchment.model.epoch import Commit, DataFile, EpochRow, Manifest, Part, TableShape
from catchment.model.errors import LeaseLost, SinkError, SinkRestored
from catchment.model.image import DELETED
from catchment.model.table import TableId
from catchment.sink.erasure import Erased, Erasure
from catchment.sink.port import Settled
from tests.world.sim.scheduler import SimWorld
from tests.world.stages import MemoryStage

Row = tuple[int | None, ...]
_INLINE_ROWS = 3


@dataclass
class Held:
    """A table: `rows` by shard and key, and all versions of them."""

    epoch: int = 0
    fence: int = 0
    rows: dict[tuple[str, int], Row] = field(default_factory=dict)
    versions: list[dict[tuple[str, int], Row]] = field(default_factory=list)


@dataclass
class Storage:
    """What outlives the processes."""

    world: SimWorld
    files: dict[str, pa.Table] = field(default_factory=dict)
    tables: dict[tuple[TableId, int], Held] = field(default_factory=dict)  # by table and generation
    epochs: list[EpochRow] = field(default_factory=list)
    epochs_fence: int = 0
    runner: str = ""
    on_epoch: Callable[[Manifest], None] = lambda manifest: None


@dataclass(frozen=True)
class SimWriter:
    """Keeps the rows of a task under the name of its attempt; a few rows go inline."""

    storage: Storage

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, *, epoch: int, name: str
    ) -> Output | None:
        """As the port has it."""
        parts = [table for table in tables if table.num_rows]
        if not parts:
            return None
        # As in a lake, there is a place for the columns of the table, and for no others.
        known = {c.column.name for c in shape.columns if c.live} | {DELETED}
        rows = pa.concat_tables(parts, promote_options="default")
        rows = rows.select([name for name in rows.schema.names if name in known])
        deletes = sum(rows[DELETED].to_pylist()) if DELETED in rows.schema.names else 0
        shards = pa.array([shard] * rows.num_rows)
        rows = rows.append_column("shard ", shards)
        self.storage.world.step("write a file")
        if rows.num_rows <= _INLINE_ROWS:
            return Output(shape.table, part, FewRows(rows), rows.num_rows - deletes, deletes)
        path = f"{shape.table}/{part.value}/{name}"
        if path in self.storage.files:
            raise AssertionError(f"two attempts wrote {path}")
        self.storage.files[path] = rows
        file = DataFile(path, rows.nbytes, rows.num_rows, part, "{}")
        return Output(shape.table, part, file, rows.num_rows - deletes, deletes)


class Nothing:
    """No upkeep."""

    running = False

    def count(self, manifest: Manifest) -> None:
        """Nothing."""

    def turn(self) -> None:
        """Nothing."""

    def ended(self) -> Sequence[Collection[TableId]]:
        """Nothing was settled."""
        return ()

    def waiting(self) -> Mapping[TableId, int]:
        """Nothing waits."""
        return {}

    def stop(self, *, hurry: bool) -> None:
        """Nothing runs."""


class SimSink:
    """`catchment.sink.port.Sink` over a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._world = storage.world
        self.writer = SimWriter(storage)
        self.stage = MemoryStage()

    def newest(self) -> EpochRow | None:
        """As the port has it."""
        self._world.step("look at the epochs")
        return self._storage.epochs[-1] if self._storage.epochs else None

    def shape_at(self, table: TableId, epoch: int) -> TableShape | None:
        """As the port has it."""
        self._world.step("look at an epoch")
        found = (row.manifest for row in self._storage.epochs if row.commit.epoch == epoch)
        return next((shape for manifest in found for shape in manifest.shapes if shape.table == table), None)

    def fence(self) -> int:
        """As the port has it."""
        self._world.step("look at the fence")
        return self._storage.epochs_fence

    def must_be_free(self, first: Manifest) -> None:
        """As the port has it."""
        for shape in first.shapes if first.previous == 0 else ():
            held = self._storage.tables.get(_copy(shape), Held())
            if held.epoch not in (0, first.epoch):
                raise SinkError(f"{shape.table} holds something")

    def has_replaced(self, shape: TableShape) -> bool:
        """As the port has it: nothing is settled here."""
        return False

    def must_hold(self, row: EpochRow) -> None:
        """As the port has it."""
        for shape in row.manifest.shapes:
            version = row.commit.versions[str(shape.table)]
            if len(self._storage.tables[_copy(shape)].versions) < version:
                raise SinkRestored(f"{shape.table} is older than its epoch")

    def older(self, row: EpochRow) -> tuple[TableId, ...]:
        """As the port has it."""
        return ()

    def upgrade(self, table: TableId) -> None:
        """As the port has it; nothing is older."""

    def must_have_files(self, manifest: Manifest) -> None:
        """As the port has it."""
        for delta in manifest.deltas:
            held = self._storage.tables.get(_copy(delta.shape), Held())
            if held.epoch != manifest.epoch:
                lost = [file.path for file in delta.files if file.path not in self._storage.files]
                if lost:
                    raise SinkError(f"{lost[0]} is gone")

    def take_over(self, shapes: Iterable[TableShape], fence: int) -> None:
        """As the port has it."""
        self._world.step("take the epochs over")
        self._fenced(self._storage.epochs_fence, fence)
        ours = self._world.token()
        if self._storage.epochs_fence == fence and self._storage.runner not in ("", ours):
            raise LeaseLost("another runner has this fence")
        self._storage.epochs_fence, self._storage.runner = fence, ours
        for shape in shapes:
            self._world.step("take a table over")
            held = self._storage.tables.get(_copy(shape))
            if held is not None:
                self._fenced(held.fence, fence)
                held.fence = fence

    def restore(self, row: EpochRow, fence: int, applies: int | None) -> int:
        """As the port has it."""
        highest = row.manifest.epoch
        for shape in row.manifest.shapes:
            held = self._storage.tables[_copy(shape)]
            if held.epoch > row.manifest.epoch and held.epoch != applies:
                highest = max(highest, held.epoch)
                self._world.step("restore a table")
                self._fenced(held.fence, fence)
                held.rows = dict(held.versions[row.commit.versions[str(shape.table)] - 1])
                held.versions.append(dict(held.rows))
                held.epoch, held.fence = row.manifest.epoch, fence
        return highest

    def complete(self, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
        """As the port has it."""
        found: dict[TableId, list[DataFile]] = {}
        for number, output in enumerate(gathered.outputs):
            held = output.held
            if isinstance(held, FewRows):
                self._world.step("write inline rows")
                rows = held.rows
                path = f"{output.table}/{output.part.value}/{epoch}-{self._world.token()}-{number}"
                self._storage.files[path] = rows
                held = DataFile(path, rows.nbytes, rows.num_rows, output.part, "{}")
            found.setdefault(output.table, []).append(held)
        return found

    def apply(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """As the port has it."""
        if manifest.previous == 0:
            self.must_be_free(manifest)
        for delta in manifest.deltas:
            self._world.step("before a table's commit")
            held = self._storage.tables.setdefault(_copy(delta.shape), Held())
            self._fenced(held.fence, fence)
            held.fence = fence
            if held.epoch >= manifest.epoch:
                continue
            for taken in delta.shape.emptied:
                if taken.before == manifest.epoch:
                    kept = {key: row for key, row in held.rows.items() if key[0] not in taken.shards}
                    held.rows = kept
            names = [c.column.name for c in delta.shape.columns if c.live]
            for file in delta.files:
                _add(held.rows, self._storage.files[file.path], names)
            held.epoch = manifest.epoch
            held.versions.append(dict(held.rows))
            self._world.step("behind a table's commit")
        return {
            str(shape.table): len(self._storage.tables[_copy(shape)].versions) for shape in manifest.shapes
        }

    def record(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """As the port has it."""
        self._world.step("before the epoch's row")
        self._fenced(self._storage.epochs_fence, fence)
        self._storage.epochs_fence = fence
        if not self._storage.epochs or self._storage.epochs[-1].manifest.epoch < manifest.epoch:
            self._storage.epochs.append(EpochRow(replace(manifest, deltas=()), commit, fence))
            self._storage.on_epoch(manifest)
        self._world.step("behind the epoch's row")

    def reader(self, row: EpochRow, table: TableId) -> Reader:
        """None: the simulation looks into the storage."""
        raise SinkError(f"{table} is not read")

    def changed(
        self, row: EpochRow, table: TableId, since: int, rows: int
    ) -> Iterator[Mapping[str | None, pa.Table]]:
        """None: nobody verifies in the simulation."""
        raise SinkError(f"{table} is not read")

    def settle(self, fence: int) -> Settled:
        """Nothing is settled."""
        return Settled({}, 0)

    def erase(self, erasure: Erasure, fence: int) -> Erased:
        """Nothing is erased."""
        raise SinkError(f"{erasure.table} is not erased from")

    def upkeep(self, fence: int) -> Nothing:
        """None."""
        return Nothing()

    @staticmethod
    def _fenced(known: int, fence: int) -> None:
        if known > fence:
            raise LeaseLost(f"a later runner wrote: its fence is {known}, ours {fence}")


def _copy(shape: TableShape) -> tuple[TableId, int]:
    return shape.table, shape.generation


def _add(held: dict[tuple[str, int], Row], rows: pa.Table, names: Sequence[str]) -> None:
    for row in rows.to_pylist():
        key = (row["shard "], row["id"])
        if row.get(DELETED):
            held.pop(key, None)
        else:
            held[key] = tuple(row.get(name) for name in names)
