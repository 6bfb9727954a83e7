"""The groups of a shard's log, as mysql-replication reads them. Shares no code with catchment.

A log is read once for all who listen: reading takes most of a judge's time.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from tests.world.canonical import Row, canonical_row
from tests.world.status_vars import know_newer_variables

know_newer_variables()

# Flags of MariaDB's GTID event: a group of one event; the end of an XA transaction.
_STANDALONE, _COMPLETED = 1, 0x80
_SAVEPOINT = re.compile(
    r"(SAVEPOINT|ROLLBACK TO)\s+(?:SAVEPOINT\s+)?`?(.*?)`?\s*$", re.IGNORECASE | re.DOTALL
)
_XA_BEGIN = re.compile(r"XA\s+(?:START|END)\s+(\S+)\s*$", re.IGNORECASE)


class OracleError(AssertionError):
    """The log holds what the oracle does not understand, or no group ends where it was told to stop."""


class Place(NamedTuple):
    """A place in the log; ordered, since the names of a log's files sort by their numbers up to 999999."""

    file: str
    offset: int


class Change(NamedTuple):
    """A row's image before and behind, canonical (tests/world/canonical.py)."""

    table: str
    before: Row | None
    after: Row | None


class Prepared(NamedTuple):
    """The changes of an XA transaction, which count when it is committed."""

    xid: str
    changes: list[Change]


Done: TypeAlias = list[Change] | Prepared | QueryEvent


class Group(NamedTuple):
    """Where a group ends and what it did; None for the start of a file."""

    end: Place
    done: Done | None


class LogGroups:
    """The groups of one shard's log from a place on, for all who listen.

    `login` are PyMySQL's host, port, user and password; `wanted` says whether a table's (`schema.table`) changes are.
    """

    def __init__(self, login: Mapping[str, Any], wanted: Callable[[str], bool], at: Place) -> None:
        self._login = dict(login)
        self._wanted = wanted
        self._read_to = at
        self._listeners: list[deque[Group]] = []
        self._lock = threading.Lock()

    def listen(self, ahead: Iterable[Group] = ()) -> deque[Group]:
        """What is read from now on, behind what the caller has ahead, for it to take out."""
        listener = deque(ahead)
        self._listeners.append(listener)
        return listener

    def read(self, target: Place) -> None:
        """Read on to the end of the log, unless the target was read already. Raises OracleError in front of it."""
        with self._lock:
            if self._read_to >= target:
                return
            try:
                for group in self._groups():
                    self._read_to = max(self._read_to, group.end)
                    for listener in self._listeners:
                        listener.append(group)
            except OracleError:
                # What stands behind the target is looked at, and refused, when somebody wants to know of it.
                if self._read_to < target:
                    raise

    def _groups(self) -> Iterator[Group]:
        """All at once: each dump takes two logins and a look at every table, and a judge asks for many places."""
        file, open_one = self._read_to.file, _OpenGroup()
        reader = log_reader(self._login, self._read_to)
        try:
            for event in reader:
                if isinstance(event, RotateEvent):
                    file = event.next_binlog
                    yield Group(Place(file, event.position), None)
                elif (done := open_one.take(event, self._wanted)) is not None:
                    # an event's header tells the offset of the next event (binary log format: end_log_pos)
                    yield Group(Place(file, event.packet.log_pos), done)
        finally:
            reader.close()


def log_reader(login: Mapping[str, Any], at: Place) -> BinLogStreamReader:
    """The events of a log from a place on, up to its end as it is now."""
    # is_mariadb=True would ignore file and offset; a plain dump of MariaDB's log is read without it
    return BinLogStreamReader(
        connection_settings=dict(login),
        server_id=0,  # never killed by, and kills, no other dump
        log_file=at.file,
        log_pos=at.offset,
        resume_stream=True,
        blocking=False,
        only_events=[
            RotateEvent,
            MariadbGtidEvent,
            GtidEvent,
            QueryEvent,
            XidEvent,
            XAPrepareEvent,
            WriteRowsEvent,
            UpdateRowsEvent,
            DeleteRowsEvent,
        ],
        enable_logging=False,
    )


class _OpenGroup:
    """Collects the changes of one group."""

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, flags: int) -> None:
        self._flags = flags
        self._changes: list[Change] = []
        self._savepoints: list[tuple[str, int]] = []
        self._xid = ""

    def take(self, event: Any, wanted: Callable[[str], bool]) -> Done | None:
        """Add an event; returns the group's changes, or its DDL, when the event ends it."""
        if isinstance(event, MariadbGtidEvent):
            self._begin(event.flags)
        elif isinstance(event, GtidEvent):
            self._begin(_STANDALONE)  # of MySQL; a BEGIN or XA START says that it is not
        elif isinstance(event, XAPrepareEvent):
            return self._changes if event.one_phase else Prepared(self._xid, self._changes)
        elif isinstance(event, XidEvent):
            return self._changes
        elif isinstance(event, QueryEvent):
            return self._take_query(event)
        elif wanted(table := f"{event.schema}.{event.table}"):
            self._changes.extend(_changes(table, event))
        return None

    def _take_query(self, event: QueryEvent) -> Done | None:
        query = text_of(event.query)
        if query.upper() == "BEGIN" or query.upper().startswith("XA START "):
            self._flags = 0
        # CREATE ... SELECT: its rows follow in the transaction, and before it the table was not there.
        if query.upper() == "BEGIN" or (
            query.upper().startswith("CREATE TABLE ") and not self._flags & _STANDALONE
        ):
            return None
        if self._flags & (_STANDALONE | _COMPLETED):
            return event
        if (named := _XA_BEGIN.match(query)) is not None:
            self._xid = named[1]
            return None
        if query.upper() == "COMMIT":
            return self._changes
        if query.upper() == "ROLLBACK":
            return []
        match = _SAVEPOINT.match(query)
        if match is None:
            raise OracleError(f"a transaction holds a statement that the oracle does not know: {query[:200]}")
        self._mark(match[1].upper(), match[2].replace("``", "`").casefold())
        return None

    def _mark(self, verb: str, name: str) -> None:
        if verb == "SAVEPOINT":  # one of the same name is replaced
            self._savepoints = [mark for mark in self._savepoints if mark[0] != name]
            self._savepoints.append((name, len(self._changes)))
            return
        names = [mark[0] for mark in self._savepoints]
        if name not in names:
            raise OracleError(f"ROLLBACK TO `{name}` without its SAVEPOINT")
        place = names.index(name)
        del self._changes[self._savepoints[place][1] :]
        del self._savepoints[place + 1 :]


def _changes(table: str, event: Any) -> list[Change]:
    return [
        Change(table, canonical_row(before) if before else None, canonical_row(after) if after else None)
        for before, after in images_of(event)
    ]


def images_of(event: Any) -> list[tuple[Row | None, Row | None]]:
    """The rows of an event before and after, as mysql-replication gives them."""
    if isinstance(event, UpdateRowsEvent):
        return [(row["before_values"], row["after_values"]) for row in event.rows]
    if isinstance(event, DeleteRowsEvent):
        return [(row["values"], None) for row in event.rows]
    return [(None, row["values"]) for row in event.rows]


def text_of(value: Any) -> str:
    """What mysql-replication gives as bytes or as text."""
    return value.decode() if isinstance(value, bytes) else str(value)
