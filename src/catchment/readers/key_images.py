"""Children that follow their parents within one segment of a log, which has no row of what foreign keys do to them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.work import SegmentTask
from catchment.epoch.xa import Commits
from catchment.model.epoch import TableShape
from catchment.model.errors import ChildrenSought, Unsupported
from catchment.model.foreign_key import Does, ForeignKey, below
from catchment.model.image import DELETE, INTERNAL, OP, SIDE, UNCHECKED, UPDATE
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.rewind.cascades import cascades
from catchment.rewind.keyless import apart
from catchment.rewind.lives import Fates, Unfollowed
from catchment.rewind.parents import Side, sides_of
from catchment.rewind.states import BEFORE, in_commit_order, without_voids
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvent
from catchment.schema.foreign_keys import columns_of, dropped_keys
from catchment.schema.passage import Alteration, Stopped
from catchment.source.foreign_keys import REMEDY, cascading
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Images


@dataclass(frozen=True)
class Known:
    """The foreign keys of a shard, and the children that cannot be carried with theirs, with the reasons."""

    keys: tuple[ForeignKey, ...]
    refused: Mapping[TableId, str] = field(default_factory=dict)


def keys_of(task: SegmentTask) -> Known:
    """Those where the task begins. Raises SourceError where it has to ask."""
    if task.start.keys is not None:
        return Known(task.start.keys)
    tables = columns_of(task.here.values())
    with connect(task.endpoint, task.start.position.server) as session:
        found = cascading(session, tables)
    refused = {one.key.child: f"{one.why}; {REMEDY}" for one in found if one.refused}
    return Known(tuple(one.key for one in found if not one.refused), refused)


def with_referenced(wanted: Wanted, keys: Iterable[ForeignKey]) -> Wanted:
    """The same rows. An image of a parent tells also the columns that foreign keys refer to, as they were before."""
    found: dict[TableId, tuple[str, ...]] = {}
    for key in keys:
        if key.parent in wanted.keys:
            known = found.get(key.parent, wanted.keys[key.parent])
            found[key.parent] = tuple(dict.fromkeys([*known, *key.referenced]))
    return replace(wanted, keys={**wanted.keys, **found}) if found else wanted


@dataclass(frozen=True)
class Followed:
    """What became of children by foreign keys, those that cannot follow any more, and the keys behind the segment."""

    fates: Mapping[TableId, Fates]
    stopped: Mapping[TableId, Stopped]
    keys: tuple[ForeignKey, ...]

    def of(self, table: TableId, told: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The states of a table's rows. `told`: those that its log tells."""
        fates = self.fates.get(table)
        if fates is None:
            yield from told
            return
        for states in told:
            yield fates.applied(states)
        if fates.unlogged.num_rows:
            yield fates.applied(fates.unlogged)


