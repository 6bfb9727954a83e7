"""Epochs: their three durable records, plan, manifest and commit (DESIGN 2 and 3)."""

from collections.abc import Collection, Iterable, Mapping, Set
from enum import Enum
from functools import cached_property
from typing import cast

import msgspec
from msgspec.structs import force_setattr, replace

from catchment.model.arrangement import AS_THEY_COME, Arrangement
from catchment.model.birth import Birth
from catchment.model.chunk import Chunk
from catchment.model.column_rule import ColumnRule, rule_of
from catchment.model.cut import Cut, Tick
from catchment.model.emptied import Emptied
from catchment.model.epoch_number import epoch_text
from catchment.model.fill import Fill, filled_too
from catchment.model.of_tables import Lasting
from catchment.model.position import LogOffset, Position
from catchment.model.refusal import Refusal
from catchment.model.renewal import Renewal, Replacement
from catchment.model.shard import Copy
from catchment.model.stale import NOWHERE, Stale
from catchment.model.table import Column, ColumnType, Comments, Table, TableId
from catchment.model.treatment import Mode
from catchment.model.widened import Declared, Widened
from catchment.model.withheld import withheld_among


class Plan(msgspec.Struct, frozen=True):
    """What an epoch will read: the log up to `tick.offsets`, and chunks whose log is read from `floors`.

    `refused`: the tables whose copy stood still when it was planned.
    """

    epoch: int
    previous: int
    tick: Tick
    floors: dict[str, LogOffset]
    chunks: tuple[Chunk, ...]
    refused: tuple[Refusal, ...] = ()


class Part(Enum):
    """The two parts of a lake table (DESIGN 10)."""

    BASE = "base"
    CHANGES = "changes"


class DataFile(msgspec.Struct, frozen=True):
    """A file that a sink has written for a table. `path` is relative to the table; `stats` is the sink's
    own: what it wants to know of the rows when it applies them."""

    path: str
    size: int
    rows: int
    part: Part
    stats: str


_NO_RULE = ColumnRule("")


class LakeColumn(msgspec.Struct, frozen=True, cache_hash=True):
    """A column of a lake table. `physical` is its name in the files: a name that is added again after a DROP
    is a new physical column. `live` is False once no shard has it; `torn`: a shard that dropped it has left
    values in its rows while others still have it. `missing`: the shards whose table does not have it."""

    column: Column
    physical: str
    live: bool = True
    torn: bool = False
    missing: tuple[str, ...] = ()


class TableShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a lake table looks like as of an epoch: its columns, and the names of its key columns. `rules`: what the
    feed does with columns, those too that come later. `mode`: what the sink keeps of rows. `comments`: of the table and
    of kept columns, as they were when a run began, or when columns came or went. `arrangement`: how rows lie in the
    sink's files. `generation`: the epoch with which this copy of the table began; 0: that of the feed's first. `fills`:
    what rows have that are older than a column. `emptied`: the last TRUNCATE of each shard, as of which no row of it is
    left. `widened`: former types of columns. `declared`: how long texts and bytes may be. `charset`: of those that
    are declared without one; empty where it is not known. `computes`: whether some may be computed from others.
    `place_of`: of a shadow table, the one whose place it is to take. `renews`: what a new copy goes on from, where the
    mode keeps the past. `replaces`: the rows of which shards it has anew, where it has not those of all."""

    table: TableId
    columns: tuple[LakeColumn, ...]
    key: tuple[str, ...]
    rules: tuple[ColumnRule, ...] = ()
    mode: Mode = Mode.MIRROR
    comments: Comments = Comments()
    arrangement: Arrangement = AS_THEY_COME
    generation: int = 0
    fills: tuple[Fill, ...] = ()
    emptied: tuple[Emptied, ...] = ()
    widened: tuple[Widened, ...] = ()
    declared: tuple[Declared, ...] = ()
    charset: str = ""
    computes: bool = True
    place_of: TableId | None = None
    renews: Renewal | None = None
    replaces: Replacement | None = None

    @property
    def lake_table(self) -> TableId:
        """The table under whose name its rows lie."""
        return self.place_of or self.table

    def type_on(self, shard: str, column: LakeColumn) -> ColumnType:
        """The type that a column has on a shard, which may still be a former one."""
        for one in self.widened:
            if one.column == column.physical and shard in one.shards:
                return one.type
        return column.column.type

    def filled(self, shard: str, said: Fill) -> "TableShape":
        """The same, where a fill holds for rows of one more shard."""
        return replace(self, fills=filled_too(self.fills, shard, said))

    @property
    def kept(self) -> tuple[LakeColumn, ...]:
        """The live columns that the sink has: no rule excludes them."""
        live = (c for c in self.columns if c.live)
        return tuple(c for c in live if not self.rules or not self._rule(c).excluded)

    def name_of(self, column: LakeColumn) -> str:
        """What readers know a column as."""
        return (self._rule(column).name if self.rules else "") or column.column.name

    def _rule(self, column: LakeColumn) -> ColumnRule:
        return rule_of(self.rules, column.column.name) or _NO_RULE

    def column(self, name: str) -> LakeColumn | None:
        """The kept column that the source names so, in any case; None when there is none."""
        return next((c for c in self.kept if c.column.name.lower() == name.lower()), None)

    @property
    def partition_column(self) -> str | None:
        """By which the sink's table is partitioned beside the shard: a column of the sink's own. It stays when the
        source's column goes."""
        partition = self.arrangement.partition
        if partition is None or partition.by_shard:
            return None
        rule = rule_of(self.rules, partition.column)
        return partition.name_of((rule.name if rule is not None else "") or partition.column)

    @property
    def definition(self) -> Table:
        """The source table as the shards together have it."""
        return Table(self.table, tuple(c.column for c in self.columns if c.live), self.key)


class Shapes(Lasting[TableShape], what="shape", of=TableShape):
    """The shapes of a feed's tables. An epoch that alters none has the same object as the one before."""

    @cached_property
    def keys(self) -> Mapping[TableId, tuple[str, ...]]:
        """The names of the key columns of each table."""
        return {shape.table: shape.key for shape in self}

    @cached_property
    def unseen(self) -> tuple[TableId, ...]:
        """The tables that no reader sees: shadow tables."""
        return tuple(shape.table for shape in self if shape.place_of is not None)


class TableDelta(msgspec.Struct, frozen=True):
    """What an epoch adds to one lake table, in one commit."""

    shape: TableShape
    files: tuple[DataFile, ...]
    upserts: int = 0
    deletes: int = 0
    copied: int = 0


class Outside(msgspec.Struct, frozen=True):
    """A table that the feed does not carry. Of one that left, `epoch` is the last that has it; one with a `reason` was
    dropped. Of one that could not be carried when the feed began, `reason` says why, and `epoch` is 0. `keeps`: its
    lake table has more than the rows of then, which no new copy may replace."""

    table: TableId
    epoch: int
    reason: str = ""
    keeps: bool = False

    @property
    def dropped(self) -> bool:
        """Whether no shard had it any more."""
        return bool(self.epoch and self.reason)

    @property
    def returns(self) -> bool:
        """Whether it enters again where `tables` takes it."""
        return self.epoch > 0 and not self.keeps

    @property
    def why(self) -> str:
        """Why the feed does not carry it."""
        if self.dropped:
            return f"{self.reason}, and its lake table stands as of epoch {epoch_text(self.epoch)}"
        if self.reason:
            return f"{self.reason}, when the feed began"
        return f"it left at epoch {epoch_text(self.epoch)}, and its lake table stands as of then"

    def __str__(self) -> str:
        return f"{self.table} ({self.why})"


class Stood(msgspec.Struct, frozen=True):
    """Where a shard stood that has a table, and its copy there."""

    position: Position
    copy: Copy


