"""A sink that keeps no row: it notes what it is asked, and knows the newest epoch, as every sink must."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec.structs import replace

from catchment.epoch.gather import Gathered
from catchment.epoch.work import FewRows, Output
from catchment.model.chunk import Chunk
from catchment.model.epoch import Commit, DataFile, EpochRow, Manifest, Part, TableShape
from catchment.model.image import DELETED
from catchment.model.table import TableId
from catchment.sink.erasure import Erased, Erasure
from catchment.sink.port import Settled
from catchment.wire.cells.types import arrow_type
from tests.world.stages import MemoryStage


@dataclass
class Asked:
    """What outlives the runs: `calls` has the name of each call and its epoch, 0 where it is of none."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    newest: EpochRow | None = None
    fence: int = 0

    def note(self, call: str, epoch: int = 0) -> None:
        """One more call."""
        self.calls.append((call, epoch))

    def taken(self) -> list[tuple[str, int]]:
        """The calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


@dataclass(frozen=True)
class Count:
    """Counts the rows of a task."""

    def emit(
        self, tables: Iterable[pa.Table], shape: TableShape, shard: str, part: Part, *, epoch: int, name: str
    ) -> Output | None:
        """As the port has it."""
        rows = deletes = 0
        for table in tables:
            rows += table.num_rows
            if DELETED in table.schema.names:
                deletes += sum(table.column(DELETED).to_pylist())
        return Output(shape.table, part, FewRows(pa.table({})), rows - deletes, deletes) if rows else None


@dataclass(frozen=True)
class NoRows:
    """Reads a table that holds nothing."""

    shape: TableShape

    def rows(self, chunks: Sequence[Chunk]) -> pa.Table:
        """As the port has it."""
        columns = self.shape.definition.columns
        return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns]).empty_table()

    def having(self, shard: str, values: pa.Table) -> pa.Table:
        """As the port has it."""
        return self.rows(())

    def elsewhere(self, shards: Sequence[str]) -> Mapping[str | None, pa.Table]:
        """As the port has it."""
        return {}


@dataclass(frozen=True)
class Idle:
    """No upkeep."""

    asked: Asked
    running: bool = False

    def count(self, manifest: Manifest) -> None:
        """As the port has it."""
        self.asked.note("count", manifest.epoch)

    def turn(self) -> None:
        """As the port has it; not noted, since nobody knows how many turns bring no epoch."""

    def ended(self) -> Sequence[Collection[TableId]]:
        """As the port has it."""
        return ()

    def waiting(self) -> Mapping[TableId, int]:
        """As the port has it."""
        return {}

    def stop(self, *, hurry: bool) -> None:
        """As the port has it."""
        self.asked.note("stop")


class NothingSink:
    """`catchment.sink.port.Sink` that applies nothing."""

    writer = Count()
    stage = MemoryStage()

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def newest(self) -> EpochRow | None:
        """As the port has it."""
        self._asked.note("newest")
        return self._asked.newest

    def shape_at(self, table: TableId, epoch: int) -> TableShape | None:
        """As the port has it: nothing is kept."""
        self._asked.note("shape_at", epoch)
        return None

    def fence(self) -> int:
        """As the port has it."""
        self._asked.note("fence")
        return self._asked.fence

    def must_be_free(self, first: Manifest) -> None:
        """As the port has it."""
        self._asked.note("must_be_free", first.epoch)

    def has_replaced(self, shape: TableShape) -> bool:
        """As the port has it: nothing is settled here."""
        self._asked.note("has_replaced", shape.generation)
        return False

    def must_hold(self, row: EpochRow) -> None:
        """As the port has it."""
        self._asked.note("must_hold", row.commit.epoch)

    def older(self, row: EpochRow) -> tuple[TableId, ...]:
        """As the port has it."""
        return ()

    def upgrade(self, table: TableId) -> None:
        """As the port has it; not called, since nothing is older."""

    def must_have_files(self, manifest: Manifest) -> None:
        """As the port has it."""
        self._asked.note("must_have_files", manifest.epoch)

    def take_over(self, shapes: Iterable[TableShape], fence: int) -> None:
        """As the port has it."""
        self._asked.note("take_over")
        self._asked.fence = fence

    def restore(self, row: EpochRow, fence: int, applies: int | None) -> int:
        """As the port has it."""
        self._asked.note("restore", row.commit.epoch)
        return row.commit.epoch

    def complete(self, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
        """As the port has it: files without rows, one for each table that changed."""
        self._asked.note("complete", epoch)
        return {o.table: [DataFile("", 0, 0, o.part, "")] for o in gathered.outputs}

    def apply(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """As the port has it."""
        self._asked.note("apply", manifest.epoch)
        return {str(shape.table): 0 for shape in manifest.shapes}

    def record(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """As the port has it."""
        self._asked.note("record", manifest.epoch)
        self._asked.newest = EpochRow(replace(manifest, deltas=()), commit, fence)

    def reader(self, row: EpochRow, table: TableId) -> NoRows:
        """As the port has it."""
        self._asked.note("reader", row.commit.epoch)
        return NoRows(next(shape for shape in row.manifest.shapes if shape.table == table))

    def changed(
        self, row: EpochRow, table: TableId, since: int, rows: int
    ) -> Iterator[Mapping[str | None, pa.Table]]:
        """As the port has it: nothing is kept, so nothing changed."""
        self._asked.note("changed", row.commit.epoch)
        return iter(())

    def settle(self, fence: int) -> Settled:
        """As the port has it."""
        self._asked.note("settle")
        return Settled({}, 0)

    def erase(self, erasure: Erasure, fence: int) -> Erased:
        """As the port has it: nothing is there."""
        self._asked.note("erase")
        keys = erasure.keys.num_rows
        return Erased(str(erasure.table), keys, 0, {}, 0, 0, 0, (), "no epoch can be read")

    def upkeep(self, fence: int) -> Idle:
        """As the port has it."""
        self._asked.note("upkeep")
        return Idle(self._asked)
