"""A task that looks for rows of the lake under a shard that does not have their table. No shard is asked for them: the
source has none. It may write their deletes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from catchment import world
from catchment.epoch.work import Failed, Output, Reader, Target
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import CatchmentError
from catchment.model.image import DELETED
from catchment.readers.verify import VerifyReceipt
from catchment.rewind.compare import NAMED_MAX, Differences
from catchment.wire.keys import keys


@dataclass(frozen=True, slots=True)
class StrayTask:
    """A table as of an epoch, and all shards that have it. `target`: where the deletes of strays are written, if they
    are."""

    shape: TableShape
    shards: tuple[str, ...]
    reader: Reader
    target: Target | None = None


def find_strays(task: StrayTask) -> VerifyReceipt | Failed:
    """Every row that stands under no shard of its table is an extra one. An error of ours comes back as a value."""
    try:
        found = task.reader.elsewhere(task.shards)
        outputs = _deleted(task.shape, task.target, found) if task.target is not None else ()
    except CatchmentError as error:
        return Failed("", error)
    table = task.shape.table
    return VerifyReceipt("", {}, {}, {table: _differences(task.shape, found)}, (), outputs)


def _differences(shape: TableShape, found: Mapping[str | None, pa.Table]) -> Differences:
    named = [
        f"only at the lake: _shard={shard!r}, "
        + ", ".join(f"{name}={value!r}" for name, value in row.items())
        for shard, rows in found.items()
        for row in rows.select(list(shape.key)).slice(0, NAMED_MAX).to_pylist()
    ]
    extra = sum(rows.num_rows for rows in found.values())
    return Differences(extra=extra, named=tuple(named[:NAMED_MAX]))


def _deleted(shape: TableShape, target: Target, found: Mapping[str | None, pa.Table]) -> tuple[Output, ...]:
    """Rows under no name at all stay: no change can name them."""
    asked = replace(target, attempt=f"{target.attempt}-{world.token()[:12]}")
    outputs = []
    for number, (shard, rows) in enumerate(found.items()):
        if shard is None:
            continue
        once = rows.take(pa.array(keys.first_of_each(keys.encode(rows, shape.key))))
        deletes = once.append_column(DELETED, pa.repeat(pa.scalar(True), once.num_rows))
        output = asked.emit([deletes], shape, shard, Part.CHANGES, number)
        if output is not None:
            outputs.append(output)
    return tuple(outputs)