class KeyImages:
    """Of the images of a segment those columns that foreign keys are about. Without the lake beside it, nothing but the
    parents that went or changed: as a rule there are none."""

    def __init__(self, task: SegmentTask, shapes: Mapping[TableId, TableShape], known: Known) -> None:
        self._task, self._shapes, self._known = task, shapes, known
        self._held: dict[TableId, list[pa.Table]] = {}
        self._torn: set[TableId] = set()
        self._columns: dict[TableId, list[str]] = {}
        for key in known.keys:
            if key.parent in shapes and key.child in shapes:
                self._columns.setdefault(key.parent, list(shapes[key.parent].key)).extend(key.referenced)
                if task.lake is not None:
                    self._columns.setdefault(key.child, list(shapes[key.child].key)).extend(key.columns)

    @property
    def keys(self) -> tuple[ForeignKey, ...]:
        """All that are known."""
        return self._known.keys

    def add(self, read: Images) -> None:
        """Keep what is needed of the images."""
        table = read.table.id
        if table not in self._columns:
            return
        images, keyless = apart(pa.Table.from_batches([read.batch]), self._shapes[table].key)
        names = dict.fromkeys(self._columns[table])
        if keyless is not None or not names.keys() <= set(images.schema.names):
            self._torn.add(table)
            return
        if self._task.lake is None:
            images = images.filter(_changed(images))
        if images.num_rows:
            self._held.setdefault(table, []).append(images.select([*names, *INTERNAL]))

    def renamed(self, altered: Iterable[Alteration]) -> dict[TableId, Stopped]:
        """The tables of which a column was renamed that a foreign key is about: servers rename it in the key, too.

        Raises Unsupported for what is to end the run.
        """
        named = {(key.child, name.lower()) for key in self.keys for name in key.columns}
        named |= {(key.parent, name.lower()) for key in self.keys for name in key.referenced}
        found = {}
        for effect in (one.effect for one in altered):
            told = {name for one in effect.renamed for name in (one.old, one.new)}
            if about := sorted(name for name in told if (effect.table, name.lower()) in named):
                why = f"shard {self._task.endpoint.shard}: column {about[0]} was renamed, and a foreign key is about it"
                if not self._task.changes.follows(effect.table):
                    raise Unsupported(why)
                found[effect.table] = Stopped(effect.table, why)
        return found

    def follow(
        self,
        stretch: Stretch,
        ends: Commits,
        events: Sequence[SchemaEvent],
        stopped: Collection[TableId],
    ) -> Followed:
        """What the segment did to the children. `events`: its DDL; `stopped`: tables that are not followed any more.

        Raises ChildrenSought, and Unsupported for what is to end the run.
        """
        dropped = [
            key
            for key in self.keys
            if any(key.name.lower() in dropped_keys(one, key.child) for one in events)
        ]
        redefined = {one.effect.table for one in events if isinstance(one.effect, Columns)}
        redefined |= {key.child for key in (*dropped, *(key for key in self.keys if self._is_between(key)))}
        became, why = self._became(stretch, ends, redefined, stopped)
        where = f"shard {self._task.endpoint.shard}"
        lost = {table: Stopped(table, f"{where}: {reason}") for table, reason in why.items()}
        if failing := [one.reason for table, one in lost.items() if not self._task.changes.follows(table)]:
            raise Unsupported("; ".join(failing))
        left = self._left({*lost, *stopped})
        return Followed(became, lost, tuple(key for key in left if key not in dropped))

    def _became(
        self, stretch: Stretch, ends: Commits, redefined: Collection[TableId], stopped: Collection[TableId]
    ) -> tuple[dict[TableId, Fates], dict[TableId, str]]:
        """What became of children, and why others cannot follow."""
        why = self._without_parents(stopped)
        keys = self._left({*why, *stopped})
        sides = self._sides(keys, stretch, ends)
        eventful = {key for key in keys if key.parent in sides and _has_events(key, sides[key.parent].images)}
        torn = self._torn & {key.parent for key in keys}
        reached = below(keys, frozenset(key.parent for key in eventful) | torn)
        for table, reason in self._untold(keys, eventful, reached, redefined):
            for child in {table} | below(keys, frozenset({table})):
                if not _is_bare(self._task.start.copying.get(child)):
                    why.setdefault(child, reason)
        keys = tuple(key for key in self._left({*why, *stopped}) if key.child in reached)
        if not eventful & {*keys}:
            return {}, why
        return self._fates(keys, sides, why), why

    def _untold(
        self,
        keys: Collection[ForeignKey],
        eventful: Collection[ForeignKey],
        reached: Collection[TableId],
        redefined: Collection[TableId],
    ) -> Iterator[tuple[TableId, str]]:
        """Children of which rows may have changed and nobody can tell which, and why."""
        for key in keys:
            if key not in eventful and key.parent not in reached and key.parent not in self._torn:
                continue
            acted = f"the {key} may have changed rows"
            if key.unfollowed:
                yield key.child, f"{acted}: {key.unfollowed}"
            elif {key.child, key.parent} & {*redefined, *self._torn}:
                yield key.child, f"{acted} while it or its parent was altered"
            elif key.parent in reached and key.parent in self._task.start.copying:
                yield key.child, f"{acted}: not all rows of {key.parent} are copied"

    def _left(self, without: Collection[TableId]) -> tuple[ForeignKey, ...]:
        return tuple(key for key in self.keys if key.child in self._shapes and key.child not in without)

    def _without_parents(self, stopped: Collection[TableId]) -> dict[TableId, str]:
        """The children of which a parent is not followed, and why they are not either."""
        why = {table: reason for table, reason in self._known.refused.items() if table not in stopped}
        for key in self._left(stopped):
            if key.parent in stopped or key.parent not in self._shapes:
                why[key.child] = f"its parent {key.parent} is not followed any more ({key})"
            elif lacking := self._lacking(key):
                why[key.child] = f"the {key} names column {lacking}, which is gone"
        for table in below(self.keys, frozenset(why)):
            why.setdefault(table, "a parent of its parent is not followed any more")
        return why

    def _is_between(self, key: ForeignKey) -> bool:
        """Whether the shard and the lake, or both ends of a key, have columns of different types."""
        if not {key.child, key.parent} <= self._shapes.keys():
            return False
        child, parent = self._shapes[key.child], self._shapes[key.parent]
        if any(self._task.endpoint.shard in one.shards for shape in (child, parent) for one in shape.widened):
            return True
        ends = zip(key.columns, key.referenced, strict=True)
        pairs = [(child.column(mine), parent.column(its)) for mine, its in ends]
        return any(a is not None and b is not None and a.column.type != b.column.type for a, b in pairs)

    def _lacking(self, key: ForeignKey) -> str:
        sides = ((key.child, key.columns), (key.parent, key.referenced))
        gone = (n for table, names in sides for n in names if self._shapes[table].column(n) is None)
        return next(gone, "")

    def _sides(self, keys: Sequence[ForeignKey], stretch: Stretch, ends: Commits) -> dict[TableId, Side]:
        """The images in the order in which they count, of tables whose definition is one throughout."""
        tables = {table for key in keys for table in (key.parent, key.child)}
        found: dict[TableId, pa.Table] = {}
        for table in tables & self._held.keys():
            parts = self._held[table]
            if any(part.schema != parts[0].schema for part in parts):
                self._torn.add(table)
                parts = [part.select(list(INTERNAL)) for part in parts]
            found[table] = in_commit_order(without_voids(pa.concat_tables(parts), stretch.voids), ends.moves)
        return sides_of(found, {table: self._shapes[table].key for table in found})

    def _fates(
        self, keys: Sequence[ForeignKey], sides: Mapping[TableId, Side], why: dict[TableId, str]
    ) -> dict[TableId, Fates]:
        lake, shard = self._task.lake, self._task.endpoint.shard
        if lake is None:
            raise ChildrenSought(f"shard {shard}: rows with children went, or their keys changed")
        while True:
            try:
                row_keys = {key.child: self._shapes[key.child].key for key in keys}
                found = cascades(
                    keys, sides, row_keys, lambda key, values: lake[key.child].having(shard, values)
                )
                return found.fates()
            except Unfollowed as unfollowed:
                gone = {unfollowed.child} | below(tuple(keys), frozenset({unfollowed.child}))
                why |= dict.fromkeys(gone, str(unfollowed))
                keys = [key for key in keys if key.child not in gone]


def _changed(images: pa.Table) -> pa.Array:
    """The images of rows before they went or changed, in sessions that checked foreign keys."""
    return pc.and_(pc.equal(images.column(SIDE), BEFORE), pc.less(images.column(OP), UNCHECKED))


def _has_events(key: ForeignKey, images: pa.Table) -> bool:
    acts = [op for op, does in ((DELETE, key.on_delete), (UPDATE, key.on_update)) if does is not Does.KEEP]
    ops = pc.filter(images.column(OP), _changed(images))
    return bool(pc.any(pc.is_in(ops, pa.array(acts, pa.uint8()))).as_py())


def _is_bare(copy: Copy | None) -> bool:
    """Whether no row of a table is in the lake, nor any of its log."""
    return copy is not None and copy.copied is None and copy.born_after is None
