"""Reads a shard's log from where a stream stands: what it tells of rows and tables, and where the shard stands then."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from catchment.epoch.xa import commits
from catchment.model.definition import Definition
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed, Unsupported
from catchment.model.position import LogOffset, Resets
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.treatment import Changes, SchemaChange
from catchment.readers.checks import arrived, must_be_whole, must_keep_keys, passed, went_through
from catchment.readers.unread import unread
from catchment.readers.xa_rows import PreparedRows
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvent
from catchment.schema.existence import Existence, existence
from catchment.schema.follow import Followed
from catchment.schema.passage import Alteration, Stopped
from catchment.serve.changes.rows import TIMESTAMP, GroupFacts
from catchment.serve.stream.family_turn import FamilyTurn
from catchment.serve.stream.kept_images import Changed, KeptImages
from catchment.serve.stream.tables import Known
from catchment.source.definitions_at import described_where_needed
from catchment.source.identity import must_be_unbroken
from catchment.source.log import EndedGroups, read_log
from catchment.source.standing import StandingDump
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.view import View
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl

_EVOLVES: Final = Changes(SchemaChange.EVOLVE)
REDEFINED: Final = "a column was given another definition"
WHILE_COPIED: Final = "it was altered before all its rows were copied"
WHERE_SELECTED: Final = "it was altered, and a rule has a SELECT for it"
UNTOLD: Final = "the catalog does not have the table as the log has it here"
GONE: Final = "the table is gone"
COME: Final = "the table came"
SHARD_ADDED: Final = "the shard was added to the source"


@dataclass(frozen=True, slots=True)
class Advance:
    """A shard's log from `state` to `stop`, no more than `budget` bytes of it; without a stop what has come of `dump`,
    which stands at `state`. `until`: nothing that was written later, in seconds since 1970 by the shard's clock.

    `known`: its tables. `shown`: a tick showed where it begins. `resets`: how often RESET was said, as of now.
    `chosen`: which tables are followed once they come. `view`: of the shard in front of `state`, for what foreign keys
    do; None: there is none. `untold`: nobody is told of what the log holds.
    """

    endpoint: Endpoint
    state: ShardState
    shown: bool
    known: Known
    stop: LogOffset | None
    budget: int
    resets: Resets
    chosen: Callable[[TableId], bool]
    until: int | None = None
    view: View | None = None
    untold: bool = False
    dump: StandingDump | None = None

    @property
    def shapes(self) -> Mapping[TableId, TableShape]:
        """Of the tables whose rows can be told."""
        return self.known.shapes


@dataclass(frozen=True, slots=True)
class Altered:
    """A statement that changed a table's columns, or took all its rows. `group`: its ordinal."""

    effect: Columns
    group: int
    statement: str


@dataclass(frozen=True, slots=True)
class Void:
    """What was told of a table's rows does not hold any more, and why. `gone`: nor does the shard have the table.
    `came`: it is new, and nothing was told of it yet."""

    table: TableId
    reason: str
    gone: bool = False
    came: bool = False

    def explained(self, faults: Mapping[TableId, str]) -> "Void":
        """The same with the reason why the stream sends no rows of the table as it is. `faults`: of tables that cannot
        be streamed."""
        if self.gone or self.table not in faults:
            return self
        return Void(self.table, f"{self.reason}; it cannot be streamed as it is: {faults[self.table]}")


@dataclass(frozen=True)
class Told:
    """What the log told, and the shard's state behind it. `groups`: GTID and time of each transaction.
    `shown`: a tick showed that position. `redefines`: DDL is among it. `event_time`: of the last transaction, in
    seconds since 1970; `held`: of the first one that was held back for its time. `log_bytes`: of all.
    `acted`: foreign keys may have changed rows."""

    state: ShardState
    shown: bool
    groups: GroupFacts
    changed: Sequence[Changed]
    altered: Sequence[Altered]
    voids: Sequence[Void]
    redefines: bool
    event_time: int
    held: int | None = None
    log_bytes: int = 0
    acted: bool = False

    @property
    def newest_time(self) -> int:
        """Of its transactions, in seconds since 1970; 0 without any. The last one may be older: times go back."""
        newest = pc.max(self.groups.table().column(TIMESTAMP)).cast(pa.timestamp("s", tz="UTC"))
        return newest.value or 0

    @property
    def tells(self) -> bool:
        """Whether there is anything that a client wants to hear of."""
        return bool(self.changed or self.altered or self.voids)


