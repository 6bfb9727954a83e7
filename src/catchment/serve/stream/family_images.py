"""Images of the tables that foreign keys lead from and to: of parents those that changed, of children all, whole."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.xa import Commits, commits
from catchment.model.definition import Definition
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed
from catchment.model.foreign_key import ForeignKey
from catchment.model.image import DELETE, GROUP, INTERNAL, OP, UPDATE
from catchment.model.position import LogOffset, Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.unread import unread
from catchment.readers.xa_rows import PreparedRows
from catchment.rewind.keyless import apart
from catchment.rewind.sequence import ImageSequence
from catchment.rewind.states import in_commit_order, without_voids
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvents, stops
from catchment.schema.existence import existence
from catchment.source.log import read_log
from catchment.source.stretch import Stretch
from catchment.source.view import View
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Fact, Images


class FamilyImages:
    """Takes images of one stretch of log. `keys`: the foreign keys where it begins. `torn`: tables of which it does not
    say everything that keys are about."""

    def __init__(self, keys: Sequence[ForeignKey], shapes: Mapping[TableId, TableShape]) -> None:
        self._shapes = shapes
        self._children = {key.child for key in keys}
        self._referenced: dict[TableId, list[str]] = {}
        for key in keys:
            self._referenced.setdefault(key.parent, []).extend(key.referenced)
        self._held: dict[TableId, ImageSequence] = {}
        self.torn: set[TableId] = set()

    def add(self, read: Images) -> None:
        """Keep what is needed of the images."""
        table = read.table.id
        if table not in self._children and table not in self._referenced:
            return
        key = self._shapes[table].key
        images, keyless = apart(pa.Table.from_batches([read.batch]), key)
        if keyless is not None or not {*key, *self._referenced.get(table, ())} <= {*images.schema.names}:
            self.torn.add(table)
            return
        if table not in self._children:
            images = images.filter(pc.is_in(images.column(OP), pa.array([DELETE, UPDATE], pa.uint8())))
            images = images.select(list(dict.fromkeys([*key, *self._referenced[table], *INTERNAL])))
        if images.num_rows:
            self._held.setdefault(table, ImageSequence()).add(images)

    def images(self, stretch: Stretch, ends: Commits) -> dict[TableId, pa.Table]:
        """All that count of groups whose end was read, in commit order; of tables with one definition throughout."""
        found = {}
        for table, sequence in self._held.items():
            parts = list(sequence.tables())
            if any(part.schema != parts[0].schema for part in parts):
                self.torn.add(table)
                continue
            images = in_commit_order(without_voids(pa.concat_tables(parts), stretch.voids), ends.moves)
            found[table] = images.filter(pc.less(images.column(GROUP), stretch.groups))
        return found


@dataclass(frozen=True)
class FamilyLog:
    """The images of a family from the floor of a view on. `behind`: the first group behind all that the view may show.
    `groups`: how many were read."""

    images: Mapping[TableId, pa.Table]
    torn: frozenset[TableId]
    behind: int
    groups: int

    @property
    def shown(self) -> dict[TableId, pa.Table]:
        """The images of what the view may show."""
        found = {
            table: images.filter(pc.less(images.column(GROUP), self.behind))
            for table, images in self.images.items()
        }
        return {table: images for table, images in found.items() if images.num_rows}


def family_log(
    endpoint: Endpoint,
    start: Position,
    view: View,
    until: LogOffset,
    keys: Sequence[ForeignKey],
    shapes: Mapping[TableId, TableShape],
    definitions: Sequence[Definition],
) -> FamilyLog:
    """Read the log from the floor of a view to a place that is not in front of `view.told`. `start`: a position of the
    server. Raises CatchmentError."""
    server = start.server
    tables = {table for key in keys for table in (key.parent, key.child)}
    wanted = Wanted.of([shapes[table] for table in tables], definitions, before="full")
    family = FamilyImages(keys, shapes)
    with read_log(endpoint, server, view.floor, until, wanted, epoch=view.told) as log:
        for piece in log.images():
            family.add(piece)
    stretch = log.stretch
    if not stretch.reached_stop:
        raise CutMissed(
            f"shard {endpoint.shard}: the log ends at {stretch.at}, before {until}; it is read again"
        )
    ends = commits(endpoint.shard, view.prepared, stretch.xa)
    prepared = PreparedRows(endpoint, server, ends.earlier, wanted)
    for piece in prepared:
        family.add(piece)
    images = family.images(stretch, ends)
    lacking = unread(endpoint.shard, stretch.facts).keys() | prepared.unread.keys()
    torn = family.torn | altered_in(stretch.facts, tables, start) | (tables & lacking)
    return FamilyLog(images, frozenset(torn), stretch.boundary, stretch.groups)


def altered_in(facts: Sequence[Fact], tables: Collection[TableId], start: Position) -> set[TableId]:
    """Those of the tables that statements made, altered or took away, or may have. `start`: where the facts begin."""
    events = tuple(SchemaEvents(tables).of(facts))
    there = existence(events, start)
    found = {table for table in tables if table in there.there or table.schema in there.schemas_gone}
    for event in events:
        found |= {stop.table for stop in stops(event, tables)}
        if isinstance(event.effect, Columns):
            found.add(event.effect.table)
    return found
