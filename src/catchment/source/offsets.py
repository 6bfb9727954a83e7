"""Reading where a shard's log stands, without waiting for commits."""

from collections.abc import Mapping
from typing import Any

from catchment.model.errors import SourceError
from catchment.model.position import LogOffset, Resets, Server, Xid
from catchment.model.source import Endpoint
from catchment.source.session import Session, connect


def snapshot_session(endpoint: Endpoint, expected: Server | None = None) -> Session:
    """A session for `snapshot_offset`: a consistent snapshot is one in REPEATABLE READ only (MariaDB manual)."""
    return connect(endpoint, expected, read_seconds=10, snapshots=True)


def snapshot_offset(session: Session) -> LogOffset:
    """The log offset that belongs to a consistent snapshot taken now (MariaDB manual: START TRANSACTION).

    It is taken on credit: right within a file, it runs ahead of what SELECT shows at a rotation or a
    checkpoint event (DESIGN 3). SHOW MASTER STATUS is not used: it waits behind a large commit.

    MySQL has nothing of that kind: there it is the end of the log, see `log_end`.
    """
    if session.mysql_version is not None:
        return log_end(session)
    offset = begun_snapshot(session)
    session.run("ROLLBACK")
    return offset


def begun_snapshot(session: Session) -> LogOffset:
    """Begin a consistent snapshot in the session, which stays; the log offset that belongs to it (MariaDB)."""
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    rows = session.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")
    values = {str(name).lower(): str(value) for name, value in rows}
    file, offset = values.get("binlog_snapshot_file", ""), values.get("binlog_snapshot_position", "0")
    if not file:
        raise _log_is_off(session.endpoint)
    return LogOffset(file, int(offset))


def log_end(session: Session) -> LogOffset:
    """Where the log ends, visible or not: the end of a group.

    MySQL waits while the events of other groups are written to the log (it takes LOCK_log), but neither for their fsync
    nor for their commit. Reading performance_schema.log_status stops writers besides.
    """
    row = log_status(session)
    if row is None:
        raise _log_is_off(session.endpoint)
    return LogOffset(str(row[0]), int(row[1]))


def log_status(session: Session) -> tuple[Any, ...] | None:
    """What the server says of its log: file, offset, binlog_do_db, binlog_ignore_db; None when the log is off."""
    renamed = session.mysql_version is not None and session.mysql_version >= (8, 2)
    return session.row("SHOW BINARY LOG STATUS" if renamed else "SHOW MASTER STATUS")


def _log_is_off(endpoint: Endpoint) -> SourceError:
    return SourceError(f"shard {endpoint.shard}: the binary log is off; start the server with log_bin")


def log_files(session: Session) -> dict[str, int]:
    """The log files that the server still has and their sizes in bytes, oldest first."""
    return {str(name): int(size) for name, size, *_ in session.rows("SHOW BINARY LOGS")}


def log_bytes(session: Session, start: LogOffset, stop: LogOffset) -> int:
    """Bytes of log between two places; 0 where `stop` lies before `start`."""
    return bytes_between(log_files(session) if start.file != stop.file else {}, start, stop)


def bytes_between(sizes: Mapping[str, int], start: LogOffset, stop: LogOffset) -> int:
    """The same, by the sizes of log files, as `log_files` has them."""
    between = stop.offset - start.offset
    if start.file != stop.file:
        numbers = {name: LogOffset(name, 0).number for name in sizes}
        between += sum(
            sizes[name] for name, number in numbers.items() if start.number <= number < stop.number
        )
    return max(between, 0)


def open_xa(session: Session) -> list[Xid]:
    """XIDs that are prepared and neither committed nor rolled back."""
    how = "" if session.mysql_version is None else " CONVERT XID"
    return [_xid(*row) for row in session.rows(f"XA RECOVER{how}")]


def _xid(format_id: int, gtrid: int, bqual: int, data: bytes | str) -> Xid:
    """From bytes of any kind (MariaDB), or from `0x` and hexadecimal digits (MySQL)."""
    name = data if isinstance(data, bytes) else bytes.fromhex(data.removeprefix("0x"))
    return Xid(format_id, name[:gtrid], name[gtrid : gtrid + bqual])


def ask_resets(session: Session) -> Resets:
    """How often RESET was said so far. A row a statement: a global sql_select_limit cuts what SHOW answers.

    MySQL has no table of the Com_ counters (MySQL manual: Performance Schema Status Variable Tables).
    """
    resets, uptime = (session.row("SHOW GLOBAL STATUS LIKE %s", (name,)) for name in ("Com_reset", "Uptime"))
    row = session.row("SELECT UNIX_TIMESTAMP()")
    if resets is None or uptime is None or row is None:
        raise SourceError(
            f"shard {session.endpoint.shard}: the server does not tell Com_reset and Uptime, by which a reset of its "
            "log is noticed"
        )
    now = int(row[0])
    return Resets(int(resets[1]), now - int(uptime[1]), now)


def kept_seconds(session: Session) -> float | None:
    """How long the server keeps its log files, in seconds; None when age does not purge them."""
    rows = session.rows(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
        "('binlog_expire_logs_seconds', 'expire_logs_days', 'binlog_expire_logs_auto_purge')"
    )
    settings = {str(name): str(value) for name, value in rows}
    if settings.pop("binlog_expire_logs_auto_purge", "ON") == "OFF":
        return None
    values = {name: float(value) for name, value in settings.items()}
    seconds = values.get("binlog_expire_logs_seconds") or values.get("expire_logs_days", 0.0) * 86_400
    return seconds or None
