"""Comparing source and lake while both move on: waves of chunks, each at the newest committed epoch."""

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from itertools import takewhile

from msgspec.structs import replace

from catchment.config import Feed
from catchment.engine.port import Engine
from catchment.epoch.work import ChunkReceipt, Failed
from catchment.feed.changed_keys import ChangedKeys
from catchment.feed.comparisons import Comparisons
from catchment.feed.planner import IMAGE_BUDGETS, Limits, Planner
from catchment.feed.portion import Takes, narrowed
from catchment.feed.sparing import Sparing
from catchment.feed.throttle import CHECK_SECONDS, Throttle
from catchment.feed.verdict import Compared, Verdict
from catchment.feed.verify_progress import NOWHERE, Progress, scope_of
from catchment.feed.verify_standstill import FRUITLESS_WAVES_MAX, standstill
from catchment.model.choice import ALL, Choice
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.errors import ConfigError, Retry, StateError, TooManyImages
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.strays import find_strays
from catchment.readers.verify import VerifyReceipt, bounded, verify_chunks
from catchment.rewind.compare import Differences
from catchment.sink.port import Sink
from catchment.sink.registry.sinks import sink_of
from catchment.state.carried import must_name_shards
from catchment.state.resume import must_have_lake
from catchment.state.store import Store
from catchment.state.treatments import must_keep_treatments


def verify(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    engine: Engine,
    choice: Choice = ALL,
    observe: Callable[[Verdict], None] = lambda verdict: None,
    progress: Progress = NOWHERE,
    sparing: Sparing | None = None,
) -> Verdict:
    """Compare the copied rows of what is chosen. `progress`: where it goes on;
    whoever has taken up the verdict completes it. `sparing`: without it, as the feed file says.

    Raises SourceError when the source cannot be read to the end, and what `must_be_verifiable` raises.
    """
    spared = sparing or Sparing.of(feed)
    row = must_be_verifiable(feed, endpoints, choice.tables)
    must_keep_treatments(feed, row.manifest)
    sink = sink_of(feed)
    comparisons = Comparisons(endpoints, sink, feed.key_of_masks())
    limits = Limits(
        feed.copying.chunk_time, feed.copying.chunk_rows_max, feed.copying.groups_per_shard, 1 << 62
    )
    planner = Planner(endpoints, limits, Throttle(rates=spared.throttle.rates))
    image_bytes = IMAGE_BUDGETS * feed.copying.log_budget
    whole = _collated(row.manifest)
    verdict = _begun(row.manifest)
    to_compare, takes = narrowed(choice, row.manifest, endpoints, _to_compare(row.manifest, choice, whole))
    keys = ChangedKeys(feed, comparisons, engine, spared, lambda: _newest(sink, feed), verdict, observe)
    to_compare = keys.begun(row, choice.since, to_compare)
    compared = progress.begun(scope_of(row.manifest, choice), to_compare, verdict)
    fruitless = 0
    with closing(spared.throttle):
        while left := {shard for shard, copies in compared.items() if not all(copy.done for copy in copies)}:
            row = _newest(sink, feed)
            verdict.epochs = (verdict.epochs[0], row.manifest.epoch)
            verdict.stale = row.manifest.stale
            compared = _exact(compared, row.manifest)
            shut = spared.throttle.shut(left)
            groups = _groups(planner, row.manifest, _without(compared, shut), whole)
            dealt = [_Group(chunks, takes, whole=chunks[0].table in whole) for chunks in groups]
            planner.give_back(chunk for group in dealt for chunk in group.left_out)
            takers = [group.taken for group in dealt if group.taken]
            tasks = [
                bounded(
                    comparisons.task(row, row.manifest, chunks, nearest=planner.were_refused(chunks)),
                    # What cannot be read in smaller parts takes the memory that it needs.
                    None if chunks[0].table in whole or planner.is_least(chunks) else image_bytes,
                )
                for chunks in takers
            ]
            receipts = engine.each(verify_chunks, tasks) if tasks else []
            advanced = _advanced(compared, dealt, receipts, planner, verdict)
            if advanced != compared:
                fruitless = 0
            elif shut:
                spared.wait(CHECK_SECONDS)
            elif planner.shrunk:
                pass  # the next ones are half as large
            elif (fruitless := fruitless + 1) > FRUITLESS_WAVES_MAX:
                raise standstill(feed.name, receipts, planner.unplanned, verdict)
            compared = advanced
            progress.advanced(compared, verdict)
            observe(verdict)
        keys.compare()
    among = verdict.rows.keys() if choice.since is None else keys.strayed
    _find_strays(comparisons, _newest(sink, feed), engine, verdict, among)
    return verdict


