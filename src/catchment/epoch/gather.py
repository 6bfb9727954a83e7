"""From the receipts of an epoch's tasks to its manifest: what counts, and nothing that does not (DESIGN 2,
3).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from catchment.epoch.work import ChunkReceipt, Failed, Output, SegmentReceipt
from catchment.model.chunk import Chunk, Progress
from catchment.model.epoch import DataFile, Manifest, Plan, TableDelta, TableShape
from catchment.model.errors import Retry, Unsupported
from catchment.model.table import Table, TableId
from catchment.schema.columns import shape_after
from catchment.schema.ddl import AGAIN, Columns

_V = TypeVar("_V")


@dataclass(frozen=True)
class Gathered:
    """What the receipts of an epoch amount to before files are written: outputs in order, and the rest."""

    segments: dict[str, SegmentReceipt]
    shapes: tuple[TableShape, ...]
    outputs: tuple[Output, ...]
    progress: tuple[Progress, ...]
    copied_rows: dict[TableId, int]
    chunk_bytes: int
    log_bytes: int
    refused: tuple[tuple[Chunk, str], ...]


def gather(
    previous: Manifest,
    plan: Plan,
    segments: Mapping[str, SegmentReceipt],
    copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed],
    late_tables: Mapping[tuple[str, TableId], Table],
) -> Gathered:
    """What an epoch brings: `segments` of the shards that arrived, `copies` by group of chunks.

    `late_tables`: definitions of tables with added columns that no row event has shown yet. Chunks are as of their
    shard's cut in the plan, so those of a shard that did not arrive bring nothing. Raises the error of a failed group
    when repeating it cannot help.
    """
    for receipt in copies.values():
        if isinstance(receipt, Failed) and receipt.error.retry is Retry.NEVER:
            raise receipt.error
    copies = _of_arrived(copies, segments)
    log = _Log.of(segments, late_tables)
    altered = set(log.effects)
    accepted = _accept(copies, altered)
    outputs = [output for segment in segments.values() for output in segment.outputs]
    outputs += [output for _, output in accepted.outputs]
    return Gathered(
        segments=dict(segments),
        shapes=_shapes(previous, log, plan.epoch),
        outputs=tuple(outputs),
        progress=_progress(previous.progress, accepted.chunks),
        copied_rows=accepted.rows,
        chunk_bytes=accepted.bytes,
        log_bytes=sum(s.log_bytes for s in segments.values())
        + sum(c.log_bytes for c in copies.values() if isinstance(c, ChunkReceipt)),
        refused=tuple(accepted.refused),
    )


def _of_arrived(
    copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed], arrived: Collection[str]
) -> dict[tuple[Chunk, ...], ChunkReceipt | Failed]:
    """The copies of shards that arrived."""
    return {group: receipt for group, receipt in copies.items() if group[0].shard in arrived}


@dataclass(frozen=True)
class _Log:
    """What the segments say of each shard's tables, and the catalog's word.

    `met`: each table as the last row event described it, by shard. `effects`: those of DDL. `written`: the altered
    tables of which the segments wrote changes.
    """

    met: dict[TableId, dict[str, Table]]
    effects: dict[tuple[str, TableId], list[Columns]]
    written: frozenset[tuple[str, TableId]]
    catalog: Mapping[tuple[str, TableId], Table]

    @classmethod
    def of(
        cls, segments: Mapping[str, SegmentReceipt], catalog: Mapping[tuple[str, TableId], Table]
    ) -> "_Log":
        met: dict[TableId, dict[str, Table]] = {}
        effects: dict[tuple[str, TableId], list[Columns]] = {}
        for shard, segment in segments.items():
            for table in segment.met:
                met.setdefault(table.id, {})[shard] = table
            for alteration in segment.altered:
                effects.setdefault((shard, alteration.effect.table), []).append(alteration.effect)
        # `written` is needed only of shards that altered a table.
        written = frozenset(
            (shard, output.table)
            for shard in {shard for shard, _ in effects}
            for output in segments[shard].outputs
        )
        return cls(met, effects, written, catalog)


def _shapes(previous: Manifest, log: _Log, epoch: int) -> tuple[TableShape, ...]:
    altered = {table for _, table in log.effects}
    moved = [s for s in previous.shapes if s.table in altered or not _is_met(s, log.met.get(s.table, {}))]
    if not moved:
        return previous.shapes
    holders = previous.holders
    after = {shape.table: _shape(shape, holders[shape.table], log, epoch) for shape in moved}
    return tuple(after.get(shape.table, shape) for shape in previous.shapes)


def _is_met(shape: TableShape, met: Mapping[str, Table]) -> bool:
    """Whether every shard with rows showed all columns of the shape, as nearly always: then nothing has changed."""
    if not met:
        return True
    columns = shape.definition.columns
    everywhere = not any(column.missing for column in shape.columns if column.live)
    return everywhere and all(table.columns == columns for table in met.values())


def _shape(shape: TableShape, shards: Sequence[str], log: _Log, epoch: int) -> TableShape:
    """The shape after an epoch. Raises Unsupported when a shard's task has written a column's values elsewhere.

    Each task knows the other shards as of the epoch before. So shards that only add columns come first here. Each joins
    a column that another shard drops in the same epoch, as its task has done.
    """
    met = log.met.get(shape.table, {})
    changed = [s for s in shards if s in met or (s, shape.table) in log.effects]
    changed.sort(key=lambda shard: any(e.dropped for e in log.effects.get((shard, shape.table), [])))
    after = shape
    for shard in changed:
        key = (shard, shape.table)
        effects = log.effects.get(key, [])
        after = shape_after(after, shard, shards, met.get(shard), effects, epoch, log.catalog.get(key))
    altered = [shard for shard in changed if (shard, shape.table) in log.effects]
    if len(altered) > 1:
        for shard in altered:
            key = (shard, shape.table)
            if key in log.written:
                alone = shape_after(shape, shard, shards, met.get(shard), log.effects[key], epoch)
                _must_agree(shard, alone, after, altered)
    return after


def _must_agree(shard: str, alone: TableShape, after: TableShape, altered: Sequence[str]) -> None:
    columns = _physical(after, shard)
    for name, physical in _physical(alone, shard).items():
        if columns.get(name) != physical:
            raise Unsupported(
                f"{after.table}: column {name} was added on shard {shard}, and dropped on another of the shards "
                f"{', '.join(altered)}, between two epochs, so that its values cannot be told from the old "
                f"column's; {AGAIN.format(table=after.table)}; next time let an epoch pass between the two"
            )


def _physical(shape: TableShape, shard: str) -> dict[str, str]:
    """Where the values of a shard's columns lie."""
    return {c.column.name.lower(): c.physical for c in shape.columns if c.live and shard not in c.missing}


