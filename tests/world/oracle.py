"""Judge one: what the tables hold at a place in a shard's log, by replaying the log with mysql-replication.

Shares no code with catchment. Heeds ROLLBACK TO SAVEPOINT, groups that end in ROLLBACK, and XA.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import pymysql
from pymysqlreplication.event import QueryEvent

from tests.world.canonical import Key, Row, canonical_row, key_of
from tests.world.log_groups import Change, Done, LogGroups, OracleError, Place, Prepared, text_of

State: TypeAlias = dict[str, dict[Key, Row]]

_OUTSIDE_GROUPS = {"Format_desc", "Gtid_list", "Binlog_checkpoint", "Previous_gtids", "Rotate", "Stop"}
_ALTER = re.compile(r"\s*ALTER\s+TABLE\s+(?:`?(\w+)`?\.)?`?(\w+)`?\s+(.*)", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"(?:RENAME\s+COLUMN\s+(\w+)\s+TO|CHANGE\s+(?:COLUMN\s+)?(\w+))\s+(\w+)", re.IGNORECASE)
_DEFAULT = re.compile(
    r"ADD\s+COLUMN\s+(\w+)\s+\w+(?:\([\d,]+\))?(?:\s+NOT\s+NULL)?\s+DEFAULT\s+('[^']*'|-?[\d.]+|CURRENT_TIMESTAMP)",
    re.IGNORECASE,
)
_COLUMN = re.compile(r"(ADD|DROP)\s+COLUMN\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?`?(\w+)`?", re.IGNORECASE)
_XA_END = re.compile(r"XA\s+(COMMIT|ROLLBACK)\s+(\S+)\s*$", re.IGNORECASE)
_EMPTIES = re.compile(
    r"\s*(?:TRUNCATE(?:\s+TABLE)?|DROP\s+TABLE(?:\s+IF\s+EXISTS)?)\s+(?:`?(\w+)`?\.)?`?(\w+)`?", re.IGNORECASE
)
_RESTS_MAX = 3


class ByLog(Protocol):
    """What the tables of one shard hold, by its log. `Oracle` says more of each."""

    @property
    def state(self) -> State:
        """Rows by their keys, by tables, where `advance` has come to."""

    def advance(self, file: str, offset: int) -> State:
        """Move on to a place of the log."""

    def touched_since(self, file: str, offset: int) -> Mapping[str, set[Key]]:
        """By tables, the keys that the log has behind a place."""


class Oracle:
    """The state of some tables of one shard, moved along its log by `advance`.

    `login` are PyMySQL's host, port, user and password; `keys` maps the tables to follow, as `schema.table`,
    to their key columns. `state[table]` maps keys to rows, canonical (tests/world/canonical.py).
    """

    def __init__(self, login: Mapping[str, Any], keys: Mapping[str, Sequence[str]], at: Place) -> None:
        self.at = at
        self.state: State = {table: {} for table in keys}
        self._login = dict(login)
        self._keys = {table: tuple(key) for table, key in keys.items()}
        self._touched: list[tuple[Place, str, Key]] = []
        self._prepared: dict[str, list[Change]] = {}
        # Where events of purged files lie: start, kind, end.
        self._purged: dict[str, list[tuple[int, str, int]]] = {}
        self._log = LogGroups(login, self._wanted, at)
        self._ahead = self._log.listen()

    @classmethod
    def from_birth(cls, login: Mapping[str, Any], keys: Mapping[str, Sequence[str]]) -> "Oracle":
        """Start at the first log file of a server that still has it, with empty tables."""
        (first, *_), *_ = _select(login, "SHOW BINARY LOGS")
        if not first.endswith(".000001"):
            raise OracleError(f"the log begins at {first}: rows of earlier files are unknown; use from_rest")
        return cls(login, keys, Place(first, 4))

    @classmethod
    def from_rest(cls, login: Mapping[str, Any], keys: Mapping[str, Sequence[str]]) -> "Oracle":
        """Start from rows SELECTed now; nobody may write meanwhile (checked by the end of the log)."""
        at = Place(*_end_of_log(login))
        for _ in range(_RESTS_MAX):
            oracle = cls(login, keys, at)
            for table, key in oracle._keys.items():
                rows = (canonical_row(row) for row in _select_rows(login, table))
                oracle.state[table] = {key_of(row, key): row for row in rows}
            at = Place(*_end_of_log(login))
            if at == oracle.at:
                return oracle
            # MariaDB writes a checkpoint some time after a new file of the log: then the rows are read once more.
        raise OracleError(f"somebody wrote while the base was read: the log went from {oracle.at} to {at}")

    def beside(self) -> "Oracle":
        """Another one that stands here and moves by itself. The log is read once for both."""
        other = copy(self)
        other.state, other._touched, other._prepared = self.snapshot(), [*self._touched], {**self._prepared}
        other._ahead = self._log.listen(self._ahead)
        return other

    def advance(self, file: str, offset: int) -> State:
        """Replay up to a place and return `state`; raises OracleError unless it lies between two groups."""
        target = Place(file, offset)
        if target < self.at:
            raise OracleError(f"cannot go back from {self.at} to {target}; take a snapshot() before")
        if target > self.at:
            self._replay(target)
        return self.state

    def advance_to_end(self) -> State:
        """Replay up to the end of the log as it is now; nobody should be writing."""
        return self.advance(*_end_of_log(self._login))

    def remember(self) -> None:
        """Read the log to its end, and where its events lie: files of it are to be purged."""
        self._log.read(Place(*_end_of_log(self._login)))
        for file, *_ in _select(self._login, "SHOW BINARY LOGS"):
            self._purged[file] = self._events(file, 4)

    def touched_since(self, file: str, offset: int) -> dict[str, set[Key]]:
        """Per table, the keys touched by groups that end after a place, up to `at`; undone rows are none."""
        since: dict[str, set[Key]] = {table: set() for table in self._keys}
        first = bisect_right(self._touched, Place(file, offset), key=itemgetter(0))
        for _, table, key in self._touched[first:]:
            since[table].add(key)
        return since

    def snapshot(self) -> State:
        """A copy of the state that later `advance`s leave alone."""
        return deepcopy(self.state)

    def _replay(self, target: Place) -> None:
        self._log.read(target)
        while self._ahead and self._ahead[0].end <= target:
            end, done = self._ahead.popleft()
            if done is not None:
                self._apply(done, end)
            self.at = max(self.at, end)
        self._check_arrival(target)

    def _check_arrival(self, target: Place) -> None:
        """Between the last group and the target only events of no group may stand (rotation, checkpoint)."""
        if self.at == target:
            return
        passed = self.at.offset if self.at.file == target.file else 4
        arrived = target.offset == passed
        for start, kind, end in self._events(target.file, passed):
            # MariaDB 11.8 shows 0 as the end of what a transaction wrote in its cache first.
            if start < target.offset and kind not in _OUTSIDE_GROUPS:
                raise OracleError(f"no group ends at {target}: a {kind} event stands at {start} to {end}")
            arrived = arrived or end == target.offset
        if not arrived:
            raise OracleError(f"no event ends at {target}")
        self.at = target

    def _events(self, file: str, behind: int) -> list[tuple[int, str, int]]:
        there = {name for name, *_ in _select(self._login, "SHOW BINARY LOGS")}
        if file not in there:
            return [event for event in self._purged[file] if event[0] >= behind]
        found = _select(self._login, f"SHOW BINLOG EVENTS IN '{file}' FROM {behind}")
        return [(start, kind, end) for _, start, kind, _, end, _ in found]

    def _wanted(self, table: str) -> bool:
        return table in self._keys

    def _apply(self, done: Done, end: Place) -> None:
        if isinstance(done, Prepared):
            self._prepared[done.xid] = done.changes
            return
        if isinstance(done, QueryEvent):
            ended = _XA_END.match(text_of(done.query))
            if ended is None:
                self._define(done)
                return
            done = self._prepared.pop(ended[2])
            if ended[1].upper() == "ROLLBACK":
                return
        for table, before, after in done:
            rows, key = self.state[table], self._keys[table]
            if before is not None:
                old = key_of(before, key)
                known = rows.pop(old, None)
                if known != before:
                    there = known or {}
                    columns = sorted(before.keys() | there.keys())
                    differing = {
                        c: (before.get(c), there.get(c)) for c in columns if before.get(c) != there.get(c)
                    }
                    raise OracleError(
                        f"before image of {table} {old} at {end} is not the row known, "
                        f"{'of which there is none' if known is None else f'but for {differing}'}"
                    )
                self._touched.append((end, table, old))
            if after is not None:
                new = key_of(after, key)
                if new in rows:
                    raise OracleError(f"{table} {new} is inserted at {end} and was there already")
                rows[new] = dict(after)  # others who listen to the log have the image, too
                self._touched.append((end, table, new))

    def _define(self, event: QueryEvent) -> None:
        """DDL: ADD COLUMN (nullable, or with a default that is a literal or the time), DROP COLUMN, RENAME COLUMN,
        CHANGE that leaves values as they are, TRUNCATE, DROP TABLE."""
        query, schema = text_of(event.query), text_of(event.schema)
        if alter := _ALTER.match(query):
            rows = self.state.get(f"{alter[1] or schema}.{alter[2]}", {})
            defaults = {
                column: _default(value, event.timestamp) for column, value in _DEFAULT.findall(alter[3])
            }
            for renamed, changed, new in _NAMED.findall(alter[3]):
                for row in rows.values():
                    row[new] = row.pop(renamed or changed)
            for verb, column in _COLUMN.findall(alter[3]):
                for row in rows.values():
                    row.pop(column, None)
                    if verb.upper() == "ADD":
                        row[column] = defaults.get(column)
        elif emptied := _EMPTIES.match(query):
            self.state.get(f"{emptied[1] or schema}.{emptied[2]}", {}).clear()


def _default(text: str, began: int) -> Any:
    if text.upper() == "CURRENT_TIMESTAMP":
        return datetime.fromtimestamp(began, UTC).replace(tzinfo=None)
    return text[1:-1] if text.startswith("'") else Decimal(text)


def _connect(login: Mapping[str, Any]) -> "pymysql.connections.Connection[pymysql.cursors.Cursor]":
    return pymysql.connect(
        **login, charset="utf8mb4", autocommit=True, init_command="SET time_zone = '+00:00'"
    )


def _select(login: Mapping[str, Any], query: str) -> list[tuple[Any, ...]]:
    with _connect(login) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def _end_of_log(login: Mapping[str, Any]) -> Place:
    ((version,),) = _select(login, "SELECT VERSION()")
    newer = "MariaDB" not in version and int(version.split(".")[0]) > 8
    (file, offset, *_), *_ = _select(login, f"SHOW {'BINARY LOG' if newer else 'MASTER'} STATUS")
    return Place(file, offset)


def _select_rows(login: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    with _connect(login) as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return list(cursor.fetchall())
