"""Reads a shard's log from where a stream stands: what it tells of rows and tables, and where the shard stands then."""

import dataclasses
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
from catchment.readers.checks import arrived, must_be_whole, must_keep_keys, went_through
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
from catchment.source.definitions_at import definitions_needed
from catchment.source.dump import Opens
from catchment.source.identity import must_be_unbroken
from catchment.source.log import EndedGroups, read_log
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.view import View
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl

_EVOLVES: Final = Changes(SchemaChange.EVOLVE)
REDEFINED: Final = "a column was given another definition"
WHILE_COPIED: Final = "it was altered before all its rows were copied"
WHERE_SELECTED: Final = "it was altered, and a rule has a SELECT for it"
UNTOLD: Final = "the log is ahead of what it is by now, or it cannot be streamed as it is"
GONE: Final = "the table is gone"
COME: Final = "the table came"
SHARD_ADDED: Final = "the shard was added to the source"


@dataclass(frozen=True, slots=True)
class Advance:
    """A shard's log from `state` to `stop`, no more than `budget` bytes of it. `until`: nothing that was written
    later, in seconds since 1970 by the shard's clock.

    `known`: its tables. `shown`: a tick showed where it begins. `resets`: how often RESET was said, as of now.
    `chosen`: which tables are followed once they come. `opens`: sessions for dumps. `view`: of the shard in front of
    `state`, for what foreign keys do; None: there is none. `untold`: nobody is told of what the log holds.
    """

    endpoint: Endpoint
    state: ShardState
    shown: bool
    known: Known
    stop: LogOffset
    budget: int
    resets: Resets
    chosen: Callable[[TableId], bool]
    opens: Opens
    until: int | None = None
    view: View | None = None
    untold: bool = False

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


@dataclass(frozen=True)
class Told:
    """What the log told, and the shard's state behind it. `groups`: ordinal, GTID and time of each transaction.
    `shown`: a tick showed that position. `redefines`: DDL is among it. `event_time`: of the last transaction, in
    seconds since 1970; `held`: of the first one that was held back for its time. `log_bytes`: of all.
    `acted`: foreign keys may have changed rows."""

    state: ShardState
    shown: bool
    groups: pa.Table
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
        newest = pc.max(self.groups.column(TIMESTAMP)).cast(pa.timestamp("s", tz="UTC"))
        return newest.value or 0

    @property
    def tells(self) -> bool:
        """Whether there is anything that a client wants to hear of."""
        return bool(self.changed or self.altered or self.voids)


def advanced(work: Advance) -> Told:
    """Read the log. Raises CatchmentError; CutMissed where no group ends at `stop`: take another tick."""
    start, endpoint = work.state.position, work.endpoint
    must_be_unbroken(endpoint, start, work.resets)
    followed = Followed(work.shapes, work.state.definitions)
    wanted = Wanted.of(work.shapes.values(), work.state.definitions, before="full", on_ddl=followed.on_ddl)
    groups, family = (
        GroupFacts(),
        FamilyTurn(endpoint, work.state, work.shapes, work.view, untold=work.untold),
    )
    kept = KeptImages(endpoint.shard, work.known, work.state.copying)
    reader = read_log(endpoint, start.server, start, work.stop, wanted, budget=work.budget, until=work.until)
    with reader.through(work.opens) as log:
        for piece in log:
            if isinstance(piece, EndedGroups):
                groups.add(piece.batch)
            else:
                kept.add(piece)
                family.add(piece)
    stretch = log.stretch
    must_be_whole(endpoint.shard, start, None, stretch)
    if stretch.held is not None and stretch.at == start.at:
        return _unmoved(work, groups, stretch)
    if not stretch.reached_stop and stretch.whole:
        raise CutMissed(
            f"shard {endpoint.shard}: the log ends at {stretch.at}, before {work.stop}; cut again"
        )
    events = tuple(followed.events.of(stretch.facts))
    stored = StoredAt(endpoint, start.server, start.at, stretch.at, events)
    went = went_through(endpoint.shard, list(work.shapes), stored, _EVOLVES)
    ends = commits(endpoint.shard, start.prepared, stretch.xa)
    for piece in PreparedRows(endpoint, start.server, ends.earlier, _as_prepared(wanted)):
        kept.add(piece)
        family.add(piece)
    stopped = {one.table: one for one in (*_without_keys(work, events, stretch.at), *went.stopped)}
    stopped |= kept.keyless
    altered = _altered(work, went.altered, events, stopped)
    there = existence(events, start)
    unfollowed = {*stopped, *(one.table for one in _voids(work, stopped, there))}
    children = family.followed(stretch, ends, events, unfollowed)
    for table, images in children.images.items():
        kept.add_silent(table, images)
    stopped |= children.stopped
    altered = [one for one in altered if one.effect.table not in stopped]
    voids = _voids(work, stopped, there)
    void = {one.table for one in voids}
    changed = [one for one in kept.changed(stretch, ends) if one.table.id not in void]
    shown = stretch.reached_stop
    arrival = arrived(endpoint, start, work.state.sealed, stretch, stretch.at, shown=shown and work.shown)
    state = ShardState(
        replace(arrival.position, resets=work.resets),
        arrival.sealed or work.state.sealed,
        _copies(work.state.copies, voids),
        _definitions(followed.now.values(), voids),
        children.keys,
    )
    return Told(
        state=_defined(work, state, voids),
        shown=shown,
        groups=groups.table(),
        changed=changed,
        altered=[one for one in altered if one.effect.table not in void],
        voids=voids,
        redefines=any(isinstance(event.fact, Ddl) for event in events),
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
        groups=groups.table(),
        changed=(),
        altered=(),
        voids=(),
        redefines=False,
        event_time=0,
        held=stretch.held,
        log_bytes=stretch.group_bytes,
    )


def _as_prepared(wanted: Wanted) -> Wanted:
    """The same for rows that were prepared before: no DDL stands among them."""
    return dataclasses.replace(wanted, on_ddl=None)


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
    """Tables that went, came, or are to be copied again."""
    mine = {copy.table: copy for copy in work.state.copies}
    found = {}
    for table, copy in mine.items():
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


def _copies(copies: Sequence[Copy], voids: Sequence[Void]) -> tuple[Copy, ...]:
    again = {void.table: void for void in voids}
    kept = [copy for copy in copies if copy.table not in again]
    kept += [Copy(void.table) for void in voids if not void.gone]
    return tuple(sorted(kept, key=lambda copy: copy.table))


def _definitions(known: Iterable[Definition], voids: Sequence[Void]) -> tuple[Definition, ...]:
    again = {void.table for void in voids}
    return tuple(one for one in known if one.table not in again)


def _defined(work: Advance, state: ShardState, voids: Sequence[Void]) -> ShardState:
    """The state with the definitions of tables that are copied again, where the log does not describe itself."""
    again = [void.table for void in voids if not void.gone]
    if not again:
        return state
    found = definitions_needed(work.endpoint, state.position, again)
    return replace(state, definitions=(*state.definitions, *found))
