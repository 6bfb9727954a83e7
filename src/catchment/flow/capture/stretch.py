"""Reading a stretch of log: images to whoever wants them, and the facts that prove where the reader
stands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.flow.capture.connect import connect, identify, must_be, mysql_version
from catchment.flow.capture.log import dump
from catchment.flow.capture.offsets import snapshot_offset, snapshot_session
from catchment.model.definition import HIDDEN, Definition
from catchment.model.errors import NEW_FEED, ConnectionLost, CorruptLog, CutMissed
from catchment.model.gtidset import GtidSet, UuidGtid, uuid_text
from catchment.model.position import GroupKind, Gtid, LastGroup, LogOffset, Server, XaGroup, reaches
from catchment.model.source import Endpoint
from catchment.model.table import Kind, Table, TableId
from catchment.wire.facts import Ddl, Fact, LogFile, XaEnd, XaPrepare
from catchment.wire.log import LogDecoder

TAKE_BYTES = 8 << 20
_FILE_START = 4
_DUMPS_MAX = 200  # to the end of the log; each takes some milliseconds to log in

OnImages = Callable[[Table, pa.RecordBatch], None]
OnDdl = Callable[[Ddl], Mapping[TableId, Definition | None]]
OnGroups = Callable[[pa.RecordBatch], None]
_Columns = dict[str, "np.ndarray[tuple[int], np.dtype[np.int64]]"]
_KINDS = tuple(GroupKind)
_XA = np.array([_KINDS.index(GroupKind.XA_PREPARE), _KINDS.index(GroupKind.XA_END)], dtype=np.uint8)
_Place = tuple[LogOffset, LogOffset, int]


@dataclass(frozen=True)
class Stretch:
    """What a reader met between its start and `at`.

    `files`: the log files met, in order. `newest`: per domain the last GTID met; `newest_before`: the same
    without the last group. `named`: all GTIDs met, where the server is MySQL. `boundary`: ordinal of the first
    group beyond the epoch that was asked for. `xa`: the groups that prepare or end XA transactions, in order.
    `event_time`: seconds since 1970 of the last group. `voids`: ranges of image sequence numbers that were undone.
    """

    at: LogOffset
    files: tuple[LogFile, ...]
    first: Gtid | UuidGtid | None
    newest: dict[int, Gtid]
    newest_before: dict[int, Gtid]
    named: GtidSet
    last: LastGroup | None
    boundary: int
    groups: int
    xa: tuple[XaGroup, ...]
    facts: tuple[Fact, ...]
    voids: list[tuple[int, int]]
    read_bytes: int
    event_time: int
    reached_stop: bool
    whole: bool


@dataclass
class _Groups:
    """Sums up the batches of groups as they come, up to the first that ends `budget` bytes of log or more
    behind the start."""

    epoch: LogOffset | None
    budget: int | None = None
    count: int = 0
    bytes: int = 0
    last: LastGroup | None = None
    last_file: int = 0
    boundary: int | None = None
    first: Gtid | UuidGtid | None = None
    named: GtidSet = field(default_factory=GtidSet)
    newest: dict[int, Gtid] = field(default_factory=dict)
    newest_before: dict[int, Gtid] = field(default_factory=dict)
    xa: dict[int, _Place] = field(default_factory=dict)
    event_time: int = 0

    @property
    def full(self) -> bool:
        return self.budget is not None and self.bytes >= self.budget

    def add(self, batch: pa.RecordBatch, files: list[str]) -> pa.RecordBatch:
        """Take the batch, or as much of it as the budget allows; what was taken."""
        batch = self._within_budget(batch)
        if batch.num_rows == 0:
            return batch
        column = {
            field.name: batch.column(field.name).to_numpy()
            for field in batch.schema
            if pa.types.is_integer(field.type)
        }
        self._named(batch)
        self._gtids(column)
        if self.epoch is not None and self.boundary is None:
            numbers = np.array([LogOffset(name, 0).number for name in files], dtype=np.int64)[column["file"]]
            beyond = (numbers > self.epoch.number) | (
                (numbers == self.epoch.number) & (column["end"] > self.epoch.offset)
            )
            if beyond.any():
                self.boundary = int(column["ordinal"][int(np.argmax(beyond))])
        for row in np.flatnonzero(np.isin(column["kind"], _XA)):
            self.xa[int(column["ordinal"][row])] = _place(column, int(row), files)
        # Not the number of rows: a group that was cut off has an ordinal and no row.
        self.count = int(column["ordinal"][-1]) + 1
        self.event_time = int(column["timestamp"][-1])
        self.last_file = int(column["file"][-1])
        start, end, _ = _place(column, -1, files)
        kind = _KINDS[int(column["kind"][-1])]
        self.last = LastGroup(start, end, kind, _gtid(column, -1))
        return batch

    def _within_budget(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes = np.cumsum(batch.column("end").to_numpy() - batch.column("start").to_numpy()) + self.bytes
        if self.budget is not None:
            sizes = sizes[: 0 if self.full else int(np.searchsorted(sizes, self.budget)) + 1]
        self.bytes = int(sizes[-1]) if len(sizes) else self.bytes
        return batch.slice(0, len(sizes))

    def _gtids(self, column: _Columns) -> None:
        if self.first is None:
            self.first = _gtid(column, 0)
        last = len(column["domain"]) - 1
        domains, newest = np.unique(column["domain"][:last][::-1], return_index=True)
        for domain, row in zip(domains, newest, strict=True):
            self.newest[int(domain)] = _gtid(column, last - 1 - int(row))
        self.newest_before = dict(self.newest)
        self.newest[int(column["domain"][last])] = _gtid(column, last)

    def _named(self, batch: pa.RecordBatch) -> None:
        """The GTIDs of MySQL; a batch has few origins and, mostly, one run of numbers for each."""
        named = batch.select(["uuid", "tag", "sequence"]).filter(pc.is_valid(batch.column("uuid")))
        if named.num_rows == 0:
            return
        (uuids, ids), (tags, marks) = (_coded(named.column(name)) for name in ("uuid", "tag"))
        numbers = named.column("sequence").to_numpy()
        if self.first is None and batch.column("uuid")[0].is_valid:
            self.first = UuidGtid(_uuid(uuids[ids[0]]), tags[marks[0]] or "", int(numbers[0]))
        found = []
        for code in np.unique(ids * len(tags) + marks):
            mine = np.unique(numbers[(ids * len(tags) + marks) == code])
            breaks = np.flatnonzero(np.diff(mine) != 1)
            firsts, lasts = mine[np.r_[0, breaks + 1]], mine[np.r_[breaks, len(mine) - 1]]
            origin = _uuid(uuids[code // len(tags)]), tags[code % len(tags)] or ""
            found += [(*origin, (int(a), int(b))) for a, b in zip(firsts, lasts, strict=True)]
        self.named = self.named.union(GtidSet.of(found))


def _coded(column: pa.Array) -> tuple[list[Any], Any]:
    """The distinct values of a column, null among them, and which one each row has."""
    coded = column.dictionary_encode(null_encoding="encode")
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _uuid(octets: bytes) -> str:
    return uuid_text(octets.hex())


def _gtid(column: _Columns, row: int) -> Gtid:
    return Gtid(int(column["domain"][row]), int(column["server_id"][row]), int(column["sequence"][row]))


def _place(column: _Columns, row: int, files: list[str]) -> _Place:
    """Start, end and time of a group."""
    file = files[int(column["file"][row])]
    start, end = LogOffset(file, int(column["start"][row])), LogOffset(file, int(column["end"][row]))
    return start, end, int(column["timestamp"][row])


def read_facts(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset,
    stop: LogOffset | None,
    *,
    budget: int | None = None,
    on_groups: OnGroups = lambda batch: None,
) -> Stretch:
    """As `read_stretch`, without any row: groups, files, statements and XA transactions."""
    return read_stretch(
        endpoint,
        server,
        start,
        stop,
        keys={},
        before="key",
        on_images=lambda table, batch: None,
        budget=budget,
        on_groups=on_groups,
    )


def read_stretch(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset,
    stop: LogOffset | None,
    *,
    keys: Mapping[TableId, tuple[str, ...]],
    kinds: Mapping[TableId, Mapping[str, Kind]] | None = None,
    definitions: Mapping[TableId, Definition] | None = None,
    on_ddl: OnDdl | None = None,
    before: Literal["full", "key"],
    on_images: OnImages,
    epoch: LogOffset | None = None,
    budget: int | None = None,
    on_groups: OnGroups = lambda batch: None,
) -> Stretch:
    """Read the log from `start` to `stop`; without one, to where the log ends as of the call, or beyond.

    `keys`: the chosen tables and their key columns; images of others are skipped. `kinds`: their columns that
    the log declares as BINARY and the catalog as something else (types.logged_as_binary). `definitions` (at the
    start) and `on_ddl`: what a log without full metadata leaves out, as wire/log.pyi has it. `before`: "full" images,
    or the "key" where that is all that is needed. `epoch`: the offset whose groups `boundary` tells apart.
    Opens and closes a session of its own.

    `budget`: end with the first group by which so many bytes of log are read; the stretch is what lies
    before, images may come of later groups too. `on_groups` is handed the groups (wire.groups.SCHEMA).
    """
    decoder = LogDecoder(
        start,
        set(keys),
        stop,
        keys=dict(keys),
        kinds=kinds,
        definitions=definitions,
        on_ddl=on_ddl,
        before=before,
    )
    groups = _Groups(epoch, budget)

    def drain(decoder: LogDecoder, *, all_of_it: bool = False) -> bool:
        if not all_of_it and budget is None and decoder.pending_bytes < TAKE_BYTES:
            return False
        for images in decoder.take_images():
            on_images(*_without_hidden(images.table, images.batch))
        taken = groups.add(decoder.take_groups(), [file.name for file in decoder.files])
        if taken.num_rows:
            on_groups(taken)
        return groups.full

    size = _dump_files(endpoint, server, start, decoder, drain, to_the_end=stop is None)
    drain(decoder, all_of_it=True)
    return _stretch(decoder, groups, size)


def _dump_files(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset,
    decoder: LogDecoder,
    drain: Callable[[LogDecoder], bool],
    *,
    to_the_end: bool,
) -> int:
    """Dump the log into the decoder, over files that a crash has cut off inside an event; bytes read.

    `to_the_end`: to where the log ends as of the call, or beyond. Raises CorruptLog when the file behind one that is
    cut off was not begun by a server start, CutMissed when the server ends dumps before that end.
    """
    end = _visible_end(endpoint, server) if to_the_end else None
    size, at, crashed, dumps = 0, start, False, 0
    while True:
        connection = connect(endpoint)
        try:
            if server is not None:
                must_be(identify(connection, endpoint), server, endpoint)
            read, broken_off = dump(connection, endpoint, at, decoder, drain)
        finally:
            connection._force_close()  # type: ignore[attr-defined]
        size += read
        if crashed:
            _must_follow_a_crash(endpoint, at.file, decoder.files)
        crashed = broken_off
        if broken_off:
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
    connection = snapshot_session(endpoint)
    try:
        if server is not None:
            must_be(identify(connection, endpoint), server, endpoint)
        return snapshot_offset(connection, endpoint) if mysql_version(connection) is None else None
    finally:
        connection.close()


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


def _stretch(decoder: LogDecoder, groups: _Groups, size: int) -> Stretch:
    at, files, last = decoder.at, tuple(decoder.files), decoder.last_group
    facts, reached_stop, ended = tuple(decoder.facts), decoder.reached_stop, decoder.ended
    if groups.full and groups.last is not None and groups.last != last:
        at, files, last = groups.last.end, files[: groups.last_file + 1], groups.last
        facts = tuple(fact for fact in facts if reaches(at, fact.at))
        reached_stop = ended = False
    return Stretch(
        at=at,
        files=files,
        first=groups.first,
        newest=groups.newest,
        newest_before=groups.newest_before,
        named=groups.named,
        last=last,
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


def _xa_groups(facts: tuple[Fact, ...], places: dict[int, _Place]) -> tuple[XaGroup, ...]:
    found = []
    for fact in facts:
        if isinstance(fact, XaPrepare | XaEnd) and fact.group in places:
            start, end, seconds = places[fact.group]
            kind = GroupKind.XA_PREPARE if isinstance(fact, XaPrepare) else GroupKind.XA_END
            committed = isinstance(fact, XaEnd) and fact.committed
            found.append(XaGroup(kind, committed, fact.xid, start, end, fact.group, seconds))
    return tuple(found)


def _without_hidden(table: Table, batch: pa.RecordBatch) -> tuple[Table, pa.RecordBatch]:
    """Without the hash columns that MariaDB keeps for a UNIQUE key over a BLOB: no SELECT shows them."""
    hidden = {column.name for column in table.columns if column.name.startswith(HIDDEN)}
    if not hidden:
        return table, batch
    shown = tuple(column for column in table.columns if column.name not in hidden)
    names = [name for name in batch.schema.names if name not in hidden]
    return Table(table.id, shown, table.key), batch.select(names)