def advanced(work: Advance) -> Told:
    """Read the log. Raises CatchmentError; CutMissed where no group ends at `stop`: take another tick."""
    start, endpoint = work.state.position, work.endpoint
    must_be_unbroken(endpoint, start, work.resets)
    followed = Followed(work.known.names, work.state.definitions)
    at_start = Wanted.of(work.known.whole, work.state.definitions, before="full")
    wanted = at_start.along(followed)
    groups, family = (
        GroupFacts(),
        FamilyTurn(endpoint, work.state, work.shapes, work.view, untold=work.untold),
    )
    kept = KeptImages(endpoint.shard, work.known, work.state.copying)
    # A dump that stands has gone on from there since somebody compared the event in front.
    begins = start.at if work.dump is not None and work.dump.begun else start
    reader = read_log(endpoint, start.server, begins, work.stop, wanted, budget=work.budget, until=work.until)
    with reader.along(work.dump) as log:
        for piece in log:
            if isinstance(piece, EndedGroups):
                groups.add(piece.batch)
            else:
                kept.add(piece)
                family.add(piece)
    stretch = log.stretch
    unreadable = unread(endpoint.shard, stretch.facts) | followed.lost
    must_be_whole(endpoint.shard, start, None, stretch, unreadable)
    if stretch.held is not None and stretch.at == start.at:
        return _unmoved(work, groups, stretch)
    if work.stop is not None and not stretch.reached_stop and stretch.whole:
        raise CutMissed(
            f"shard {endpoint.shard}: the log ends at {stretch.at}, before {work.stop}; cut again"
        )
    events = tuple(followed.events.of(stretch.facts))
    stored = StoredAt(endpoint, start.server, start.at, stretch.at, events)
    redefines = any(isinstance(event.fact, Ddl) for event in events)
    went = went_through(endpoint.shard, work.known.names, stored, _EVOLVES)
    ends = commits(endpoint.shard, start.prepared, stretch.xa)
    # No DDL stands among rows that were prepared before.
    prepared = PreparedRows(endpoint, start.server, ends.earlier, at_start)
    for piece in prepared:
        kept.add(piece)
        family.add(piece)
    keyless = _without_keys(work, events, stretch.at) if redefines else ()
    stopped = {one.table: one for one in (*keyless, *went.stopped)}
    stopped |= kept.keyless | unreadable | prepared.unread
    altered = _altered(work, went.altered, events, stopped)
    there = existence(events, start)
    voids = _voids(work, stopped, there)
    children = family.followed(stretch, ends, events, {*stopped, *(one.table for one in voids)})
    for table, images in children.images.items():
        kept.add_silent(table, images)
    if children.stopped:
        stopped |= children.stopped
        altered = [one for one in altered if one.effect.table not in stopped]
        voids = _voids(work, stopped, there)
    void = {one.table for one in voids}
    changed = [one for one in kept.changed(stretch, ends) if one.table.id not in void]
    shown, sealed = stretch.reached_stop, work.state.sealed
    arrival = (
        passed(endpoint.shard, start, sealed, stretch)
        if work.stop is None
        else arrived(endpoint, start, sealed, stretch, stretch.at, shown=shown and work.shown)
    )
    state = ShardState(
        replace(arrival.position, resets=work.resets),
        arrival.sealed or work.state.sealed,
        _copies(work.state.copies, voids),
        _definitions(followed.now.values(), voids) if redefines or voids else work.state.definitions,
        children.keys,
    )
    return Told(
        state=_defined(work, state, voids),
        shown=shown,
        groups=groups,
        changed=changed,
        altered=[one for one in altered if one.effect.table not in void],
        voids=voids,
        redefines=redefines,
        event_time=stretch.event_time,
        held=stretch.held,
        log_bytes=stretch.group_bytes,
        acted=children.acted,
    )