def _begun(manifest: Manifest) -> Verdict:
    """What a verification that begins at an epoch has found."""
    states = manifest.cut.shards
    partial = tuple(f"{table} on {shard}" for shard, state in states.items() for table in state.copying)
    return Verdict(epochs=(manifest.epoch, manifest.epoch), partial=partial, stale=manifest.stale)


def _to_compare(manifest: Manifest, choice: Choice, whole: Collection[TableId]) -> Compared:
    """All that is copied of the chosen tables."""
    return {
        shard: tuple(
            _unverified(copy, copy.table in whole) for copy in state.copies if choice.takes(copy.table)
        )
        for shard, state in manifest.cut.shards.items()
    }


def _without(compared: Compared, shards: Collection[str]) -> Compared:
    """The same with nothing to compare on some shards."""
    return {shard: () if shard in shards else copies for shard, copies in compared.items()}


def _find_strays(
    comparisons: Comparisons,
    row: EpochRow,
    engine: Engine,
    verdict: Verdict,
    among: Collection[TableId],
) -> None:
    """Look for rows of some tables under shards that do not have them. Raises what the lake refuses."""
    stale = {one.table for one in row.manifest.stale}
    tables = [
        shape.table for shape in row.manifest.shapes if shape.table in among and shape.table not in stale
    ]
    tasks = [comparisons.strays(row, row.manifest, table) for table in tables]
    for receipt in engine.each(find_strays, tasks) if tasks else ():
        if isinstance(receipt, Failed):
            raise receipt.error
        for table, found in receipt.found.items():
            if found.total:
                verdict.found[table] = verdict.found.get(table, Differences()) + found
                verdict.strays.append(table)


def _exact(compared: Compared, manifest: Manifest) -> Compared:
    """What there is to compare without the tables that became stale, or left."""
    tables = {shape.table for shape in manifest.shapes} - {one.table for one in manifest.stale}
    return {
        shard: tuple(copy for copy in copies if copy.table in tables) for shard, copies in compared.items()
    }


def must_be_verifiable(feed: Feed, shards: Collection[str], only: Sequence[TableId]) -> EpochRow:
    """The newest epoch. Raises StateError when none was ever committed, ConfigError when it has no such table. Raises
    SinkError when the lake has gone, cannot be read or holds other shards. Writes nothing."""
    row = _newest(sink_of(feed), feed)
    must_name_shards(shards, row.manifest)
    unknown = set(only) - row.manifest.tables
    if unknown:
        raise ConfigError(f"feed {feed.name} carries no table {', '.join(map(str, sorted(unknown)))}")
    return row


def _newest(sink: Sink, feed: Feed) -> EpochRow:
    row = sink.newest()
    if row is None:
        with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
            must_have_lake(feed, store, row)
        raise StateError(f"feed {feed.name} has not committed an epoch to {feed.sink.path} yet: run it first")
    return row


def _collated(manifest: Manifest) -> set[TableId]:
    """Tables whose keys only the server can order."""
    return {shape.table for shape in manifest.shapes if not chunk_key(shape.definition).ordered}


def _unverified(copy: Copy, whole: bool) -> Copy:
    """What there is to compare: everything, or what is copied so far. Of a table that can be compared only as a whole,
    there is nothing before it is copied."""
    if copy.done:
        return replace(copy, copied=None, born_after=None, done=False, rows=0)
    limit = copy.copied
    nothing = whole or limit is None
    return replace(copy, copied=None, born_after=limit, done=nothing, rows=0)


