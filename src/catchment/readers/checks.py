"""What must hold of a stretch of log before its rows count, whoever reads it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from types import MappingProxyType
from typing import Final

from catchment.epoch.chain import must_continue
from catchment.epoch.seal import FILE_START, newest_sealed
from catchment.epoch.xa import hidden_from, prepared_after
from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError, CutMissed, IncompleteImage, SchemaChangeFails, Unsupported
from catchment.model.position import LogOffset, Position, Prepared, Server, Xid, gtids_after
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.treatment import Changes, SchemaChange
from catchment.readers.set_aside import BY_ORDER
from catchment.readers.unread import LACKS_COLUMNS
from catchment.schema.ddl import ADD_PLAIN, AGAIN, TRUNCATED, Columns, Stop
from catchment.schema.events import SchemaEvent, SchemaEvents, stops
from catchment.schema.filling import UNLOGGED
from catchment.schema.indexes import touch
from catchment.schema.judge import ByText
from catchment.schema.passage import Alteration, Stopped
from catchment.schema.redeclared import REDEFINED
from catchment.schema.statement import beginning
from catchment.source.catalog import read_table
from catchment.source.log import read_facts
from catchment.source.offsets import open_xa
from catchment.source.prove import sealed_behind
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.wire.log.facts import CutOff, Ddl, Incident, PartialImage, Unreadable

BY_TEXT: Final = "a statement that the log holds as text"
ROWS_ALONE: Final = "set binlog_format=ROW for every session"
NONE: Final[Mapping[TableId, Stopped]] = MappingProxyType({})


def must_be_whole(
    shard: str,
    start: Position,
    stop: LogOffset | None,
    stretch: Stretch,
    aside: Mapping[TableId, Stopped] = NONE,
) -> None:
    """Raise unless the stretch goes on where `start` stood, came to `stop` (if there is one) and lacks
    nothing. What it lacks of tables that orders set `aside` does not matter.

    Raises Diverged, CutMissed, IncompleteImage, Unsupported.
    """
    must_continue(shard, start, stretch.files[0].born if stretch.files else 0, stretch.first)
    if stop is not None and not stretch.reached_stop:
        raise CutMissed(
            f"shard {shard}: the log ends at {stretch.at}, before the planned {stop}; the epoch is "
            "planned again"
        )
    for fact in stretch.facts:
        if isinstance(fact, PartialImage) and fact.table not in aside:
            lacking = f"shard {shard}, {fact.table} at {fact.at}: {LACKS_COLUMNS}; then copy the table again"
            raise _at(fact.at, IncompleteImage(lacking))
        if isinstance(fact, Unreadable) and fact.table not in aside:
            raise _at(fact.at, Unsupported(f"shard {shard} at {fact.at}: {fact.why}"))
        if isinstance(fact, Incident) and fact.at not in {one.place for one in aside.values()}:
            lost = Unsupported(
                f"shard {shard} at {fact.at}: the server logged an incident: its log is incomplete; copy its tables "
                "again"
            )
            raise _at(fact.at, lost)
    _check_cut_off(shard, stretch)


def _at(place: LogOffset, error: CatchmentError) -> CatchmentError:
    """The error, of what stands at a place of the log."""
    error.place = str(place)
    return error


def _check_cut_off(shard: str, stretch: Stretch) -> None:
    """A group cut off at the end of a file is void only where the server crashed there. Then the next file says that a
    server start made it. Any other early end is an error to retry."""
    for fact in stretch.facts:
        if isinstance(fact, CutOff):
            names = [file.name for file in stretch.files]
            following = names.index(fact.at.file) + 1
            if following >= len(names) or stretch.files[following].created == 0:
                raise CutMissed(
                    f"shard {shard}: the log breaks off inside a group at {fact.at}; it is read again"
                )


def alterations(
    shard: str,
    chosen: Collection[TableId],
    stored: StoredAt,
    *,
    evolves: bool = True,
) -> list[Alteration]:
    """What DDL in a stretch of log did to the chosen tables' columns.

    Raises Unsupported where it cannot be followed, or may not (`evolves`), and where a statement may have changed rows.
    It does so where a column came with values, too, and for a TRUNCATE: the rows that these change are not in the log.
    """
    found = []
    for event, judged in judgements(shard, chosen, stored, stored.events, lambda table: evolves):
        if isinstance(judged, Unsupported):
            raise judged
        table = judged.effect.table
        if judged.effect.emptied:
            way_out = AGAIN.format(table=table)
            raise Unsupported(f"shard {shard}, {table} at {event.at}: {TRUNCATED}; {way_out}")
        if judged.effect.filled:
            way_out = ADD_PLAIN.format(table=table)
            raise Unsupported(f"shard {shard}, {table} at {event.at}: {UNLOGGED}; {way_out}")
        if judged.effect.modified or judged.effect.renamed:
            named = [one.column for one in judged.effect.modified] + [
                one.old for one in judged.effect.renamed
            ]
            raise Unsupported(
                f"shard {shard}, {table} at {event.at}: {REDEFINED} ({', '.join(dict.fromkeys(named))}); "
                + AGAIN.format(table=table)
            )
        found.append(judged)
    return found


@dataclass(frozen=True)
class WentThrough:
    """What DDL in a stretch of log did: columns that came and went, and tables that cannot be followed any more."""

    altered: list[Alteration]
    stopped: list[Stopped]


def went_through(
    shard: str,
    chosen: Collection[TableId],
    stored: StoredAt,
    changes: Changes,
    aside: Collection[LogOffset] = (),
    unseen: Collection[TableId] = (),
) -> WentThrough:
    """What DDL in a stretch of log did to the chosen tables, and which of them may have been changed by statements that
    it holds as text. `aside`: where statements stand that orders set aside. `unseen`: those of the tables that no
    reader sees.

    Raises SchemaChangeFails for tables whose policy is FAIL, and Unsupported for text of which it is not known what it
    changed: it might be any table.
    """
    altered: list[Alteration] = []
    stopped: dict[TableId, Stopped] = {}
    for event, judged in judgements(shard, chosen, stored, stored.events, changes.follows):
        if isinstance(judged, Unsupported):
            stopping = stops(event, chosen)
            did = stored.judged(event, chosen)
            if isinstance(did, ByText):
                if not (did.shown or event.at in aside or did.tables <= {*stopped, *unseen}):
                    raise _at(event.at, judged)
                what = f"{BY_TEXT} ({beginning(event.text.sql)})"
                advice = BY_ORDER if event.at in aside else ROWS_ALONE
                reason = f"shard {shard} at {event.at}: it may have been changed by {what}; {advice}"
                for table in did.tables:
                    stopped.setdefault(table, Stopped(table, reason, place=event.at))
                continue
            if not stopping or not all(changes.follows(stop.table) for stop in stopping):
                raise SchemaChangeFails(str(judged)) from None
            for stop in stopping:
                reason = f"shard {shard} at {event.at}: {stop.reason}"
                stopped.setdefault(stop.table, Stopped(stop.table, reason, event.at))
        elif changes.of(table := judged.effect.table) is SchemaChange.FREEZE:
            reason = f"shard {shard} at {event.at}: {_said(judged.effect)}, and schema_change is freeze"
            stopped.setdefault(table, Stopped(table, reason))
        else:
            altered.append(judged)
    return WentThrough([one for one in altered if one.effect.table not in stopped], list(stopped.values()))


def judgements(
    shard: str,
    chosen: Collection[TableId],
    stored: StoredAt,
    events: Iterable[SchemaEvent],
    evolves: Callable[[TableId], bool],
) -> Iterator[tuple[SchemaEvent, Alteration | Unsupported]]:
    """Each of `events`, some of those of `stored`, that altered a chosen table, or with the error by which it ends a
    run. `evolves`: whether DDL on a table may be followed.

    A statement that does so to several tables names the first one.
    """
    for event in events:
        did = stored.judged(event, chosen)
        if isinstance(did, ByText):
            who = did.table if did.shown else "chosen tables"
            error = Unsupported(
                f"shard {shard} at {event.at}: {who} may have been changed by {BY_TEXT} "
                f"({beginning(event.text.sql)}): {did.reason}; {did.way_out}"
            )
            yield event, error
        elif isinstance(did, Stop):
            yield event, Unsupported(f"shard {shard}, {did.table} at {event.at}: {did.reason}; {did.way_out}")
        elif isinstance(did, Columns) and not evolves(did.table):
            error = Unsupported(
                f"shard {shard}, {did.table} at {event.at}: {_said(did)}, and schema_change is fail; with "
                "schema_change: evolve in the feed file the next run follows it"
            )
            yield event, error
        elif isinstance(did, Columns):
            yield event, Alteration(did, event.group)


def _said(did: Columns) -> str:
    """`columns a, b were added, c dropped`, for a message."""
    if did.emptied:
        return TRUNCATED
    modified = tuple(one.column for one in did.modified)
    renamed = tuple(f"{one.old} to {one.new}" for one in did.renamed)
    parts = [(did.added, "added"), (did.dropped, "dropped"), (modified, "modified"), (renamed, "renamed")]
    return "columns were altered: " + ", ".join(
        f"{', '.join(names)} {verb}" for names, verb in parts if names
    )


def must_keep_keys(
    endpoint: Endpoint,
    server: Server,
    shapes: Iterable[TableShape],
    events: Sequence[SchemaEvent],
    at: LogOffset,
) -> None:
    """Raise Unsupported when an index was dropped that told the rows of a table apart; the log was read up to `at`.

    The statement names an index, but a shape has only the key's columns. So this asks the catalog: what it says now is
    at least as new as the statement. Suppose it names the same key, and no index was added behind the statement, up to
    the end of the log. Then an index of that key was there all the time.
    """
    touched = {shape: _touched(shape.table, events) for shape in shapes}
    dropped = {shape: found for shape, found in touched.items() if found}
    if not dropped:
        return
    with connect(endpoint, server) as session:
        for shape, found in dropped.items():
            try:
                key = read_table(session, shape.table).key
            except Unsupported:
                key = ()
            if key != shape.key:
                now = f"the table's key is ({', '.join(key)}) instead of ({', '.join(shape.key)}) since"
                raise _unkept(endpoint, shape.table, found[0].at, now)
    if any(touch(one, shape.table).drops_index for shape, found in dropped.items() for one in found):
        _must_not_come_back(endpoint, server, dropped, at)


def _touched(table: TableId, events: Iterable[SchemaEvent]) -> list[SchemaEvent]:
    """The statements on a table from the first one on that drops something of it."""
    ddl = (event for event in events if isinstance(event.fact, Ddl))
    return list(dropwhile(lambda event: not touch(event, table).drops, ddl))


def _must_not_come_back(
    endpoint: Endpoint, server: Server, dropped: Mapping[TableShape, list[SchemaEvent]], at: LogOffset
) -> None:
    """Raise Unsupported when a unique index was added behind a statement that dropped an index."""
    behind = SchemaEvents(shape.table for shape in dropped).of(read_facts(endpoint, server, at, None).facts)
    later = [event for event in behind if isinstance(event.fact, Ddl)]
    for shape, found in dropped.items():
        drops = [place for place, event in enumerate(found) if touch(event, shape.table).drops_index]
        since = [*found[drops[0] + 1 :], *later] if drops else []
        if any(touch(event, shape.table).adds_unique for event in since):
            drop = found[drops[0]]
            raise _unkept(endpoint, shape.table, drop.at, "a unique one was added later")


def _unkept(endpoint: Endpoint, table: TableId, at: LogOffset, what: str) -> Unsupported:
    return Unsupported(
        f"shard {endpoint.shard}, {table} at {at}: an index was dropped, and {what}: rows that the lake cannot tell "
        "apart may have been there"
    )


@dataclass(frozen=True)
class Arrival:
    """The verified position at which a stretch has arrived, and what is sealed there; None while nothing is."""

    position: Position
    sealed: LogOffset | None


def arrived(
    endpoint: Endpoint,
    start: Position,
    known: LogOffset | None,
    stretch: Stretch,
    at: LogOffset,
    *,
    shown: bool = True,
) -> Arrival:
    """Where a stretch from `start` to `at` has arrived; `known` was sealed at `start`.

    `shown`: snapshots have shown both ends of the stretch (epoch/seal.py).
    Raises Unsupported for an XA COMMIT of rows that are not known.
    """
    prepared = prepared_after(endpoint.shard, start.prepared, stretch.xa, known)
    # Asked after the log was read: of the commits met, those that it does not list are visible.
    committed = any(one.committed is not None for one in prepared)
    hidden = hidden_from(prepared, _recovered(endpoint, start) if committed else ())
    sealed = sealed_behind(endpoint, start, known, stretch, at, shown=shown, hidden=hidden)
    if committed and hidden is None and sealed == known and not start.server.mysql:
        sealed = _sealed_by_file(endpoint, start.server, known, at)
    return Arrival(
        _position(start, stretch, at, prepared_after(endpoint.shard, prepared, (), sealed)), sealed
    )


def passed(shard: str, start: Position, known: LogOffset | None, stretch: Stretch) -> Arrival:
    """The same without a question to the shard: only what checkpoint events prove is sealed beyond `known`, and no more
    while XA COMMITs were met that may not be visible."""
    prepared = prepared_after(shard, start.prepared, stretch.xa, known)
    sealed = known
    if all(one.committed is None for one in prepared):
        sealed = newest_sealed(known, start.at, stretch.at, None, stretch.checkpoints)
    return Arrival(_position(start, stretch, stretch.at, prepared), sealed)


def _position(start: Position, stretch: Stretch, at: LogOffset, prepared: tuple[Prepared, ...]) -> Position:
    return Position(
        at=at,
        born=stretch.files[-1].born if stretch.files else start.born,
        server=start.server,
        gtids=gtids_after(start.gtids, stretch.newest, stretch.named),
        prepared=prepared,
        event=stretch.last_event,
    )


def _sealed_by_file(
    endpoint: Endpoint, server: Server, known: LogOffset | None, at: LogOffset
) -> LogOffset | None:
    """The same by the checkpoint events of the newest file. One was no proof, and does not come again, while an XA
    COMMIT in front of it was hidden."""
    if known is None or known.file == at.file:
        return known
    again = read_facts(endpoint, server, LogOffset(at.file, FILE_START), at)
    return newest_sealed(known, at, at, None, again.checkpoints)


def _recovered(endpoint: Endpoint, start: Position) -> list[Xid]:
    with connect(endpoint, start.server) as session:
        return open_xa(session)