@dataclass
class _Accepted:
    chunks: dict[tuple[str, TableId], list[tuple[Chunk, int]]]
    outputs: list[tuple[str, Output]]
    rows: dict[TableId, int]
    refused: list[tuple[Chunk, str]]
    bytes: int = 0


def _accept(
    copies: Mapping[tuple[Chunk, ...], ChunkReceipt | Failed], altered: set[tuple[str, TableId]]
) -> _Accepted:
    """Per table and shard the unbroken prefix of delivered chunks; a group counts for a table as far as it
    came.
    """
    accepted = _Accepted({}, [], {}, [])
    broken: dict[tuple[str, TableId], str] = {key: "the table was altered in this epoch" for key in altered}
    for group, receipt in copies.items():
        shard = group[0].shard
        copied = {c.chunk: c for c in receipt.copied} if isinstance(receipt, ChunkReceipt) else {}
        reasons = dict(receipt.refused) if isinstance(receipt, ChunkReceipt) else {}
        whole = str(receipt.error) if isinstance(receipt, Failed) else "not delivered"
        outputs: dict[TableId, list[Output]] = {}
        for output in receipt.outputs if isinstance(receipt, ChunkReceipt) else ():
            outputs.setdefault(output.table, []).append(output)
        of_table: dict[TableId, list[Chunk]] = {}
        for chunk in group:
            of_table.setdefault(chunk.table, []).append(chunk)
        for table, planned in of_table.items():
            delivered = [copied[chunk] for chunk in planned if chunk in copied]
            if (shard, table) in broken:
                accepted.refused += [(chunk, broken[shard, table]) for chunk in planned]
                continue
            accepted.chunks.setdefault((shard, table), []).extend((c.chunk, c.rows) for c in delivered)
            accepted.bytes += sum(c.bytes for c in delivered)
            accepted.rows[table] = accepted.rows.get(table, 0) + sum(c.rows for c in delivered)
            accepted.outputs += [(shard, output) for output in outputs.get(table, ())]
            missing = planned[len(delivered) :]
            if missing:
                broken[shard, table] = "a chunk before it was not delivered"
                accepted.refused += [(chunk, reasons.get(chunk, whole)) for chunk in missing]
    return accepted


