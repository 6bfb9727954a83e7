"""A Delta lake as the sink of a feed."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from msgspec.structs import replace

from catchment.config import Feed
from catchment.epoch.gather import Gathered
from catchment.epoch.work import Reader
from catchment.model.epoch import Commit, DataFile, EpochRow, Manifest, TableShape
from catchment.model.location import Location, location
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epochs_dir, table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.tail import older
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.tail.inline import write_inline
from catchment.sink.delta.tail.stage import LakeStage
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.sink.delta.upkeep import erase, restore
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.turns import LakeUpkeep, order_for
from catchment.sink.erasure import Erased, Erasure
from catchment.sink.port import Settled
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused


class DeltaLake:
    """`catchment.sink.port.Sink` over the tables of a lake, its epochs table and its upkeep.
    `order` says where the lake is, and whose; changes wait for `settle_seconds`, about.

    `after_table` is called after each table's commit of an epoch: the place for a crash between two tables.
    """

    def __init__(
        self, order: UpkeepOrder, settle_seconds: float, after_table: Callable[[], None] = lambda: None
    ) -> None:
        self._order = order
        self._settle_seconds = settle_seconds
        self._root, self._feed = location(order.root), order.feed
        self._tables = DeltaSink(self._root, self._feed, after_table)
        self._epochs = EpochsTable(self._root, self._feed)
        self.writer = LakeWriter(self._root)
        self.stage = LakeStage(self._root, self._feed)
        self._plain: dict[TableId, DeltaLog] = {}  # of those that are waited for

    def newest(self) -> EpochRow | None:
        """As the port has it."""
        return self._epochs.newest()

    def shape_at(self, table: TableId, epoch: int) -> TableShape | None:
        """As the port has it."""
        row = self._epochs.at(epoch)
        found = () if row is None else row.manifest.shapes
        return next((shape for shape in found if shape.table == table), None)

    def fence(self) -> int:
        """As the port has it."""
        return self._epochs.fence()

    def must_be_free(self, first: Manifest) -> None:
        """As the port has it."""
        self._tables.must_be_free(first)

    def must_hold(self, row: EpochRow) -> None:
        """As the port has it."""
        restore.must_hold(self._root, row)

    def older(self, row: EpochRow) -> tuple[TableId, ...]:
        """As the port has it."""
        first = (shape.table for shape in row.manifest.shapes if not shape.generation)
        return tuple(table for table in first if older.is_older(self._root, table))

    def upgrade(self, table: TableId) -> None:
        """As the port has it."""
        older.upgrade(self._root, table, self._feed)

    def has_replaced(self, shape: TableShape) -> bool:
        """As the port has it."""
        log = self._plain.setdefault(shape.table, DeltaLog(table_dir(self._root, shape.table)))
        replaced = generation(log.newest(), self._feed, shape.table) >= shape.generation
        if replaced:
            self._plain.pop(shape.table, None)
        return replaced

    def must_have_files(self, manifest: Manifest) -> None:
        """As the port has it."""
        restore.must_have_files(self._root, self._feed, manifest)

    def take_over(self, shapes: Iterable[TableShape], fence: int) -> None:
        """As the port has it."""
        _must_serve(self._root)
        self._epochs.take_over(fence)
        self._tables.take_over(shapes, fence)

    def restore(self, row: EpochRow, fence: int, applies: int | None) -> int:
        """As the port has it."""
        return restore.restore(self._root, self._feed, row, fence, applies)

    def complete(self, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
        """As the port has it."""
        return write_inline(self._root, epoch, gathered)

    def apply(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """As the port has it."""
        return self._tables.apply_epoch(manifest, fence)

    def record(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """As the port has it."""
        self._epochs.append(manifest, commit, fence)

    def reader(self, row: EpochRow, table: TableId) -> Reader:
        """As the port has it."""
        # They need DuckDB, which a run does not.
        from catchment.sink.delta.reading.chunks import LakeReader
        from catchment.sink.delta.reading.lake import state

        return LakeReader(state(self._root, row, table, origin=True))

    def changed(
        self, row: EpochRow, table: TableId, since: int, rows: int
    ) -> Iterator[Mapping[str | None, pa.Table]]:
        """As the port has it."""
        from catchment.sink.delta.reading.changed_keys import changed_keys

        return changed_keys(self._root, row, table, since, rows)

    def settle(self, fence: int) -> Settled:
        """As the port has it."""
        return Keeper(str(self._root), self._feed).carry_out(replace(self._order, fence=fence))

    def erase(self, erasure: Erasure, fence: int) -> Erased:
        """As the port has it."""
        return erase.erase(replace(self._order, fence=fence), erasure)

    def upkeep(self, fence: int) -> LakeUpkeep:
        """As the port has it, in processes of their own."""
        return LakeUpkeep(replace(self._order, fence=fence), self._settle_seconds)


def _must_serve(root: Location) -> None:
    ours = epochs_dir(root).parent
    try:
        storage_of(root).must_serve(ours)
    except OSError as error:
        raise refused(error, f"{root} cannot be a lake: {error}") from error


def lake_of(feed: Feed, after_table: Callable[[], None]) -> DeltaLake:
    """The lake that a feed file describes; `after_table` as `DeltaLake` takes it."""
    return DeltaLake(order_for(feed, fence=0), feed.sink.settle, after_table)