class Former(msgspec.Struct, frozen=True):
    """A carried table as it was in the last epoch in front of a swap. `stood`: the shards that keep their rows."""

    shape: TableShape
    stood: dict[str, Stood]


class Shadow(msgspec.Struct, frozen=True):
    """A table that a tool for schema changes fills beside a carried one, and is to take its place by RENAME. No reader
    sees it: its rows grow in a tail of the carried table, of a generation of its own. `shards`: those that have it.
    `swapped`: by shard, where it has the carried table's name; its rows in front of that are in the tail. `former`: the
    carried table, of which it replaces the rows of some shards alone; None where each shard has a shadow table."""

    shape: TableShape
    shards: tuple[str, ...]
    swapped: dict[str, Birth] = {}
    former: Former | None = None

    @property
    def table(self) -> TableId:
        """Its own name."""
        return self.shape.table

    @property
    def place_of(self) -> TableId:
        """The carried table."""
        return self.shape.lake_table

    def covers(self, shards: Iterable[str]) -> bool:
        """Whether each of the shards has it, under one name or the other."""
        return set(shards) <= {*self.shards, *self.swapped}


class Manifest(msgspec.Struct, frozen=True):
    """What was read and where it lies: enough to apply the epoch without the source.

    `outside`: the tables that left the feed, or could not be carried when it began. `absent`: the shards that did not
    take part and inherited their state, and as of when their rows stand (microseconds since 1970). `stale`: the tables
    that readers see as of an earlier epoch. `shadows`: tables that may take the place of others.

    Raises ValueError for one that speaks of shards or tables that it does not have.
    """

    feed: str
    previous: int
    window_us: int
    cut: Cut
    shapes: tuple[TableShape, ...]
    deltas: tuple[TableDelta, ...]
    changes: int = 0
    log_bytes: int = 0
    chunk_bytes: int = 0
    outside: tuple[Outside, ...] = ()
    absent: dict[str, int] = {}
    stale: tuple[Stale, ...] = ()
    shadows: tuple[Shadow, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.shapes, Shapes):
            force_setattr(self, "shapes", Shapes(self.shapes))
        shards, tables = self.cut.shards, self.known.tables
        self._must_have("absence", self.absent.keys(), shards.keys())
        for state in shards.values():
            if not state.known.are_of(tables):
                self._must_have("copies", state.known.tables, tables)

    def _must_have(self, what: str, named: Set[object], known: Set[object]) -> None:
        if unknown := named - known:
            names = ", ".join(sorted(map(str, unknown)))
            raise ValueError(f"epoch {epoch_text(self.epoch)}: {what} of {names}, which it does not have")

    @property
    def known(self) -> Shapes:
        """The shapes, with what follows from them."""
        return cast(Shapes, self.shapes)

    @property
    def epoch(self) -> int:
        """Its number, that of its cut."""
        return self.cut.epoch

    @property
    def time_us(self) -> int:
        """When its cut was taken, in microseconds since 1970."""
        return self.cut.time_us

    @property
    def as_of_us(self) -> int:
        """As of when readers see each shard, or later (microseconds since 1970): of a shard that was absent, since when
        its rows stand."""
        return min((self.time_us, *self.absent.values()))

    @property
    def tables(self) -> set[TableId]:
        """The tables of the feed, those too that are stale."""
        return {*self.known.tables, *(one.table for one in self.stale)}

    @property
    def followed(self) -> Shapes:
        """The shapes of all tables whose log is read."""
        return Shapes((*self.shapes, *(one.shape for one in self.shadows))) if self.shadows else self.known

    @property
    def lost(self) -> tuple[Stale, ...]:
        """The stale tables whose new copy has not begun."""
        return tuple(one for one in self.stale if one.table not in self.known.tables)

    def is_taken(self, table: TableId) -> bool:
        """Whether a shadow table takes the place of a table, and has it on some shards."""
        return any(one.place_of == table and one.swapped for one in self.shadows)

    def stale_since(self, table: TableId) -> Stale | None:
        """Why readers see a table as of an earlier epoch; None where they see it as of this one."""
        return next((one for one in self.stale if one.table == table), None)

    def had(self, table: TableId) -> bool:
        """Whether the lake has an earlier copy of a table: it is stale, or left."""
        left = any(one.table == table and one.epoch for one in self.outside)
        return left or self.stale_since(table) is not None

    def stopped(
        self, table: TableId, time_us: int, reason: str, places: Mapping[str, LogOffset] = NOWHERE
    ) -> Stale:
        """A table that cannot be followed after this epoch: stale as of here, or as of the earlier epoch as of which it
        was stale before. One whose new copy has not begun has the shards of then. `reason` and `places` as Stale has
        them."""
        known = self.stale_since(table) or Stale(table, self.epoch, time_us, (), reason)
        carried = table in self.known.tables
        shards, withheld = self.shards_of(table) if carried else known.shards, known.withheld
        shape = self.known.by_table.get(table)
        if shape is not None:
            withheld = withheld_among([one.name for one in shape.definition.columns], shape.rules)
        return replace(
            known,
            time_us=time_us,
            shards=shards,
            reason=reason,
            withheld=withheld,
            settles=False,
            places=dict(places),
        )

    def without(self, tables: Collection[TableId]) -> "Manifest":
        """The same without anything of these tables."""
        return replace(
            self,
            cut=self.cut.without(tables),
            shapes=tuple(shape for shape in self.shapes if shape.table not in tables),
            deltas=tuple(delta for delta in self.deltas if delta.shape.table not in tables),
            stale=tuple(one for one in self.stale if one.table not in tables),
            shadows=tuple(one for one in self.shadows if one.place_of not in tables),
        )

    def shape(self, table: TableId) -> TableShape:
        """The shape of a table; raises KeyError."""
        shape = self.known.by_table.get(table)
        if shape is None:
            raise KeyError(f"epoch {epoch_text(self.epoch)} has no table {table}")
        return shape

    def shards_of(self, table: TableId) -> tuple[str, ...]:
        """The shards that have a table."""
        for one in self.shadows:
            if one.table == table:
                return one.shards
        return tuple(shard for shard, state in self.cut.shards.items() if table in state.known.tables)

    @property
    def holders(self) -> dict[TableId, tuple[str, ...]]:
        """The shards that have each table."""
        found: dict[TableId, list[str]] = {shape.table: [] for shape in self.shapes}
        for shard, state in self.cut.shards.items():
            for copy in state.copies:
                found[copy.table].append(shard)
        found |= {one.table: list(one.shards) for one in self.shadows}
        return {table: tuple(shards) for table, shards in found.items()}

    def repeated(self, epoch: int) -> "Manifest":
        """An epoch that ends where this one does and brings no rows."""
        return self.without_rows(replace(self.cut, epoch=epoch), self.window_us)

    def without_rows(self, cut: Cut, window_us: int) -> "Manifest":
        """An epoch behind this one that brings no rows."""
        return replace(
            self,
            previous=self.epoch,
            window_us=window_us,
            cut=cut,
            deltas=(),
            changes=0,
            log_bytes=0,
            chunk_bytes=0,
        )


class Commit(msgspec.Struct, frozen=True):
    """That an epoch is applied: version of every lake table as of it (`schema.name` -> version). `digest`: that of the
    manifest's record."""

    epoch: int
    digest: str
    time_us: int
    versions: dict[str, int]


class EpochRow(msgspec.Struct, frozen=True):
    """A committed epoch as the sink holds it. `manifest` has no deltas: its files are in the tables' logs. Its cut
    and shapes are whole. `commit.digest` is that of the manifest's record in the state store."""

    manifest: Manifest
    commit: Commit
    fence: int

    @property
    def versions(self) -> dict[str, int]:
        """Version of every table that readers see."""
        hidden = {str(one.table) for one in self.manifest.shadows}
        return {name: version for name, version in self.commit.versions.items() if name not in hidden}
