"""Copies chunks of a shard's tables as of the cut to which its log was read.

Of a table whose keys we cannot order, all changes are told from the start. So a chunk may bring rows that the log has
changed and that do not belong to it. They are true as of the cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from msgspec.structs import replace

from catchment.epoch.work import ChunkReceipt, ChunkTask, Nowhere, Target
from catchment.feed.planner import Planner
from catchment.model.chunk import Bound, Chunk
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import TableShape
from catchment.model.errors import TooManyImages
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.readers.copy import GroupRows, read_behind_purge
from catchment.serve.stream.child_chunks import copied_children
from catchment.serve.stream.tables import Known
from catchment.source.view import View


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows of a table up to the key `last` as of the cut; `done`: they are the last ones. `table`: what they have."""

    table: Table
    rows: pa.Table
    last: Bound | None
    done: bool


@dataclass(frozen=True, slots=True)
class Copied:
    """The shard's state with what was copied, and the rows."""

    state: ShardState
    rows: Sequence[CopiedRows] = ()


@dataclass(frozen=True, slots=True)
class Copying:
    """A shard whose rows are copied as of `state`; `known`: its tables. `view`: by which children of foreign keys are
    copied; `open`: tables that are not copied yet, since their foreign keys are not known."""

    endpoint: Endpoint
    state: ShardState
    known: Known
    view: View | None = None
    open: frozenset[TableId] = frozenset()

    @property
    def shapes(self) -> Mapping[TableId, TableShape]:
        """Of the tables that can be copied."""
        return self.known.shapes


def copied(work: Copying, planner: Planner, tick: Tick) -> Copied:
    """Copy the next chunks; none where the server refuses them now. Raises CatchmentError."""
    missing = [copy.table for copy in work.state.copies if copy.table not in work.shapes]
    children = {key.child for key in work.state.keys or ()}
    plannable = work.state.without([*missing, *work.open, *(children if work.view is None else ())])
    if plannable.idle:
        return Copied(work.state)
    shard = work.endpoint.shard
    alone = Cut(tick.number, tick.time_us, {shard: plannable})
    found, state = [], work.state
    for group in planner.groups(alone, work.shapes.values(), tick):
        of_children = [chunk for chunk in group if chunk.table in children]
        others = [chunk for chunk in group if chunk.table not in children]
        rows = _together(
            _read(work, planner, others) if others else None,
            copied_children(work.endpoint, work.state, work.shapes, work.view, of_children)
            if of_children and work.view is not None
            else None,
        )
        if rows is None:
            continue
        chunks = tuple(one for of in rows.copied.values() for one in of)
        planner.learn(ChunkReceipt(shard, chunks, (), rows.refused, rows.log_bytes, rows.crowded))
        for table, mine in rows.copied.items():
            state = _advanced(state, table, [one.chunk for one in mine], rows.rows[table].num_rows)
            last, whole = mine[-1].chunk, work.shapes[table].definition
            selection = work.known.selection(whole)
            given = rows.rows[table] if selection is None else selection.rows(rows.rows[table])
            found.append(
                CopiedRows(whole if selection is None else selection.table, given, last.hi, last.last)
            )
    return Copied(state, found)


def _together(some: GroupRows | None, more: GroupRows | None) -> GroupRows | None:
    if some is None or more is None:
        return some or more
    return GroupRows(
        {**some.rows, **more.rows},
        {**some.copied, **more.copied},
        some.refused + more.refused,
        some.log_bytes + more.log_bytes,
        some.spoiled | more.spoiled,
        crowded=some.crowded | more.crowded,
    )


def _read(work: Copying, planner: Planner, group: Sequence[Chunk]) -> GroupRows | None:
    """The group's rows; None where there are too many changes of its keys, and smaller chunks are to be tried."""
    at = work.state.position.at
    task = ChunkTask(
        endpoint=work.endpoint,
        state=work.state,
        floor=work.state.floor,
        epoch_at=at,
        chunks=tuple(group),
        shapes=tuple(work.shapes[table] for table in sorted({chunk.table for chunk in group})),
        target=Target(Nowhere(), (work.endpoint.shard,), 0, "stream"),
    )
    try:
        return read_behind_purge(planner.bounded(task))
    except TooManyImages:
        planner.shrink(group)
        return None


def _advanced(state: ShardState, table: TableId, chunks: Sequence[Chunk], rows: int) -> ShardState:
    copies = tuple(copy.advanced(chunks, rows) if copy.table == table else copy for copy in state.copies)
    return replace(state, copies=copies)
