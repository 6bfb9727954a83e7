"""What foreign keys did to the rows of a group of chunks, while these were read and in front of their epoch.

No log has that, so no image brings such rows to the epoch. Staged rows were read in front of the cut and are brought
forward to it. Rows that are compared were read after it, and the lake has them as of it. Where neither says for
certain what a row was, its chunk is refused and read again for a later epoch.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.evidence import Between
from catchment.epoch.work import ChunkTask
from catchment.epoch.xa import Commits
from catchment.model.epoch import TableShape
from catchment.model.errors import ChildrenSought
from catchment.model.foreign_key import ForeignKey, above, below
from catchment.model.image import DELETE, GROUP, INTERNAL, OP, UPDATE
from catchment.model.table import TableId
from catchment.rewind.backward import doubtful
from catchment.rewind.forward import forward, with_fates
from catchment.rewind.keyless import apart
from catchment.rewind.lives import Unfollowed
from catchment.rewind.parents import Events, Side, all_valid, events_of, sides_of
from catchment.rewind.ranges import Mask
from catchment.rewind.states import in_commit_order, without_voids
from catchment.source.stretch import Stretch
from catchment.wire.keys import keys
from catchment.wire.log.facts import Images

Tables = Mapping[TableId, pa.Table]
# Which rows of a table lie in the chunks; None: all.
Covers = Callable[[TableId, pa.Table], Mask | None]


@dataclass(frozen=True)
class Settled:
    """Rows of chunks as of their epoch, and the tables whose chunks are refused, with the reasons."""

    rows: dict[TableId, pa.Table]
    refused: dict[TableId, str]


@dataclass
class ChunkFamily:
    """The tables that foreign keys lead to from those of a group of chunks, and what the log says of them.

    `unread`: tables of which it does not tell all rows.
    """

    task: ChunkTask
    keys: tuple[ForeignKey, ...] = ()
    shapes: dict[TableId, TableShape] = field(default_factory=dict)
    unread: set[TableId] = field(default_factory=set)
    _held: dict[TableId, list[pa.Table]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: ChunkTask) -> "ChunkFamily":
        """The parents of the chunks' tables, theirs, and so on."""
        known, chosen = task.state.keys or (), frozenset(shape.table for shape in task.shapes)
        reached = chosen | above(known, chosen)
        mine = tuple(key for key in known if key.child in reached)
        tables = {table for key in mine for table in (key.parent, key.child)}
        return cls(task, mine, {s.table: s for s in (*task.shapes, *task.parents) if s.table in tables})

    def add(self, read: Images) -> None:
        """Keep what keys are about: of tables that are no children, the rows that went or changed."""
        table = read.table.id
        shape = self.shapes.get(table)
        if shape is None:
            return
        images, keyless = apart(pa.Table.from_batches([read.batch]), shape.key)
        names = dict.fromkeys([*shape.key, *self._columns(table)])
        if keyless is not None or not names.keys() <= set(images.schema.names):
            self.unread.add(table)
            return
        if all(key.child != table for key in self.keys):
            images = images.filter(pc.is_in(images.column(OP), pa.array([DELETE, UPDATE], pa.uint8())))
        if images.num_rows:
            self._held.setdefault(table, []).append(images.select([*names, *INTERNAL]))

    def settled(
        self, selected: Tables, rows: Tables, covers: Covers, stretch: Stretch, ends: Commits, cut: int
    ) -> Settled:
        """Bring rows to the epoch. `selected`: as SELECTs returned them, `rows`: as their images alone leave them
        there; `cut`: the first group after the last cut, as of which the lake is.

        Raises ChildrenSought where the task has not the lake that it needs.
        """
        if not self.keys:
            return Settled(dict(rows), {})
        images = self._images(stretch, ends)
        after = {
            table: found.filter(pc.greater_equal(found.column(GROUP), cut)) for table, found in images.items()
        }
        early = self._events(
            {table: found.filter(pc.less(found.column(GROUP), cut)) for table, found in images.items()}
        )
        staged = self.task.staged is not None
        events = self._events(images if staged else after)
        settled: dict[TableId, pa.Table] = {}
        refused: dict[TableId, str] = {}
        for table, mine in rows.items():
            keys = self._keys_of(table)
            why = next(self._unknown(table, mine, keys, events, early), "")
            if not why:
                try:
                    if staged:
                        settled[table] = self._forward(
                            table, keys, selected[table], mine, self._sides(images), events
                        )
                    else:
                        settled[table] = self._backward(table, keys, mine, covers, self._sides(after), events)
                except Unfollowed as unfollowed:
                    why = str(unfollowed)
            if why:
                refused[table] = f"shard {self.task.endpoint.shard}, {table}: {why}; copied in a later epoch"
        return Settled(settled, refused)

    def _columns(self, table: TableId) -> list[str]:
        """Those that the keys are about."""
        mine = [name for key in self.keys if key.child == table for name in key.columns]
        return [*mine, *(name for key in self.keys if key.parent == table for name in key.referenced)]

    def _keys_of(self, table: TableId) -> tuple[ForeignKey, ...]:
        """The keys by which changes reach a table."""
        reached = {table} | above(self.keys, frozenset({table}))
        return tuple(key for key in self.keys if key.child in reached)

    def _images(self, stretch: Stretch, ends: Commits) -> dict[TableId, pa.Table]:
        """All that count, in commit order, of groups whose end was read."""
        found = {}
        for table, parts in self._held.items():
            if any(part.schema != parts[0].schema for part in parts):
                self.unread.add(table)
                continue
            images = in_commit_order(without_voids(pa.concat_tables(parts), stretch.voids), ends.moves)
            found[table] = images.filter(pc.less(images.column(GROUP), stretch.groups))
        return found

    def _sides(self, images: Tables) -> dict[TableId, Side]:
        return sides_of(images, {table: self.shapes[table].key for table in images})

    def _events(self, images: Tables) -> dict[ForeignKey, Events]:
        """What the log itself says of the parents of each key, where it says anything."""
        sides = self._sides(images)
        found = {key: events_of(key, sides[key.parent]) for key in self.keys if key.parent in sides}
        return {key: events for key, events in found.items() if len(events.places)}

    def _unknown(
        self,
        table: TableId,
        rows: pa.Table,
        keys: Collection[ForeignKey],
        events: Mapping[ForeignKey, Events],
        early: Mapping[ForeignKey, Events],
    ) -> Iterator[str]:
        """Why nobody can tell what keys did to a table. `early`: what the log says of parents in front of the cut."""
        acted = {key.child for key in events} | {key.child for key in keys if key.parent in self.unread}
        acted |= below(self.keys, frozenset(acted))
        derived = {key.parent for key in keys} & {key.child for key in keys}
        for key in keys:
            if lacking := {key.child, key.parent} - self.shapes.keys():
                yield f"the {key} may have changed rows, and {min(lacking)} is not carried"
            if key.parent in self.unread:
                yield f"the log does not say which rows of {key.parent} went, so the {key} may have changed rows"
            changed = f"the {key} changed rows while they were read"
            if key in events or key in early or key.parent in acted:
                if key.unfollowed:
                    yield f"{changed}: {key.unfollowed}"
                if table in self.unread or not self._is_as_in_the_lake(key):
                    yield f"{changed}, and {key.child} or {key.parent} was altered"
            if self._tells_itself(key, table):
                continue
            if key.parent in acted and key.parent in self.task.state.copying:
                yield f"{changed}, and not all rows of {key.parent} are copied"
            # What an early event did to parents is in the lake. To the rows of a SELECT it may have done it since.
            if key in early and (key.child in derived or self.task.staged is None):
                old = early[key].old
                alone = key.child == table and table not in derived
                alone = alone and rows.select(key.columns).schema.types == old.schema.types
                if not alone or _having(rows, old).num_rows:
                    yield f"the {key} changed rows, and that is not proven visible yet"

    def _tells_itself(self, key: ForeignKey, table: TableId) -> bool:
        """Whether the SELECTs show every row that a key of a tree may end: all of the table, as of one moment."""
        staged = self.task.staged
        if not key.child == key.parent == table or staged is None or not isinstance(staged.evidence, Between):
            return False
        chunks = [copied.chunk for one in staged.tables if one.table == table for copied in one.chunks]
        whole = bool(chunks) and chunks[0].lo is None and chunks[-1].last and chunks[-1].hi is None
        return whole and staged.evidence.at_once

    def _is_as_in_the_lake(self, key: ForeignKey) -> bool:
        """Whether both ends of a key have one type, on the shard and in the lake."""
        child, parent = self.shapes[key.child], self.shapes[key.parent]
        shard = self.task.endpoint.shard
        if any(shard in one.shards for shape in (child, parent) for one in shape.widened):
            return False
        ends = zip(key.columns, key.referenced, strict=True)
        pairs = [(child.column(mine), parent.column(its)) for mine, its in ends]
        return all(a is not None and b is not None and a.column.type == b.column.type for a, b in pairs)

    def _rows_of(self, selected: Tables) -> Callable[[ForeignKey, pa.Table], pa.Table]:
        """The rows that keys ask for: those that were SELECTed, and those of other tables as the lake has them."""
        lake, shard = self.task.lake, self.task.endpoint.shard

        def having(key: ForeignKey, values: pa.Table) -> pa.Table:
            if key.child in selected:
                rows = selected[key.child]
            elif lake is not None:
                rows = lake[key.child].having(shard, values)
            else:
                raise ChildrenSought(
                    f"shard {shard}: parents went, and the rows below them are sought in the lake"
                )
            if rows.select(key.columns).schema.types != values.schema.types:
                raise Unfollowed(
                    key.child, f"the {key} changed rows whose columns have another type in the log"
                )
            return _having(rows, values)

        return having

    def _forward(
        self,
        table: TableId,
        keys: Collection[ForeignKey],
        selected: pa.Table,
        rows: pa.Table,
        sides: Mapping[TableId, Side],
        events: Mapping[ForeignKey, Events],
    ) -> pa.Table:
        if not events.keys() & {*keys}:
            return rows
        known = {table: selected}
        row_keys = {key.child: self.shapes[key.child].key for key in keys}
        fates = forward(tuple(keys), sides, row_keys, self._rows_of(known), known, known).get(table)
        return rows if fates is None else with_fates(rows, fates)

    def _backward(
        self,
        table: TableId,
        keys: Collection[ForeignKey],
        rows: pa.Table,
        covers: Covers,
        sides: Mapping[TableId, Side],
        events: Mapping[ForeignKey, Events],
    ) -> pa.Table:
        if not events.keys() & {*keys}:
            return rows
        row_keys = {key.child: self.shapes[key.child].key for key in keys}
        found = doubtful(tuple(keys), sides, row_keys, self._rows_of({})).get(table)
        return rows if found is None else found.within(covers(table, found.rows)).restored(rows)


def _having(rows: pa.Table, values: pa.Table) -> pa.Table:
    """Rows that have one of the values in its columns."""
    names = values.schema.names
    rows = rows.filter(pa.array(all_valid(rows.select(names))))
    return rows.filter(pa.array(keys.KeySet(keys.encode(values, names)).contains(keys.encode(rows, names))))
