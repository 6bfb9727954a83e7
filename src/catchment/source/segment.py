"""Reads a stretch of log: images for whoever wants them, and the facts that prove where the reader stands."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from catchment.model.definition import is_hidden
from catchment.model.errors import NEW_FEED, ConnectionLost, CorruptLog, CutMissed
from catchment.model.gtidset import GtidSet, UuidGtid
from catchment.model.position import (
    GroupKind,
    Gtid,
    LastEvent,
    LastGroup,
    LogOffset,
    Position,
    Server,
    XaGroup,
    reaches,
)
from catchment.model.source import Endpoint
from catchment.model.table import Table
from catchment.source.groups import Groups, Place
from catchment.source.log import dump
from catchment.source.offsets import snapshot_offset, snapshot_session
from catchment.source.session import connect
from catchment.source.wanted import Handlers, OnGroups, Wanted
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import Checkpoint, Fact, LogFile, XaEnd, XaPrepare

TAKE_BYTES = 8 << 20
_FILE_START = 4
# A server that sends nothing for so long is away: a dump never waits for rows or locks of tables.
_SILENT_SECONDS_MAX = 60
_DUMPS_MAX = 200  # to the end of the log; each takes some milliseconds to log in


@dataclass(frozen=True)
class Stretch:
    """What a reader met between its start and `at`.

    `files`: the log files met, in order. `first`: of MySQL, the GTID of the first group. `newest`: per domain the last
    GTID met; `newest_before`: the same without the last group. `named`: all GTIDs met, where the server is MySQL.
    `last_event` ends at `at`; None where it is not known. `boundary`: ordinal of the first
    group beyond the epoch that was asked for. `xa`: the groups that prepare or end XA transactions, in order.
    `event_time`: seconds since 1970 of the last group. `voids`: ranges of image sequence numbers that were undone.
    """

    at: LogOffset
    files: tuple[LogFile, ...]
    first: UuidGtid | None
    newest: dict[int, Gtid]
    newest_before: dict[int, Gtid]
    named: GtidSet
    last: LastGroup | None
    last_event: LastEvent | None
    boundary: int
    groups: int
    xa: tuple[XaGroup, ...]
    facts: tuple[Fact, ...]
    voids: list[tuple[int, int]]
    read_bytes: int
    event_time: int
    reached_stop: bool
    whole: bool

    @property
    def checkpoints(self) -> list[str]:
        """The files that checkpoint events name, in order (MariaDB)."""
        return [fact.file for fact in self.facts if isinstance(fact, Checkpoint)]


def read_facts(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset | Position,
    stop: LogOffset | None,
    *,
    budget: int | None = None,
    on_groups: OnGroups = lambda batch: None,
) -> Stretch:
    """As `read_stretch`, without any row: groups, files, statements and XA transactions."""
    return read_stretch(endpoint, server, start, stop, Wanted(), Handlers(on_groups=on_groups), budget=budget)


def read_stretch(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset | Position,
    stop: LogOffset | None,
    wanted: Wanted,
    handlers: Handlers,
    *,
    epoch: LogOffset | None = None,
    budget: int | None = None,
) -> Stretch:
    """Read the log from `start` to `stop`; without one, to where the log ends as of the call, or beyond.

    From a position, the event that ends there is read again, too: Diverged when it is another one than before.

    `epoch`: the offset whose groups `boundary` tells apart. `budget`: end with the first group by which so many bytes
    of log are read. The stretch is what lies before; images may come of later groups too. Opens and closes a session of
    its own.
    """
    decoder = LogDecoder(
        start.at if isinstance(start, Position) else start,
        set(wanted.keys),
        stop,
        keys=dict(wanted.keys),
        kinds=wanted.kinds,
        definitions=wanted.definitions,
        on_ddl=handlers.on_ddl,
        before=wanted.before,
        behind=start.event if isinstance(start, Position) else None,
    )
    groups = Groups(epoch, budget)

    def drain(decoder: LogDecoder, *, all_of_it: bool = False) -> bool:
        if not all_of_it and budget is None and decoder.pending_bytes < TAKE_BYTES:
            return False
        for images in decoder.take_images():
            handlers.on_images(*_without_hidden(images.table, images.batch))
        taken = groups.add(decoder.take_groups(), [file.name for file in decoder.files])
        if taken.num_rows:
            handlers.on_groups(taken)
        return groups.full

    size = _dump_files(endpoint, server, decoder, drain, to_the_end=stop is None)
    drain(decoder, all_of_it=True)
    return _stretch(endpoint.shard, decoder, groups, size)


def _dump_files(
    endpoint: Endpoint,
    server: Server | None,
    decoder: LogDecoder,
    drain: Callable[[LogDecoder], bool],
    *,
    to_the_end: bool,
) -> int:
    """Dump the log into the decoder, over files that a crash has cut off inside an event; bytes read.

    `to_the_end`: to where the log ends as of the call, or beyond. Raises CorruptLog when the file behind one that is
    cut off was not begun by a server start. Raises CutMissed when the server ends dumps before that end.
    """
    end = _visible_end(endpoint, server) if to_the_end else None
    size, at, crashed, dumps = 0, decoder.begins, False, 0
    while True:
        with connect(endpoint, server, read_seconds=_SILENT_SECONDS_MAX) as session:
            dumped = dump(session, at, decoder, drain)
        size += dumped.read_bytes
        if crashed:
            _must_follow_a_crash(endpoint, at.file, decoder.files)
        crashed = dumped.broken_off
        if crashed:
            at = LogOffset(_next_file(decoder.at), _FILE_START)
        elif not (to_the_end and decoder.ended) or _is_end(decoder, end, dumps):
            return size
        else:
            dumps += 1
            at = _going_on(endpoint, decoder, dumps)
            end = end and _lower(end, _visible_end(endpoint, server))
        decoder.resume()


def _visible_end(endpoint: Endpoint, server: Server | None) -> LogOffset | None:
    """A place at or behind the end of all that is visible now; None where the server has no word for that.

    MySQL tells where its log ends, visible or not, and waits for that behind whoever rotates the log.
    """
    if server is not None and server.mysql:
        return None
    with snapshot_session(endpoint, server) as session:
        return snapshot_offset(session) if session.mysql_version is None else None


def _is_end(decoder: LogDecoder, end: LogOffset | None, dumps: int) -> bool:
    """Whether a dump that has ended did so at the end of the log, after `dumps` others.

    A dump whose thread is killed, by KILL QUERY or a shutdown, ends with the packet that says end of log (MariaDB,
    mysql_binlog_send; MySQL, Binlog_sender::run). So MySQL has to say it twice in turn.
    """
    return dumps > 0 if end is None else reaches(decoder.at, end)


def _going_on(endpoint: Endpoint, decoder: LogDecoder, dumps: int) -> LogOffset:
    """Where the next dump is to start."""
    if decoder.in_group:
        raise ConnectionLost(
            f"shard {endpoint.shard}: the server ended a dump inside the group at {decoder.at}"
        )
    if dumps > _DUMPS_MAX:
        raise CutMissed(
            f"shard {endpoint.shard}: dumps of the log end at {decoder.at}, again and again, before it does: does "
            "somebody kill their sessions (SHOW PROCESSLIST)?"
        )
    return decoder.at


def _lower(end: LogOffset, now: LogOffset | None) -> LogOffset:
    """An end that was read while the log was rotated can lie beyond all there is: a later one corrects it."""
    return now if now is not None and reaches(end, now) else end


def _next_file(at: LogOffset) -> str:
    digits = at.file.rpartition(".")[2]
    return f"{at.base}.{at.number + 1:0{len(digits)}}"


def _must_follow_a_crash(endpoint: Endpoint, name: str, files: list[LogFile]) -> None:
    if any(file.name == name and file.created == 0 for file in files):
        raise CorruptLog(
            f"shard {endpoint.shard}: the log file before {name} breaks off inside an event, but no server "
            f"start began {name}: the log is damaged; start {NEW_FEED} to copy again"
        )


def _stretch(shard: str, decoder: LogDecoder, groups: Groups, size: int) -> Stretch:
    if not decoder.files:
        # So ends a dump whose thread is killed, by KILL QUERY or a shutdown, before it has sent a format event.
        raise ConnectionLost(f"shard {shard}: the server ended a dump before it had begun")
    at, files, last, last_event = decoder.at, tuple(decoder.files), decoder.last_group, decoder.last_event
    facts, reached_stop, ended = tuple(decoder.facts), decoder.reached_stop, decoder.ended
    if groups.full and groups.last is not None and groups.last != last:
        at, files, last = groups.last.end, files[: groups.last_file + 1], groups.last
        facts = tuple(fact for fact in facts if reaches(at, fact.at))
        reached_stop, ended, last_event = False, False, None
    return Stretch(
        at=at,
        files=files,
        first=groups.first,
        newest=groups.newest,
        newest_before=groups.newest_before,
        named=groups.named,
        last=last,
        last_event=last_event,
        boundary=groups.count if groups.boundary is None else groups.boundary,
        groups=groups.count,
        xa=_xa_groups(facts, groups.xa),
        facts=facts,
        voids=list(decoder.voids),
        read_bytes=size,
        event_time=groups.event_time,
        reached_stop=reached_stop,
        whole=reached_stop or ended,
    )


def _xa_groups(facts: tuple[Fact, ...], places: dict[int, Place]) -> tuple[XaGroup, ...]:
    found = []
    for fact in facts:
        if isinstance(fact, XaPrepare | XaEnd) and fact.group in places:
            place = places[fact.group]
            kind = GroupKind.XA_PREPARE if isinstance(fact, XaPrepare) else GroupKind.XA_END
            committed = isinstance(fact, XaEnd) and fact.committed
            found.append(
                XaGroup(kind, committed, fact.xid, place.start, place.end, fact.group, place.seconds)
            )
    return tuple(found)


def _without_hidden(table: Table, batch: pa.RecordBatch) -> tuple[Table, pa.RecordBatch]:
    """Without the hash columns that MariaDB keeps for a UNIQUE key over a BLOB: no SELECT shows them."""
    hidden = {column.name for column in table.columns if is_hidden(column.name)}
    if not hidden:
        return table, batch
    shown = tuple(column for column in table.columns if column.name not in hidden)
    names = [name for name in batch.schema.names if name not in hidden]
    return Table(table.id, shown, table.key), batch.select(names)
