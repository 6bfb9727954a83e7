"""Comparing the keys that changed behind an epoch: waves of chunks, each at the newest committed epoch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from catchment.config import Feed
from catchment.engine.port import Engine
from catchment.epoch.work import Failed
from catchment.feed.chunk_steps import CHUNKS_PER_GROUP, Pace
from catchment.feed.comparisons import Comparisons
from catchment.feed.since import Shards, SinceThen
from catchment.feed.sparing import Sparing
from catchment.feed.throttle import CHECK_SECONDS
from catchment.feed.verdict import Compared, Verdict
from catchment.feed.verify_standstill import FRUITLESS_WAVES_MAX, standstill
from catchment.model.choice import Since
from catchment.model.chunk import Chunk
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.errors import Retry, StateError
from catchment.model.table import ShardTable, TableId
from catchment.readers.verify import VerifyReceipt, verify_chunks
from catchment.rewind.key_chunks import key_chunks

# A SELECT names so many keys at most: each is a range of the index by itself.
KEYS_MAX = 1000
FIRST_KEYS = 10 * KEYS_MAX
# The driver holds so many at a time.
BATCH_KEYS = 200_000

Parts = Iterator[Mapping[str | None, pa.Table]]
Pending = dict[str, list[Chunk]]


@dataclass
class ChangedKeys:
    """The keys of one comparison: none, unless it is begun with an epoch. `newest` gives the epoch that stands. What is
    found comes to `verdict`, which `observe` hears of. `strayed`: tables that may have rows under shards which do not
    have them."""

    feed: Feed
    comparisons: Comparisons
    engine: Engine
    spared: Sparing
    newest: Callable[[], EpochRow]
    verdict: Verdict
    observe: Callable[[Verdict], None]
    strayed: set[TableId] = field(default_factory=set)
    _parts: dict[TableId, Parts] = field(default_factory=dict)
    _shards: Shards = field(default_factory=dict)
    _paces: dict[ShardTable, Pace] = field(default_factory=dict)

    def begun(self, row: EpochRow, since: Since | None, compared: Compared) -> Compared:
        """Of what there is to compare that of which all rows are. Raises SinkError where the lake does not know what
        changed any more."""
        if since is None:
            return compared
        tables = {copy.table for copies in compared.values() for copy in copies}
        then = SinceThen.of(since, row.manifest, tables)
        self._shards, self.verdict.whole = then.keys, then.told
        self.strayed.update(table for table, shards in then.whole.items() if shards)
        for table in (table for table, shards in then.keys.items() if shards):
            self._parts[table] = self.comparisons.sink.changed(row, table, since.epoch, BATCH_KEYS)
        return then.of_whole(compared)

    def compare(self) -> None:
        """Compare them all. Raises as `verify` does."""
        for table, parts in self._parts.items():
            key = self._key(table, self.newest().manifest)
            for part in parts if key else ():
                if part.keys() - set(self.newest().manifest.holders.get(table, ())):
                    self.strayed.add(table)
                mine = [shard for shard in sorted(self._shards[table]) if shard in part]
                self._compare(table, key, {shard: self._chunks(shard, table, part[shard]) for shard in mine})

    def _chunks(self, shard: str, table: TableId, keys: pa.Table) -> list[Chunk]:
        self.verdict.keys += keys.num_rows
        size = min(KEYS_MAX, self.feed.copying.chunk_rows_max)
        return list(key_chunks(ShardTable(shard, table), keys, size))

    def _key(self, table: TableId, manifest: Manifest) -> tuple[str, ...]:
        """The columns by which a table is told apart as of an epoch; none of one that is stale, or left."""
        self.verdict.epochs = (self.verdict.epochs[0], manifest.epoch)
        self.verdict.stale = manifest.stale
        if manifest.stale_since(table) is not None:
            return ()
        return next((shape.key for shape in manifest.shapes if shape.table == table), ())

    def _compare(self, table: TableId, key: tuple[str, ...], pending: Pending) -> None:
        """Compare chunks of one table, wave by wave."""
        fruitless = 0
        while any(pending.values()):
            row = self.newest()
            now = self._key(table, row.manifest)
            if not now:
                return
            if now != key:
                raise StateError(f"{table} has another key now than when the comparison began: compare again")
            shut = self.spared.throttle.shut({shard for shard, chunks in pending.items() if chunks})
            open_ = {
                shard: chunks
                for shard, chunks in pending.items()
                if shard not in shut and row.manifest.cut.shards[shard].sealed is not None
            }
            groups = [group for chunks in open_.values() for group in self._groups(chunks)]
            tasks = [
                self.comparisons.task(row, row.manifest, group, nearest=fruitless > 0) for group in groups
            ]
            receipts = self.engine.each(verify_chunks, tasks) if tasks else []
            read = {chunk for receipt in receipts for chunk in self._taken(table, receipt)}
            if read:
                fruitless = 0
            elif shut:
                self.spared.wait(CHECK_SECONDS)
            elif (fruitless := fruitless + 1) > FRUITLESS_WAVES_MAX:
                raise standstill(self.feed.name, receipts, {}, self.verdict)
            pending = {shard: [c for c in chunks if c not in read] for shard, chunks in pending.items()}
            self.observe(self.verdict)

    def _groups(self, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, ...]]:
        """Those of a shard's next wave: each is read in about the time of a few chunks of the copy."""
        if not chunks:
            return
        each = min(KEYS_MAX, self.feed.copying.chunk_rows_max)
        size = max(1, CHUNKS_PER_GROUP * self._pace(chunks[0].of).wanted() // each)
        for number in range(self.feed.copying.groups_per_shard):
            group = tuple(chunks[number * size : (number + 1) * size])
            if group:
                yield group

    def _taken(self, table: TableId, receipt: VerifyReceipt | Failed) -> list[Chunk]:
        """The chunks that a task has compared; raises what cannot be repeated."""
        if isinstance(receipt, Failed):
            if receipt.error.retry is Retry.NEVER:
                raise receipt.error
            return []
        verdict, of, copied = self.verdict, ShardTable(receipt.shard, table), receipt.compared.get(table, ())
        if receipt.refused:
            self._pace(of).shrink()
        for one in copied:
            self.spared.throttle.rates.take(receipt.shard, one.rows, one.bytes)
            asked = replace(one, rows=max(one.rows, KEYS_MAX // 2))  # a key without a row takes its time, too
            self._pace(of).learn(asked, self.feed.copying.chunk_time, self.feed.copying.chunk_rows_max)
        verdict.parts = (verdict.parts[0] + len(copied), verdict.parts[1] + len(copied))
        if copied:
            verdict.take(table, receipt)
            differing = key_chunks(of, receipt.differing[table], KEYS_MAX)
            verdict.differing += [(chunk,) for chunk in differing]
        return [one.chunk for one in copied]

    def _pace(self, of: ShardTable) -> Pace:
        first = Pace(rows=min(FIRST_KEYS, self.feed.copying.chunk_rows_max))
        return self._paces.setdefault(of, first)