def _unmoved(work: Advance, groups: GroupFacts, stretch: Stretch) -> Told:
    """Of a shard whose next transaction is held back."""
    return Told(
        state=work.state,
        shown=work.shown,
        groups=groups,
        changed=(),
        altered=(),
        voids=(),
        redefines=False,
        event_time=0,
        held=stretch.held,
        log_bytes=stretch.group_bytes,
    )


def _without_keys(work: Advance, events: Sequence[SchemaEvent], at: LogOffset) -> Iterator[Stopped]:
    """The tables of which an index was dropped that told their rows apart."""
    for shape in work.shapes.values():
        try:
            must_keep_keys(work.endpoint, work.state.position.server, [shape], events, at)
        except Unsupported as why:
            yield Stopped(shape.table, str(why))


def _altered(
    work: Advance, found: Iterable[Alteration], events: Sequence[SchemaEvent], stopped: dict[TableId, Stopped]
) -> list[Altered]:
    """What statements did to tables that go on.

    One that gave a column another definition stops its table: what the column was is not known for certain. So does
    each one while the table is copied: chunks are asked for by the columns that it had when its copy began. Where a
    rule has a SELECT, rows may have come to meet its condition.
    """
    texts = {event.group: event.fact.sql for event in events if isinstance(event.fact, Ddl)}
    altered = []
    for one in found:
        table, names = one.effect.table, ", ".join(said.column for said in one.effect.modified)
        if names:
            stopped.setdefault(table, Stopped(table, f"shard {work.endpoint.shard}: {REDEFINED} ({names})"))
        elif not one.effect.emptied and work.known.selects(table):
            stopped.setdefault(table, Stopped(table, f"shard {work.endpoint.shard}: {WHERE_SELECTED}"))
        elif table in work.state.copying:
            stopped.setdefault(table, Stopped(table, f"shard {work.endpoint.shard}: {WHILE_COPIED}"))
        altered.append(Altered(one.effect, one.group, texts.get(one.group, "")))
    return [one for one in altered if one.effect.table not in stopped]


def _voids(work: Advance, stopped: Mapping[TableId, Stopped], there: Existence) -> list[Void]:
    """Tables that went, came, or are to be copied again. It looks at those that the log says something of, and at those
    without a shape."""
    mine = work.state.known.by_table
    doubtful = mine.keys() - work.shapes.keys() | {*stopped, *there.there} & mine.keys()
    found = {}
    for table in mine if there.schemas_gone else doubtful:
        copy = mine[table]
        if not there.after(table, before=True):
            found[table] = Void(table, GONE, gone=True)
        elif table in stopped:
            found[table] = Void(table, stopped[table].reason)
        elif table not in work.shapes and copy != Copy(table):
            found[table] = Void(table, UNTOLD)
    for table, is_there in there.there.items():
        if is_there and table not in mine and work.chosen(table):
            found[table] = Void(table, COME, came=True)
    return [found[table] for table in sorted(found)]


def _copies(copies: tuple[Copy, ...], voids: Sequence[Void]) -> tuple[Copy, ...]:
    """The same object where none is void."""
    if not voids:
        return copies
    again = {void.table: void for void in voids}
    kept = [copy for copy in copies if copy.table not in again]
    kept += [Copy(void.table) for void in voids if not void.gone]
    return tuple(sorted(kept, key=lambda copy: copy.table))


def _definitions(known: Iterable[Definition], voids: Sequence[Void]) -> tuple[Definition, ...]:
    again = {void.table for void in voids}
    return tuple(one for one in known if one.table not in again)


def _defined(work: Advance, state: ShardState, voids: Sequence[Void]) -> ShardState:
    """The state with the definitions of tables that are copied again, where the log does not describe itself."""
    if all(void.gone for void in voids):
        return state
    return described_where_needed(work.endpoint, state)
