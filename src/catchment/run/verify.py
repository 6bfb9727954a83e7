"""Comparing source and lake while both move on: waves of chunks, each at the newest committed epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from pyspark.sql import SparkSession

from catchment.api.read import state
from catchment.config import Feed
from catchment.flow.rewind.compare import Differences
from catchment.flow.sink.epochs import EpochRow, EpochsTable
from catchment.model.chunk import Chunk, Progress
from catchment.model.epoch import Manifest, Tick
from catchment.model.errors import ConfigError, Retry, SourceError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.run.planner import Limits, Planner
from catchment.spark import job
from catchment.spark.verify_task import VerifyReceipt, VerifyTask, verify_chunks
from catchment.spark.work import ChunkReceipt, ChunkTask, CopiedChunk, Failed, Target

FRUITLESS_WAVES_MAX = 10


@dataclass
class Verdict:
    """What a verification found. `epochs`: the first and the last epoch compared; `rows` by table."""

    rows: dict[TableId, int] = field(default_factory=dict)
    found: dict[TableId, Differences] = field(default_factory=dict)
    epochs: tuple[int, int] = (0, 0)
    partial: tuple[str, ...] = ()

    @property
    def differences(self) -> int:
        """Keys that differ, over all tables."""
        return sum(found.total for found in self.found.values())


def verify(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    spark: SparkSession,
    only: Sequence[TableId] = (),
    observe: Callable[[Verdict], None] = lambda verdict: None,
) -> Verdict:
    """Compare the copied rows of the chosen tables; raises SourceError when the source cannot be read to the
    end.
    """
    epochs = EpochsTable(feed.sink.path, feed.name)
    row = _newest(epochs, feed)
    unknown = set(only) - {shape.table for shape in row.manifest.shapes}
    if unknown:
        raise ConfigError(f"feed {feed.name} carries no table {', '.join(map(str, sorted(unknown)))}")
    limits = Limits(
        feed.copying.chunk_time, feed.copying.chunk_rows_max, feed.copying.groups_per_shard, 1 << 62
    )
    planner = Planner(endpoints, limits)
    progress = [_unverified(p) for p in row.manifest.progress if not only or p.table in only]
    verdict = Verdict(
        epochs=(row.manifest.epoch, row.manifest.epoch),
        partial=tuple(f"{p.table} on {p.shard}" for p in row.manifest.progress if not p.done),
    )
    fruitless = 0
    while not all(p.done for p in progress):
        row = _newest(epochs, feed)
        verdict.epochs = (verdict.epochs[0], row.manifest.epoch)
        receipts = _wave(feed, endpoints, spark, planner, row, progress)
        advanced = _advance(progress, receipts, planner, verdict)
        fruitless = 0 if advanced != progress else fruitless + 1
        if fruitless > FRUITLESS_WAVES_MAX:
            raise SourceError(f"verification of feed {feed.name} does not get on: {_reason(receipts)}")
        progress = advanced
        observe(verdict)
    return verdict


def _newest(epochs: EpochsTable, feed: Feed) -> EpochRow:
    row = epochs.newest()
    if row is None:
        raise ConfigError(f"feed {feed.name} has not committed an epoch yet: run it first")
    return row


def _unverified(progress: Progress) -> Progress:
    """What there is to compare: everything, or what is copied so far."""
    if progress.done:
        return msgspec.structs.replace(progress, copied=None, born_after=None, done=False, rows=0)
    limit = progress.copied
    return msgspec.structs.replace(progress, copied=None, born_after=limit, done=limit is None, rows=0)


def _wave(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    spark: SparkSession,
    planner: Planner,
    row: EpochRow,
    progress: list[Progress],
) -> list[VerifyReceipt | Failed]:
    manifest: Manifest = msgspec.structs.replace(row.manifest, progress=tuple(progress))
    offsets = {shard: position.at for shard, position in manifest.cut.items()}
    groups = planner.groups(manifest, Tick(manifest.epoch, manifest.time_us, 0, offsets))
    tasks = [_task(feed, endpoints, row, group) for group in groups]
    if not tasks:
        return []
    return job.each(spark, verify_chunks, tasks)


def _task(feed: Feed, endpoints: dict[str, Endpoint], row: EpochRow, group: tuple[Chunk, ...]) -> VerifyTask:
    manifest, shard = row.manifest, group[0].shard
    tables = {chunk.table for chunk in group}
    shapes = tuple(shape for shape in manifest.shapes if shape.table in tables)
    target = Target(str(feed.sink.path), tuple(endpoints), manifest.epoch, "verify")
    position = manifest.cut[shard]
    copy = ChunkTask(
        endpoints[shard], position.server, manifest.sealed[shard], position.at, group, shapes, target
    )
    return VerifyTask(copy, {table: state(feed.sink.path, row, table) for table in tables})


def _advance(
    progress: list[Progress], receipts: Sequence[VerifyReceipt | Failed], planner: Planner, verdict: Verdict
) -> list[Progress]:
    """Move on past the unbroken run of compared chunks of each table; raises what cannot be repeated."""
    compared: dict[tuple[str, TableId, object], CopiedChunk] = {}
    for receipt in receipts:
        if isinstance(receipt, Failed):
            if receipt.error.retry is Retry.NEVER:
                raise receipt.error
            continue
        planner.learn(ChunkReceipt(receipt.shard, receipt.compared, (), (), 0))
        compared |= {(receipt.shard, c.chunk.table, c.chunk.lo): c for c in receipt.compared}
        for table, found in receipt.found.items():
            verdict.found[table] = verdict.found.get(table, Differences()) + found
    return [_past(p, compared, verdict) for p in progress]


def _past(
    progress: Progress, compared: dict[tuple[str, TableId, object], CopiedChunk], verdict: Verdict
) -> Progress:
    lo = progress.copied
    while not progress.done and (step := compared.get((progress.shard, progress.table, lo))) is not None:
        verdict.rows[progress.table] = verdict.rows.get(progress.table, 0) + step.rows
        progress = msgspec.structs.replace(
            progress,
            copied=step.chunk.hi if step.chunk.hi is not None else progress.copied,
            done=step.chunk.last,
            rows=progress.rows + step.rows,
        )
        lo = step.chunk.hi
    return progress


def _reason(receipts: Sequence[VerifyReceipt | Failed]) -> str:
    for receipt in receipts:
        if isinstance(receipt, Failed):
            return str(receipt.error)
        if receipt.failed:
            return receipt.failed[0][1]
    return "no chunk could be planned: the log behind the newest epoch is not sealed"
