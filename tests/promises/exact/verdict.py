"""The verdict on every epoch of a run: lake and source compared, value by value, as far as the copy has come.

The source at an epoch comes from the two judges: the replayed log up to the epoch's cut (tests/world/oracle.py)
and, where the writers rested, rows that SELECT gave (tests/world/judge.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound, chunk_key
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.position import Position
from catchment.model.shard import Copy
from catchment.model.table import Table, TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epoch_app, table_dir
from tests.promises.exact.feedrun import Reading
from tests.promises.exact.plain import PlainVersions
from tests.world.canonical import Key, key_of
from tests.world.delta_scan import DeltaScan
from tests.world.delta_spark import DeltaSpark
from tests.world.judge import Rows, compare, lake_rows, oracle_rows
from tests.world.oracle import ByLog

NAMED_MAX = 20


@dataclass(frozen=True)
class Rest:
    """What SELECT gave of every table while nobody wrote, and the epoch that ends there."""

    epoch: int
    rows: Mapping[str, Rows]


class ServerOrder:
    """Sort keys of collated strings, as the server gives them."""

    def __init__(self, server: PrivateServer, collation: str, length: int) -> None:
        self._connection = server.connect()
        self._sql = f"SELECT WEIGHT_STRING(CONVERT(%s USING utf8mb4) COLLATE {collation} AS CHAR({length}))"
        self._known: dict[str, bytes] = {}

    def __call__(self, text: str) -> bytes:
        """Bytes that compare as the server compares the text, trailing blanks ignored."""
        if text not in self._known:
            with self._connection.cursor() as cursor:
                cursor.execute(self._sql, (text,))
                ((self._known[text],),) = cursor.fetchall()
        return self._known[text]


@dataclass
class Verdict:
    """What was found. `lines` name epoch, shard, table, key, both rows and the cut of every difference."""

    lines: list[str] = field(default_factory=list)
    wrong: set[int] = field(default_factory=set)
    epochs: int = 0
    copying: int = 0
    rests: int = 0
    readings: int = 0
    rows: int = 0
    plain: int = 0
    told: int = 0
    stale: int = 0
    renewed: int = 0

    def must_be_clean(self, seed: int) -> None:
        """Fail and say what differs."""
        named = "\n".join(self.lines[:NAMED_MAX])
        count = f"{len(self.lines)} differences in {len(self.wrong)} of {self.epochs} epochs, seed {seed}"
        assert not self.lines, f"{count}:\n{named}"


@dataclass
class Court:
    """Judges a run's epochs in order. `files`: where the files of the lake are; `oracles` stand where the run had not
    begun."""

    feed: Feed
    files: Path
    keys: Mapping[str, tuple[str, ...]]
    oracles: Mapping[str, ByLog]
    order: ServerOrder
    spark: DeltaSpark | None = None

    def judge(self, rests: Iterable[Rest], readings: Sequence[Reading]) -> Verdict:
        """Judge every committed epoch by the log, those of `rests` by SELECT, `readings` by time travel, and every
        version of the plain tables by readers that know Delta alone."""
        root, feed = self.files, self.feed.name
        with DeltaScan() as scan:
            self._plain = {
                table: PlainVersions(table_dir(root, id_), epoch_app(feed, id_), scan, self.spark)
                for table, id_ in ((table, TableId.parse(table)) for table in self.keys)
            }
            return self._judge(rests, readings)

    def _judge(self, rests: Iterable[Rest], readings: Sequence[Reading]) -> Verdict:
        self._verdict = Verdict()
        self._resting = {rest.epoch: rest for rest in rests}
        self._readings: dict[tuple[int, str], list[Reading]] = {}
        for reading in readings:
            self._readings.setdefault((reading.epoch, reading.table), []).append(reading)
        self._known: dict[str, set[tuple[str, Key]]] = {table: set() for table in self.keys}
        self._exact: dict[str, tuple[int, Rows]] = {}
        rows = EpochsTable(self.feed.sink.path, self.feed.name).read_all()
        self._entered: dict[str, tuple[int, Mapping[str, Position]]] = {}
        before: EpochRow | None = None
        for row in rows:
            self._epoch(row)
            if before is not None:
                self._grown(before, row)
            before = row
        left = {table: versions.left for table, versions in self._plain.items() if versions.left}
        assert not left, f"plain tables have versions of epochs that were not committed: {left}"
        self._verdict.plain = sum(versions.compared for versions in self._plain.values())
        self._verdict.told = sum(versions.told for versions in self._plain.values())
        assert not self._resting, "a rest's epoch was not committed"
        assert not self._readings, "a reader read an epoch that is not in the epochs table"
        return self._verdict

    def _epoch(self, row: EpochRow) -> None:
        verdict, manifest = self._verdict, row.manifest
        verdict.epochs += 1
        verdict.copying += not manifest.cut.copied
        for shard, oracle in self.oracles.items():
            at = manifest.cut.positions[shard].at
            oracle.advance(at.file, at.offset)
        rest = self._resting.pop(manifest.epoch, None)
        verdict.rests += rest is not None
        tables = self._carried(manifest)
        for table, state in zip(
            tables, read(self.feed, tables, manifest.epoch) if tables else (), strict=True
        ):
            records = state.arrow()
            self._readers(row, table, records)
            if (stale := manifest.stale_since(TableId.parse(table))) is not None:
                self._standing(row, table, stale.epoch, lake_rows(records.to_pylist(), self.keys[table]))
                assert state.as_of == stale.epoch
                continue
            assert state.as_of == manifest.epoch
            shape = next(s for s in row.manifest.shapes if str(s.table) == table)
            for line in self._plain[table].differing(manifest.epoch, shape, records):
                self._fault(row, f"{table} {line}", "its plain table")
            columns = [c for c in records.column_names if not c.startswith("_")]
            lake = lake_rows(records.to_pylist(), self.keys[table])
            verdict.rows += len(lake)
            replayed = oracle_rows({shard: oracle.state[table] for shard, oracle in self.oracles.items()})
            self._compare(row, table, columns, lake, replayed, "log")
            if rest is not None:
                self._compare(row, table, columns, lake, rest.rows[table], "SELECT")
            self._exact[table] = manifest.epoch, lake

    def _carried(self, manifest: Manifest) -> list[str]:
        """The tables of an epoch. Of each copy that begins here, what was known of rows before counts no more."""
        tables = [table for table in self.keys if TableId.parse(table) in manifest.tables]
        generations = {str(shape.table): shape.generation for shape in manifest.shapes}
        for table in self.keys:
            entered = self._entered.get(table)
            if table not in generations:
                self._entered.pop(table, None)
            elif entered is None or entered[0] != generations[table]:
                self._entered[table] = generations[table], manifest.cut.positions
                self._known[table] = set()
        return tables

    def _standing(self, row: EpochRow, table: str, epoch: int, lake: Rows) -> None:
        """A stale table is what it was when it was judged last."""
        self._verdict.stale += 1
        then, rows = self._exact[table]
        if then != epoch:
            self._fault(row, f"{table} stands as of {epoch}, and was exact at {then}", "the epochs table")
        for line in compare(lake, rows):
            self._fault(row, f"{table} {line}", "itself")

    def _compare(
        self, row: EpochRow, table: str, columns: list[str], lake: Rows, source: Rows, judge: str
    ) -> None:
        """Rows of the copied ranges must be there and no others.

        Where keys are in the server's order alone, rows touched in the log must be there as well, and others
        may be: once there they stay.
        """
        states = row.manifest.cut.shards
        copies = {shard: c for shard, state in states.items() for c in state.copies if str(c.table) == table}
        ordered = self._is_ordered(row, table)
        copying = {shard for shard, copy in copies.items() if not copy.done}
        touched: dict[str, set[Key]] = {}
        if judge == "log" and not ordered:
            touched = {shard: self._touched(shard, table) for shard in copying}
        expected: Rows = {}
        names = set(columns)
        chunked_by = next(s.key for s in row.manifest.shapes if str(s.table) == table)
        for (shard, key), found in source.items():
            place = shard, key
            # a column that this shard does not have is NULL in the lake
            have = found if found.keys() == names else {**dict.fromkeys(columns), **found}
            # The judges may tell rows by fewer columns than the feed copies them by.
            due = shard not in copying or self._copied(copies[shard], key_of(have, chunked_by), ordered)
            if not due and not ordered:
                due = key in touched.get(shard, ()) or place in self._known[table] or place in lake
            if due:
                expected[place] = have
        self._known[table] = set(lake)
        if lake == expected:
            return
        for line in compare(lake, expected):
            self._fault(row, f"{table} {line}", judge)
        for place in lake.keys() & expected.keys():
            if lake[place] != expected[place]:
                self._fault(row, f"{table} {place}: lake {lake[place]}, source {expected[place]}", judge)

    def _fault(self, row: EpochRow, line: str, judge: str) -> None:
        cut = {shard: str(position.at) for shard, position in row.manifest.cut.positions.items()}
        self._verdict.wrong.add(row.manifest.epoch)
        self._verdict.lines.append(
            f"epoch {row.manifest.epoch} (number {self._verdict.epochs}), by {judge}: {line}; cut {cut}"
        )

    def _is_ordered(self, row: EpochRow, table: str) -> bool:
        shape = next(s for s in row.manifest.shapes if str(s.table) == table)
        columns = tuple(c.column for c in shape.columns if c.live)
        return chunk_key(Table(TableId.parse(table), columns, shape.key)).ordered

    def _touched(self, shard: str, table: str) -> set[Key]:
        first = self._entered[table][1][shard].at
        return self.oracles[shard].touched_since(first.file, first.offset)[table]

    def _copied(self, copy: Copy, key: Key, ordered: bool) -> bool:
        """Whether the feed says that it holds the key: up to `copied`, or born later."""
        copied, born = copy.copied, copy.born_after
        return (copied is not None and not self._above(key, copied, ordered)) or (
            ordered and born is not None and self._above(key, born, ordered)
        )

    def _above(self, key: Key, bound: Bound, ordered: bool) -> bool:
        if ordered:
            return bool(key[: len(bound)] > bound)
        return self._sorted(key) > self._sorted(bound)

    def _sorted(self, key: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.order(part) if isinstance(part, str) else part for part in key)

    def _readers(self, row: EpochRow, table: str, records: pa.Table) -> None:
        """What readers got while the epoch was the newest is what time travel gives afterwards."""
        order = [(name, "ascending") for name in ("_shard", *self.keys[table])]
        for reading in self._readings.pop((row.manifest.epoch, table), []):
            got = reading.rows.cast(records.schema)
            self._verdict.readings += 1
            if got.sort_by(order).equals(records.sort_by(order)):
                continue
            had, has = (lake_rows(rows.to_pylist(), self.keys[table]) for rows in (got, records))
            for line in compare(had, has) or ["two rows have one key"]:
                self._fault(row, f"{table} {line}", f"a reader with {reading.engine}")

    def _grown(self, before: EpochRow, row: EpochRow) -> None:
        """The copy's progress never goes back, and epochs form a chain."""
        if row.manifest.previous != before.manifest.epoch:
            self._fault(
                row, f"follows {row.manifest.previous}, not {before.manifest.epoch}", "the epochs table"
            )
        then, copies = (
            {(shard, copy.table): copy for shard, state in cut.shards.items() for copy in state.copies}
            for cut in (before.manifest.cut, row.manifest.cut)
        )
        stale = {one.table for one in row.manifest.stale}
        was_stale = {one.table for one in before.manifest.stale}
        come = row.manifest.tables - before.manifest.tables
        left = before.manifest.tables - row.manifest.tables
        if suddenly := left - was_stale:
            self._fault(row, f"{suddenly} left the feed, and were exact", "the epochs table")
        gone = (stale - was_stale) | left
        then = {place: old for place, old in then.items() if place[1] not in gone}
        self._verdict.renewed += len(was_stale - stale)
        for place, now in copies.items():
            old = then.pop(place, None)
            if old is None:
                if place[1] not in stale | was_stale | come:
                    self._fault(row, f"the copy {place} begins anew", "the epochs table")
                continue
            ordered = self._is_ordered(row, str(now.table))
            back = (
                now.rows < old.rows
                or now.born_after != old.born_after
                or (old.done and now != old)
                or (old.copied is not None and now.copied is None)
                or (
                    old.copied is not None
                    and now.copied is not None
                    and self._shrunk(old.copied, now.copied, ordered)
                )
            )
            if back:
                self._fault(row, f"the copy went back at {place} from {old} to {now}", "the epochs table")
        if any(place[1] not in stale for place in then):
            self._fault(row, f"the copies {list(then)} are gone", "the epochs table")

    def _shrunk(self, old: Bound, now: Bound, ordered: bool) -> bool:
        return self._above(old, now, ordered)
