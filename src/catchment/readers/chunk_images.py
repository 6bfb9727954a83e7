"""What the log behind a group of chunks holds for them: images of their keys, and what keeps them from counting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.work import ChunkTask
from catchment.model.chunk import Bound, chunk_key
from catchment.model.epoch import TableShape
from catchment.model.errors import TooManyImages
from catchment.model.image import GROUP
from catchment.model.position import Position
from catchment.model.table import TableId
from catchment.rewind.key_chunks import having
from catchment.rewind.keyless import apart
from catchment.rewind.ranges import Mask, covered
from catchment.rewind.states import behind
from catchment.schema.ddl import Columns, Harmless
from catchment.schema.events import stops
from catchment.schema.existence import existence
from catchment.schema.judge import ByText
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.wire.log.facts import Images, Incident, PartialImage, Unreadable

_UNPROVEN = (
    "; it is not proven yet that rows changed before it are visible: the shard's next transaction proves it"
)

Ranges = Sequence[tuple[Bound | None, Bound | None]]


@dataclass
class ChunkImages:
    """Images of the keys that a group's chunks cover; of keys that we cannot order, all of their table. `chosen`: the
    keys of tables of which the chunks have chosen ones. `crowded`: tables of which no images are kept, since they had
    too many, with the reason."""

    task: ChunkTask
    wanted: Mapping[TableId, tuple[TableShape, Ranges]]
    chosen: Mapping[TableId, pa.Table] = field(default_factory=dict)
    kept: dict[TableId, list[pa.Table]] = field(default_factory=dict)
    keyless: dict[TableId, int] = field(default_factory=dict)
    prepared: set[TableId] = field(default_factory=set)
    crowded: dict[TableId, str] = field(default_factory=dict)
    bytes: dict[TableId, int] = field(default_factory=dict)

    def add(self, read: Images) -> None:
        """Keep what counts of them, and the last group with a row that has no key; raises TooManyImages where each
        table has too many."""
        table = read.table.id
        if table in self.crowded:
            return
        shape, _ = self.wanted[table]
        images, keyless = apart(pa.Table.from_batches([read.batch]), shape.key)
        if keyless is not None:
            last = pc.max(keyless.column(GROUP)).as_py()
            self.keyless[table] = max(last, self.keyless.get(table, last))
        mask = self.covers(table, images)
        if mask is not None:
            images = images.filter(pa.array(mask))
        if images.num_rows == 0:
            return
        self.kept.setdefault(table, []).append(images)
        self.bytes[table] = self.bytes.get(table, 0) + images.nbytes
        if self.task.image_bytes is not None and sum(self.bytes.values()) > self.task.image_bytes:
            self._give_up()

    def _give_up(self) -> None:
        """Let go of the table that has most, so that the chunks of the others can be read."""
        table = max(self.bytes, key=lambda one: self.bytes[one])
        why = (
            f"shard {self.task.endpoint.shard}, {table}: rows of these chunks were changed while they were "
            f"read, in more than {self.task.image_bytes} bytes of images; copied later, in smaller chunks"
        )
        self.crowded[table] = why
        del self.kept[table], self.bytes[table]
        if self.crowded.keys() == self.wanted.keys():
            raise TooManyImages(why)

    def covers(self, table: TableId, rows: pa.Table) -> Mask | None:
        """Which rows of a table lie in its chunks; None where we cannot order their keys, and all may."""
        if table in self.chosen:
            return having(rows, self.chosen[table])
        shape, ranges = self.wanted[table]
        return covered(rows, chunk_key(shape.definition), ranges)

    def add_prepared(self, read: Images) -> None:
        """The same of images that stand in front of the floor: those of an XA PREPARE."""
        count = len(self.kept.get(read.table.id, ()))
        self.add(read)
        if len(self.kept.get(read.table.id, ())) > count:
            self.prepared.add(read.table.id)

    def before(self, table: TableId, group: int) -> bool:
        """Whether rows of a table are to be rewound over the beginning of a group."""
        return table in self.prepared or any(
            pc.min(images.column(GROUP)).as_py() < group for images in self.kept.get(table, [])
        )

    def forget(self, table: TableId, group: int) -> None:
        """Let go of a table's images in front of a group that took all its rows."""
        kept = (behind(images, group) for images in self.kept.get(table, ()))
        self.kept[table] = [images for images in kept if images.num_rows]


def _made(stretch: Stretch, stored: StoredAt, start: Position) -> dict[TableId, int]:
    """The tables that a stretch made up to the epoch, without a row, and the ordinal of the group that did."""
    events = [event for event in stored.events if event.group < stretch.boundary]
    groups = {event.at: event.group for event in events}
    return {table: groups[birth.at] for table, birth in existence(events, start).born.items()}


def spoiled_by(stretch: Stretch, stored: StoredAt, images: ChunkImages) -> dict[TableId, str]:
    """Tables whose chunks cannot be rewound over this stretch of log, and why.

    An ALTER up to the epoch is a reason only where some row is rewound over it. That is one in front of it in the log,
    whenever its XA transaction was committed. On a source at rest the stretch keeps such an ALTER for ever. Which rows
    are is only known where they say themselves which columns they have.

    Of staged chunks the stretch ends at the epoch. What is said here of the epoch is true of what their SELECTs saw.

    Over a TRUNCATE up to the epoch no row is rewound. It was in the log before they were read, and a SELECT waits until
    it has taken its rows (metadata locks). Nor is one over a CREATE that made the table there.
    """
    task = images.task
    found = {}
    told = not task.state.definitions
    made = _made(stretch, stored, task.state.position) if told else {}
    for table, group in made.items():
        images.forget(table, group)
    xa = bool(stretch.xa or task.state.position.prepared)
    for fact in stretch.facts:
        if isinstance(fact, PartialImage | Unreadable):
            lacks = "lacks columns (binlog_row_image)"
            why = f"cannot be read: {fact.why}" if isinstance(fact, Unreadable) else lacks
            found[fact.table] = f"a row event at {fact.at} {why}"
        elif isinstance(fact, Incident):
            found |= dict.fromkeys(images.wanted, f"the server logged an incident at {fact.at}")
    for event in stored.events:
        did = stored.judged(event, images.wanted.keys())
        if isinstance(did, ByText):
            why = f"a statement that the log holds as text, at {event.at}: {did.reason}"
            found |= dict.fromkeys(did.tables, why)
        elif isinstance(did, Columns) and did.emptied and event.group < stretch.boundary:
            images.forget(did.table, event.group)
        elif not isinstance(did, Harmless):
            later = event.group >= stretch.boundary
            over = images.before(did.table, event.group)
            if later or over or not told or not isinstance(did, Columns):
                touched = [did.table, *(stop.table for stop in stops(event, images.wanted.keys()))]
                mine = (table for table in touched if event.group > made.get(table, -1))
                found |= dict.fromkeys(
                    mine, f"its definition changed at {event.at}{'' if later else _UNPROVEN}"
                )
    for table, group in images.keyless.items():
        if xa or not told or group >= stretch.boundary:
            found[table] = "a row whose key is a zero date was changed while rows were read"
    return {table: f"shard {task.endpoint.shard}, {table}: {reason}" for table, reason in found.items()}