def _progress(
    before: tuple[Progress, ...], chunks: Mapping[tuple[str, TableId], Sequence[tuple[Chunk, int]]]
) -> tuple[Progress, ...]:
    """The same tuple where nothing was copied, so that others see it at a glance."""
    if not chunks:
        return before
    return tuple(p if p.done else _advance(p, chunks.get((p.shard, p.table), ())) for p in before)


def _advance(progress: Progress, chunks: Sequence[tuple[Chunk, int]]) -> Progress:
    if not chunks:
        return progress
    last = chunks[-1][0]
    return msgspec.structs.replace(
        progress,
        copied=last.hi if last.hi is not None else progress.copied,
        done=last.last,
        rows=progress.rows + sum(rows for _, rows in chunks),
    )


def manifest(
    previous: Manifest,
    plan: Plan,
    gathered: Gathered,
    files: Mapping[TableId, Sequence[DataFile]],
    absent: Mapping[str, int],
) -> Manifest:
    """The manifest. `files` are those of the outputs and those that the driver wrote for inline ones.

    Shards without a segment inherit where they stand (the chain rule, DESIGN 3); `absent` says as of when that is.
    """
    segments = gathered.segments
    shapes = {shape.table: shape for shape in gathered.shapes}
    before = {shape.table: shape for shape in previous.shapes}
    # Of the log alone: chunks of collated keys lie among the changes, but their rows are copied ones.
    followed: dict[TableId, list[Output]] = {}
    for segment in gathered.segments.values():
        for output in segment.outputs:
            followed.setdefault(output.table, []).append(output)
    deltas = []
    for table, shape in shapes.items():
        written = tuple(files.get(table, ()))
        if not written and shape == before.get(table):
            continue
        changes = followed.get(table, [])
        deltas.append(
            TableDelta(
                shape=shape,
                files=written,
                upserts=sum(o.upserts for o in changes),
                deletes=sum(o.deletes for o in changes),
                copied=gathered.copied_rows.get(table, 0),
            )
        )
    return Manifest(
        feed=previous.feed,
        epoch=plan.epoch,
        previous=previous.epoch,
        time_us=plan.tick.time_us,
        window_us=plan.tick.window_us,
        cut={s: segments[s].reached if s in segments else at for s, at in previous.cut.items()},
        sealed=_inherited(previous.sealed, {s: one.sealed for s, one in segments.items()}),
        progress=gathered.progress,
        shapes=gathered.shapes,
        deltas=tuple(deltas),
        definitions=_inherited(
            previous.definitions, {s: one.definitions or None for s, one in segments.items()}
        ),
        changes=sum(d.upserts + d.deletes for d in deltas),
        log_bytes=gathered.log_bytes,
        chunk_bytes=gathered.chunk_bytes,
        outside=previous.outside,
        absent=dict(absent),
    )


def _inherited(before: Mapping[str, _V], now: Mapping[str, _V | None]) -> dict[str, _V]:
    """What is known of shards: as of now where they arrived, else as before."""
    return {shard: value for shard, value in {**before, **now}.items() if value is not None}
