"""A MariaDB server as far as a feed can see one: a log in files, rows that become visible behind it, and what both say.

`histories` is what the checker believes: one for each log, of which a RESET begins another.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.world.sim import binlog
from tests.world.sim.history import Change, Group, History, Place, Rows, change

START_SECONDS = 1_763_784_727
_FILE_START = 4
_OF_FILES = {binlog.FORMAT, binlog.GTID_LIST, binlog.CHECKPOINT, binlog.ROTATE, binlog.STOP}
SCHEMA = "shop"


@dataclass
class Table:
    """`columns`: all BIGINT, the first one the key."""

    name: str
    columns: tuple[str, ...] = ("id", "v")
    visible: Rows = field(default_factory=dict)
    logged: Rows = field(default_factory=dict)


@dataclass
class LogFile:
    """`starts`: where its events begin. `base`: its name without the number."""

    number: int
    born: int
    base: str
    data: bytearray = field(default_factory=lambda: bytearray(b"\xfebin"))
    starts: list[int] = field(default_factory=list)
    closed: bool = False

    @property
    def name(self) -> str:
        return f"{self.base}.{self.number:06}"


class Refused(Exception):
    """The server says no: its number and its words."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Server:
    """One shard's server. `now` gives the time in seconds; time that passes makes logged groups visible."""

    def __init__(self, name: str, server_id: int, rng: random.Random, now: Callable[[], float]) -> None:
        self.name = name
        self.server_id = server_id
        self.rng = rng
        self._now = now
        self.tables = {"t": Table("t"), "u": Table("u")}
        self.histories = [History({})]
        self.strict = rng.random() < 0.5  # gtid_strict_mode
        self.prepared: dict[bytes, tuple[Change, ...]] = {}
        self.files: list[LogFile] = []
        self.started = 0.0
        self.resets = 0
        self.session_age = 0
        # What happens just before rows are read, and behind that, when their log is still to be read.
        self.before_select: Callable[[], object] = lambda: None
        self.behind_select: Callable[[], object] = lambda: None
        self.up = True
        self.kills_dumps = True
        # By how many seconds its clock is ahead of the simulation's, and by how many its log is behind its primary.
        self.ahead = self.lag = 0.0
        # Whether each restart comes with another base name of the log (log_bin), of which these are the ones.
        self.renames = False
        self._bases = ("binlog", "other")
        self.snapshot: Place = (0, 0)
        self.pending: list[Group] = []
        self._late: list[tuple[Group, bytes]] = []
        self._ending: set[bytes] = set()
        self._sequence = 0
        self._xid = 99
        self._table_number = 17
        self._checkpointed = 0
        self._begin_file(created=True)

    @property
    def history(self) -> History:
        """Of the log as it is now."""
        return self.histories[-1]

    # The clock and the log.

    def seconds(self) -> int:
        """Seconds since 1970 by its clock."""
        return START_SECONDS + int(self._now() + self.ahead)

    @property
    def start_seconds(self) -> int:
        """Seconds since 1970 of its start."""
        return START_SECONDS + int(self.started + self.ahead)

    def end(self) -> Place:
        """Where the log ends, visible or not."""
        file = self.files[-1]
        return file.number, len(file.data)

    def file_name(self, number: int) -> str:
        """The name of a file that the server has."""
        return next(file.name for file in self.files if file.number == number)

    def last_group(self) -> Place:
        """Where the last group of the log ends; its beginning where it holds none."""
        groups = self.history.groups
        return groups[-1].end if groups else (0, 0)

    def _write(self, kind: int, body: bytes, flags: int = 0) -> int:
        file = self.files[-1]
        at = len(file.data)
        file.starts.append(at)
        seconds = self.seconds() if kind in _OF_FILES else self.written()
        file.data += binlog.event(kind, body, at=at, seconds=seconds, server_id=self.server_id, flags=flags)
        return at

    def written(self) -> int:
        """When what comes into the log now was written, in seconds since 1970: a replica has the time of its primary.

        The clocks of both differ from the simulation's by the same."""
        return START_SECONDS + int(self._now() + self.ahead - self.lag)

    def _begin_file(self, *, created: bool = False) -> None:
        number = self.files[-1].number + 1 if self.files else 1
        self.files.append(LogFile(number, self.seconds(), self._bases[0]))
        self.history.born[number] = self.seconds()
        self._write(binlog.FORMAT, binlog.format_body(self.seconds() if created else 0))
        known = [(0, self.server_id, self._sequence)] if self._sequence else []
        self._write(binlog.GTID_LIST, binlog.gtid_list_body(known))
        self._checkpoint()

    def _checkpoint(self) -> None:
        """Say from which file on a recovery would have to read: groups of earlier files are all in the engine."""
        oldest = min([group.end[0] for group in self.pending], default=self.files[-1].number)
        self._checkpointed = oldest
        self._write(binlog.CHECKPOINT, binlog.checkpoint_body(self.file_name(oldest)))
        self.snapshot = self.end()  # it runs ahead of what SELECT shows

    # What becomes visible.

    def settle(self) -> None:
        """Show the groups whose time has come, in the order of the log."""
        while self.pending and self.pending[0].visible_at <= self._now():
            self._show(self.pending.pop(0))

    def _show(self, group: Group) -> None:
        if group.late is not None:
            group.visible_at = self._now() + group.late
            self._late.append((group, group.xid))
        else:
            self._apply(group)
            group.shown = True
        # After a rotation the old offset stands beside the new file's name, until the next commit: torn.
        self.snapshot = (self.files[-1].number, group.end[1])
        if self._checkpointed < self.files[-1].number and all(
            g.end[0] == self.files[-1].number for g in self.pending
        ):
            self._checkpoint()

    def _apply(self, group: Group) -> None:
        for table, key, row in group.changes:
            change(self.tables[table].visible, key, row)

    # What clients do.

    def locked(self) -> set[tuple[str, int]]:
        """Rows that a transaction has locked that is not over."""
        held = [group.changes for group in self.pending] + list(self.prepared.values())
        return {(table, key) for changes in held for table, key, _ in changes}

    def commit(self, changes: tuple[Change, ...], hold: float) -> None:
        """A transaction: logged now, visible `hold` seconds later, and not before those that were logged before."""
        start = self._begin_group(binlog.TRANSACTIONAL)
        self._rows(changes)
        self._xid += 1
        self._write(binlog.XID, self._xid.to_bytes(8, "little"))
        self._log(Group(start, self.end(), changes, self._now() + hold))

    def prepare(self, xid: bytes, changes: tuple[Change, ...]) -> None:
        """XA PREPARE: rows stand in the log, and count when they are committed."""
        start = self._begin_group(binlog.TRANSACTIONAL | binlog.PREPARED, xid)
        self._rows(changes, logged=False)
        self._write(binlog.XA_PREPARE, binlog.xa_prepare_body(xid))
        self.prepared[xid] = changes
        self._log(Group(start, self.end(), (), self._now(), xid=xid))

    def end_xa(self, xid: bytes, *, commit: bool, hold: float) -> None:
        """XA COMMIT or XA ROLLBACK. It passes in the order of the log, its rows become visible `hold` seconds later."""
        changes = self.prepared[xid] if commit else ()
        start = self._begin_group(binlog.STANDALONE | binlog.COMPLETED, xid)
        verb = "COMMIT" if commit else "ROLLBACK"
        self._write(binlog.QUERY, binlog.query_body("", f"XA {verb} X'{xid.hex()}',X'',1"))
        for table, key, row in changes:
            change(self.tables[table].logged, key, row)
        group = Group(start, self.end(), changes, self._now(), xid=xid, late=hold)
        self._ending.add(xid)
        self._log(group)

    def add_column(self, table: str, column: str) -> None:
        """ALTER TABLE ... ADD COLUMN ... NULL, when no transaction is open."""
        start = self._begin_group(binlog.STANDALONE | binlog.DDL)
        sql = f"ALTER TABLE {table} ADD COLUMN {column} BIGINT NULL"
        self._write(binlog.QUERY, binlog.query_body(SCHEMA, sql))
        one = self.tables[table]
        one.columns = (*one.columns, column)
        one.visible = {key: (*row, None) for key, row in one.visible.items()}
        one.logged = {key: (*row, None) for key, row in one.logged.items()}
        self._table_number += 1
        self._note(Group(start, self.end(), (), self._now(), shown=True, adds=(table, column)))
        self.snapshot = self.end()

    def truncate(self, table: str, *, parts: bool) -> None:
        """TRUNCATE, of the table or of all its `parts`, when no transaction is open on the table."""
        said = f"ALTER TABLE {table} TRUNCATE PARTITION ALL" if parts else f"TRUNCATE TABLE {table}"
        start = self._begin_group(binlog.STANDALONE | binlog.DDL)
        self._write(binlog.QUERY, binlog.query_body(SCHEMA, said))
        self.tables[table].visible = {}
        self.tables[table].logged = {}
        self._table_number += 1
        self._note(Group(start, self.end(), (), self._now(), shown=True, empties=table, parts=parts))
        self.snapshot = self.end()

    def rotate(self) -> None:
        """FLUSH BINARY LOGS."""
        file = self.files[-1]
        self._write(binlog.ROTATE, binlog.rotate_body(f"{file.base}.{file.number + 1:06}", _FILE_START))
        file.closed = True
        self._begin_file()

    def restart(self, *, crash: bool, cut_off: bool = False, lost: tuple[Change, ...] = ()) -> None:
        """The server ends and begins again: what was logged is visible then; a crash may leave a group without
        its end, whose rows are `lost`.
        """
        if crash and cut_off:
            self._begin_group(binlog.TRANSACTIONAL)
            self._rows(lost, logged=False)
            self._sequence -= 1
        elif not crash:
            self._write(binlog.STOP, b"")
        self.files[-1].closed = True
        for group in [*(group for group, _ in self._late), *self.pending]:
            self._apply(group)
            group.shown = True
        self.pending.clear()
        self._late.clear()
        for xid in self._ending:
            self.prepared.pop(xid, None)
        self._ending.clear()
        self.started = self._now()
        self.resets = 0
        self.session_age += 1
        self._table_number += 3
        if self.renames:
            self._bases = self._bases[::-1]
        self._begin_file(created=True)

    def reset(self, *, ends_sessions: bool) -> None:
        """RESET MASTER: the log begins anew under the same names."""
        self.settle_all()
        self.history.end = self.end()
        self.histories.append(History({name: dict(table.logged) for name, table in self.tables.items()}))
        self.files.clear()
        self._sequence = 0
        self._checkpointed = 0
        self.resets += 1
        self.session_age += ends_sessions
        self._begin_file(created=True)

    def flush(self) -> None:
        """RESET QUERY CACHE, which is counted with those of the log."""
        self.resets += 1

    def purge(self, number: int) -> None:
        """PURGE BINARY LOGS TO a file: older ones go, but those that a recovery needs."""
        kept = min(
            number, self._checkpointed, *(group.start[0] for group in self.pending), self.files[-1].number
        )
        self.files = [file for file in self.files if file.number >= kept]
        self.history.kept = self.files[0].number

    @property
    def open_xa(self) -> list[bytes]:
        """Transactions that are prepared and that nobody has ended."""
        return [xid for xid in self.prepared if xid not in self._ending]

    def settle_all(self) -> None:
        """Show all that is logged."""
        for group in self.pending:
            group.visible_at = 0.0
        self.settle()
        for group, xid in list(self._late):
            group.visible_at = 0.0
            self._show_late(group, xid)

    def settle_late(self) -> None:
        """Show the XA COMMITs whose time has come."""
        for group, xid in list(self._late):
            if group.visible_at <= self._now():
                self._show_late(group, xid)

    def _show_late(self, group: Group, xid: bytes) -> None:
        self._apply(group)
        group.shown = True
        self.prepared.pop(xid, None)
        self._ending.discard(xid)
        self._late.remove((group, xid))

    def _begin_group(self, flags: int, xid: bytes = b"") -> Place:
        self._sequence += 1
        number = self.files[-1].number
        return number, self._write(binlog.GTID, binlog.gtid_body(self._sequence, 0, flags, xid))

    def _log(self, group: Group) -> None:
        if self.pending:
            group.visible_at = max(group.visible_at, self.pending[-1].visible_at)
        self._note(group)
        self.pending.append(group)
        self.settle()

    def _note(self, group: Group) -> None:
        group.seconds, group.logged_at = self.written(), self._now()
        self.history.groups.append(group)

    def _rows(self, changes: tuple[Change, ...], *, logged: bool = True) -> None:
        for number, (table, key, row) in enumerate(changes):
            one = self.tables[table]
            before = one.logged.get(key)
            mapped = self._table_number + list(self.tables).index(table)
            self._write(binlog.TABLE_MAP, binlog.table_map_body(mapped, SCHEMA, table, one.columns))
            if row is None and before is None:
                raise AssertionError("a row that is not there cannot be deleted")
            kind = binlog.DELETE if row is None else binlog.WRITE if before is None else binlog.UPDATE
            images = [image for image in (before, row) if image is not None]
            last = number == len(changes) - 1
            self._write(kind, binlog.rows_body(mapped, len(one.columns), [images], last=last))
            if logged:
                change(one.logged, key, row)

    def load(self, rows: dict[str, Rows]) -> None:
        """Rows that were there before the log began."""
        self.history.loaded = rows
        for name, content in rows.items():
            self.tables[name].visible = dict(content)
            self.tables[name].logged = dict(content)

    # What a dump sends.

    def dump(self, name: str, offset: int, *, stands: bool) -> Iterator[bytes]:
        """The payloads of a dump's packets, up to the end of the log as of when it is reached; raises Refused. One that
        `stands` goes on when the log does: empty payloads say that there is nothing yet."""
        numbers = [file.number for file in self.files if file.name == name]
        if not numbers:
            raise Refused(1236, "Could not find first log file name in binary log index file")
        number, age, history = numbers[0], self.session_age, self.history
        while True:
            if self.history is not history:
                raise Refused(1236, "could not find next log")
            file = next((file for file in self.files if file.number == number), None)
            if file is None or self.session_age != age:
                raise ConnectionResetError
            yield from self._head(file, offset)
            at = offset
            while True:
                if self.session_age != age or not self.up:
                    raise ConnectionResetError
                if at >= len(file.data):
                    if not stands or file.closed or not self._rests(history, number, at):
                        break
                    yield b""
                    continue
                if self.kills_dumps and self.rng.random() < 0.001:  # KILL QUERY, said to its thread
                    yield b"\xfe\0\0\2\0"
                    return
                size = int.from_bytes(file.data[at + 9 : at + 13], "little")
                yield b"\0" + bytes(file.data[at : at + size])
                at += size
            if not file.closed:
                yield b"\xfe\0\0\2\0"
                return
            number, offset = number + 1, _FILE_START

    def _rests(self, history: History, number: int, at: int) -> bool:
        """Whether a dump that stands at the end of a file waits there. After a RESET it does as long as the new file of
        that number, which it does not read, is no longer than its own (seen: MariaDB 10.11)."""
        newest = self.files[-1]
        return self.history is history or (newest.number == number and len(newest.data) <= at)

    def _head(self, file: LogFile, offset: int) -> Iterator[bytes]:
        """What a dump begins with in a file; raises Refused where no event begins there."""
        if offset > _FILE_START and offset not in file.starts and offset != len(file.data):
            raise Refused(1236, "Client requested master to start replication from impossible position")
        yield self._artificial(binlog.ROTATE, binlog.rotate_body(file.name, offset))
        if offset > _FILE_START:
            body = binlog.format_body(0)
            yield b"\0" + binlog.event(
                binlog.FORMAT, body, at=None, seconds=file.born, server_id=self.server_id
            )

    def _artificial(self, kind: int, body: bytes) -> bytes:
        made = binlog.event(kind, body, at=None, seconds=0, server_id=self.server_id, flags=binlog.ARTIFICIAL)
        return b"\0" + made
