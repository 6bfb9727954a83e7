"""Where epochs are applied. What of a sink goes with the tasks is `epoch.work.Writer`, `Stage` and `Reader`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from catchment.epoch.gather import Gathered
from catchment.epoch.work import Reader, Stage, Writer
from catchment.model.epoch import Commit as CommitRecord
from catchment.model.epoch import DataFile, EpochRow, Manifest, TableShape
from catchment.model.table import TableId
from catchment.sink.erasure import Erased, Erasure


class Settled(msgspec.Struct, frozen=True):
    """What was settled: rows of changes by table (`schema.name`), and files deleted."""

    changes: dict[str, int]
    deleted: int


class Upkeep(Protocol):
    """What a sink does to its tables beside the feed, in one run. Calls come one at a time."""

    @property
    def running(self) -> bool:
        """Whether something is being done now, as far as the last turn has seen."""
        ...

    def count(self, manifest: Manifest) -> None:
        """An epoch was committed."""
        ...

    def turn(self) -> None:
        """The loop has turned: begin what is due."""
        ...

    def ended(self) -> Sequence[Collection[TableId]]:
        """Of each settle that came to a good end since the last call, the tables whose changes of this run it took."""
        ...

    def waiting(self) -> Mapping[TableId, int]:
        """Rows that wait to be settled, by table, of those that were committed in this run."""
        ...

    def stop(self, *, hurry: bool) -> None:
        """The run ends: settle what waits; in a hurry only as far as it takes seconds. Nothing is lost by either."""
        ...


class Sink(Protocol):
    """A feed's target, for its one runner. Everything that writes takes the runner's fence, and raises LeaseLost when a
    later runner has written; all raise SinkError when the target refuses. Whatever writes may be repeated after a
    crash, with the same arguments."""

    @property
    def writer(self) -> Writer:
        """What tasks write with."""
        ...

    @property
    def stage(self) -> Stage:
        """Where tasks keep rows that wait for their cut."""
        ...

    def newest(self) -> EpochRow | None:
        """The newest epoch that readers see; None before the first."""
        ...

    def shape_at(self, table: TableId, epoch: int) -> TableShape | None:
        """What a table looked like as of an epoch that readers saw; None where the sink has no such epoch."""
        ...

    def fence(self) -> int:
        """The newest fence that it carries, 0 before the first."""
        ...

    def must_be_free(self, first: Manifest) -> None:
        """Raise SinkError where something stands already that the first epoch of a feed, or of a table, would make."""
        ...

    def must_hold(self, row: EpochRow) -> None:
        """Raise SinkRestored where a table is older than the epoch, SinkError where it has to be upgraded first."""
        ...

    def older(self, row: EpochRow) -> tuple[TableId, ...]:
        """The tables of the epoch that an earlier version has left in a form that this one reads and cannot write."""
        ...

    def upgrade(self, table: TableId) -> None:
        """Bring such a table to a form that can be written; it is done or it is not."""
        ...

    def has_replaced(self, shape: TableShape) -> bool:
        """Whether a settle has put the rows in place that a shape `replaces`."""
        ...

    def must_have_files(self, manifest: Manifest) -> None:
        """Raise SinkError when something is gone that an epoch, not applied yet, needs."""
        ...

    def take_over(self, shapes: Iterable[TableShape], fence: int) -> None:
        """Carry the fence of a new runner everywhere, so that an older one cannot write from now on."""
        ...

    def restore(self, row: EpochRow, fence: int, applies: int | None) -> int:
        """Take back what tables hold beyond `row`, but for parts of the epoch `applies`; the highest epoch met."""
        ...

    def complete(self, epoch: int, gathered: Gathered) -> dict[TableId, list[DataFile]]:
        """All files of an epoch by table, when what came inline is written, too."""
        ...

    def apply(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """Apply an epoch to the tables; the version of every table (`schema.name`)."""
        ...

    def record(self, manifest: Manifest, commit: CommitRecord, fence: int) -> None:
        """Make an applied epoch the newest that readers see."""
        ...

    def reader(self, row: EpochRow, table: TableId) -> Reader:
        """What tasks compare a table of the epoch with. Raises SinkError when it cannot be read as of it any more."""
        ...

    def changed(
        self, row: EpochRow, table: TableId, since: int, rows: int
    ) -> Iterator[Mapping[str | None, pa.Table]]:
        """The keys of a table that changed behind epoch `since`, as its changes and its rows say. Each comes once, in
        parts of so many rows, by what stands as its shard, with the source's names. Raises SinkError at once where the
        sink does not know that any more."""
        ...

    def settle(self, fence: int) -> Settled:
        """Settle every table, and clean up, now and in this process, beside a run or without one."""
        ...

    def erase(self, erasure: Erasure, fence: int) -> Erased:
        """Erase rows of a table of the newest epoch from all that the sink has, beside a run or without one. Raises
        SinkError where the source still has one of them."""
        ...

    def upkeep(self, fence: int) -> Upkeep:
        """The upkeep of a run that begins."""
        ...
