"""What events and batches tell alike of a turn: DDL, copies that begin again or end, and the vgtid."""

from collections.abc import Iterable, Iterator
from typing import Any

from catchment.serve.stream.advance import Altered, Void
from catchment.serve.stream.chunks import CopiedRows
from catchment.serve.stream.events import CopyCompleted, Ddl, Restart, VGtid
from catchment.serve.stream.source import ShardName
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.vgtid import written
from catchment.wire.cells.types import arrow_type, scalar_of


def ddl_of(name: ShardName, altered: Altered) -> Ddl:
    """What a statement did."""
    did = altered.effect
    added: dict[str, Any] = dict.fromkeys(did.added)
    for filled in did.filled:
        if filled.value is not None:
            added[filled.column] = scalar_of(filled.value, arrow_type(filled.type)).as_py()
    renamed = {one.old: one.new for one in did.renamed}
    return Ddl(*name, did.table, altered.statement, added, did.dropped, renamed, did.emptied)


def restarts(name: ShardName, voids: Iterable[Void]) -> Iterator[Restart]:
    """Of tables of which something was told."""
    for void in voids:
        if not void.came:
            yield Restart(*name, void.table, void.reason, void.gone)


def completed(name: ShardName, copied: CopiedRows) -> Iterator[CopyCompleted]:
    """Of a shard's table, where these rows are its last ones."""
    if copied.done:
        yield CopyCompleted(*name, copied.table.id)


def vgtid_of(turn: Turn) -> Iterator[CopyCompleted | VGtid]:
    """Where a turn ends, and whether all is copied since it."""
    for one in turn.empty:
        yield CopyCompleted(*ShardName.parse(one.shard), one.table)
    if turn.completes:
        yield CopyCompleted()
    yield VGtid(written(turn.stands), turn.stands.cut.time_us)
