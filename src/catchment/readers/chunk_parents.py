"""What parents of a chunk's rows went through while the chunk was read.

The log does not tell what foreign keys did to the rows, so no rewind brings that back. Such a chunk is refused, and
copied in a later epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.work import ChunkTask
from catchment.epoch.xa import Commits
from catchment.model.epoch import TableShape
from catchment.model.foreign_key import ForeignKey, above, below
from catchment.model.image import DELETE, GROUP, INTERNAL, OP, UPDATE
from catchment.model.table import TableId
from catchment.rewind.keyless import apart
from catchment.rewind.parents import Events, Side, all_valid, events_of
from catchment.rewind.states import in_commit_order, without_voids
from catchment.source.stretch import Stretch
from catchment.wire.keys import keys
from catchment.wire.log.facts import Images


@dataclass
class ChunkParents:
    """The parents of one group of chunks, and what the log behind its floor says of them.

    `unread`: parents of which it does not tell all rows.
    """

    task: ChunkTask
    keys: tuple[ForeignKey, ...] = ()
    shapes: dict[TableId, TableShape] = field(default_factory=dict)
    unread: set[TableId] = field(default_factory=set)
    _held: dict[TableId, list[pa.Table]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: ChunkTask) -> "ChunkParents":
        """Those that change rows of the chunks, also from afar."""
        known, children = task.state.keys or (), frozenset(shape.table for shape in task.shapes)
        reached = children | above(known, children)
        mine = tuple(key for key in known if key.child in reached)
        parents = {key.parent for key in mine}
        shapes = {s.table: s for s in (*task.shapes, *task.parents) if s.table in parents}
        return cls(task, mine, shapes)

    def add(self, read: Images) -> None:
        """Keep the parents that went or changed."""
        table = read.table.id
        shape = self.shapes.get(table)
        if shape is None:
            return
        images, keyless = apart(pa.Table.from_batches([read.batch]), shape.key)
        names = dict.fromkeys(name for key in self.keys if key.parent == table for name in key.referenced)
        if keyless is not None or not names.keys() <= set(images.schema.names):
            self.unread.add(table)
            return
        acted = pc.is_in(images.column(OP), pa.array([DELETE, UPDATE], pa.uint8()))
        images = images.filter(acted).select([*names, *INTERNAL])
        if images.num_rows:
            self._held.setdefault(table, []).append(images)

    def refusals(
        self, rows: Mapping[TableId, pa.Table], stretch: Stretch, ends: Commits
    ) -> dict[TableId, str]:
        """The tables whose rows, as they were read and brought to the epoch, may not be as of it; and why."""
        events = self._events(stretch, ends)
        found = {}
        for table, mine in rows.items():
            why = next(
                (why for key in self.keys if (why := self._why_not(key, events, table, mine, stretch))), ""
            )
            if why:
                found[table] = f"shard {self.task.endpoint.shard}, {table}: {why}; copied in a later epoch"
        return found

    def _events(self, stretch: Stretch, ends: Commits) -> dict[ForeignKey, Events]:
        found: dict[ForeignKey, Events] = {}
        for table, parts in self._held.items():
            if any(part.schema != parts[0].schema for part in parts):
                self.unread.add(table)
                continue
            images = in_commit_order(without_voids(pa.concat_tables(parts), stretch.voids), ends.moves)
            images = images.filter(pc.less(images.column(GROUP), stretch.groups))
            side = Side(images, images.column(GROUP).to_numpy(), self.shapes[table].key)
            found |= {key: events_of(key, side) for key in self.keys if key.parent == table}
        return {key: events for key, events in found.items() if len(events.places)}

    def _why_not(
        self,
        key: ForeignKey,
        events: Mapping[ForeignKey, Events],
        table: TableId,
        rows: pa.Table,
        stretch: Stretch,
    ) -> str:
        if key.child != table and key.child not in above(self.keys, frozenset({table})):
            return ""
        if key.parent in self.unread:
            return f"the log does not say which rows of {key.parent} went, so the {key} may have changed rows"
        if key not in events:
            return ""
        until = pa.array(events[key].places < stretch.boundary)
        if not pc.all(until).as_py():
            return f"the {key} changed rows while they were read"
        # What a SELECT shows is as of the epoch if it has seen the parent go. Children that are left have not.
        alone = key.child == table and table not in below(self.keys, frozenset({table}))
        mine = rows.select(key.columns) if alone and not key.unfollowed else None
        if mine is None or events[key].old.schema.types != mine.schema.types:
            return f"the {key} changed rows, and that is not proven visible yet"
        mine = mine.filter(pa.array(all_valid(mine)))
        old = keys.KeySet(keys.encode(events[key].old, key.columns))
        left = mine.num_rows and old.contains(keys.encode(mine, key.columns)).any()
        return f"rows still refer to rows of {key.parent} that are gone" if left else ""
