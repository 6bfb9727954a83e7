"""Tasks that need rows of the lake are run again with them, as of the epoch before, which is waited for.

They are segments in which parents went or changed, whose children come into the same epoch so; and groups of chunks
whose parents have parents themselves of which such went. All others ask nothing of the lake.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from catchment.engine.port import Engine
from catchment.epoch.work import Failed, Receipt, Task
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ChildrenSought, CutMissed
from catchment.readers.run_task import run_task
from catchment.sink.port import Sink


@dataclass(frozen=True)
class Children:
    """Of one feed. `engine` runs the tasks."""

    sink: Sink
    engine: Engine

    def read_again(
        self,
        tasks: Sequence[Task],
        receipts: Sequence[Receipt],
        before: Manifest,
        applied: Callable[[], bool],
    ) -> list[Receipt] | None:
        """The receipts of tasks, those too that have to be run with the lake. `before`: the epoch in front of them;
        `applied` waits until the lake has it. None where that was given up, since the run is to stop."""
        sought = [
            number
            for number, receipt in enumerate(receipts)
            if isinstance(receipt, Failed) and isinstance(receipt.error, ChildrenSought)
        ]
        found = list(receipts)
        if not sought:
            return found
        if not applied():
            return None
        row = self._row(before)
        again = [self._with_lake(tasks[number], row) for number in sought]
        for number, receipt in zip(sought, self.engine.each(run_task, again), strict=True):
            found[number] = receipt
        return found

    def _row(self, before: Manifest) -> EpochRow:
        row = self.sink.newest()
        if row is None or row.manifest.epoch != before.epoch:
            raise CutMissed(
                f"the lake does not stand at epoch {epoch_text(before.epoch)}; the log is read again"
            )
        # Of a table that is copied again, the rows that are copied so far.
        return with_fields(row, manifest=with_fields(row.manifest, stale=()))

    def _with_lake(self, task: Task, row: EpochRow) -> Task:
        keys = row.manifest.cut.shards[task.endpoint.shard].keys
        tables = {shape.table for shape in task.shapes} if keys is None else {key.child for key in keys}
        carried = tables & {shape.table for shape in row.manifest.shapes}
        return replace(task, lake={table: self.sink.reader(row, table) for table in sorted(carried)})