def _groups(
    planner: Planner, standing: Manifest, compared: Compared, whole: set[TableId]
) -> list[tuple[Chunk, ...]]:
    """Groups of chunks to compare next. Only the server knows which lake rows belong to a chunk of a collated key. So
    all chunks of such a table on a shard are one group."""
    states = {
        shard: replace(state, copies=tuple(c for c in compared[shard] if c.table not in whole))
        for shard, state in standing.cut.shards.items()
    }
    cut = replace(standing.cut, shards=states)
    groups = planner.groups(cut, standing.shapes, cut.tick)
    shapes = {shape.table: shape for shape in standing.shapes}
    wholes = [
        planner.all_chunks(shard, copy, shapes[copy.table])
        for shard in cut.floors
        for copy in compared[shard]
        if copy.table in whole and not copy.done
    ]
    planner.raise_refused()
    return groups + [chunks for chunks in wholes if chunks]


class _Group:
    """A group of chunks in their order, and those `taken` of it that are compared. A table that can be compared as a
    whole alone is taken with all its chunks, or with none."""

    def __init__(self, chunks: tuple[Chunk, ...], takes: Takes, *, whole: bool) -> None:
        self.chunks = chunks
        if whole:
            self.taken = chunks if takes(chunks[0]) else ()
        else:
            self.taken = tuple(chunk for chunk in chunks if takes(chunk))
        self.left_out = tuple(chunk for chunk in chunks if chunk not in self.taken)

    def passed(self, table: TableId, read: Collection[Chunk]) -> list[Chunk]:
        """The chunks of a table that are behind us: compared, or not taken."""
        mine = (chunk for chunk in self.chunks if chunk.table == table)
        return list(takewhile(lambda chunk: chunk in read or chunk not in self.taken, mine))


def _learn_sizes(
    planner: Planner, groups: Sequence[Sequence[Chunk]], receipts: Sequence[VerifyReceipt | Failed]
) -> None:
    """Have the next chunks of tables smaller of which chunks were refused, before those that were read are learned
    from."""
    for chunks, receipt in zip(groups, receipts, strict=True):
        if isinstance(receipt, VerifyReceipt):
            planner.learn(ChunkReceipt(receipt.shard, (), (), receipt.refused, 0, receipt.crowded))
        elif isinstance(receipt.error, TooManyImages):
            planner.shrink(chunks)


def _advanced(
    compared: Compared,
    dealt: Sequence[_Group],
    receipts: Sequence[VerifyReceipt | Failed],
    planner: Planner,
    verdict: Verdict,
) -> Compared:
    """Move on past what was compared, or not taken, without a gap; raises what cannot be repeated."""
    after = {shard: {copy.table: copy for copy in copies} for shard, copies in compared.items()}
    _learn_sizes(planner, [group.taken for group in dealt if group.taken], receipts)
    came = iter(receipts)
    for group in dealt:
        receipt = next(came) if group.taken else None
        if isinstance(receipt, Failed):
            if receipt.error.retry is Retry.NEVER:
                raise receipt.error
            receipt = None
        found = receipt.compared if receipt is not None else {}
        for shard, table in dict.fromkeys(chunk.of for chunk in group.chunks):
            chunks = found.get(table, ())
            planner.learn(ChunkReceipt(shard, chunks, (), (), 0))
            before = after[shard][table]
            if next(chunk for chunk in group.chunks if chunk.table == table).lo != before.copied:
                continue  # a run before this one failed: both are repeated
            read = [one.chunk for one in chunks]
            passed = group.passed(table, read)
            verdict.parts = (verdict.parts[0] + len(read), verdict.parts[1] + len(passed))
            rows = receipt.rows[table] if receipt is not None and read else 0
            if receipt is not None and read:
                verdict.take(table, receipt)
                if receipt.found[table].total:
                    verdict.differing.append(tuple(read))
            after[shard][table] = before.advanced(passed, rows)
    return {shard: tuple(copies.values()) for shard, copies in after.items()}
