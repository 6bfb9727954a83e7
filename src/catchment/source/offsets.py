"""Reading where a shard's log stands, without waiting for commits."""

import pymysql
from pymysql.connections import Connection

from catchment.model.errors import SourceError
from catchment.model.position import LogOffset, Resets, Server, Xid
from catchment.model.source import Endpoint
from catchment.source.session import Session, connect, mapped, mysql_version


def snapshot_session(endpoint: Endpoint, expected: Server | None = None) -> Session:
    """A session for `snapshot_offset`: a consistent snapshot is one in REPEATABLE READ only (MariaDB manual)."""
    return connect(endpoint, expected, read_seconds=10, snapshots=True)


def snapshot_offset(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> LogOffset:
    """The log offset that belongs to a consistent snapshot taken now (MariaDB manual: START TRANSACTION).

    It is taken on credit: right within a file, it runs ahead of what SELECT shows at a rotation or a
    checkpoint event (DESIGN 3). SHOW MASTER STATUS is not used: it waits behind a large commit.

    MySQL has nothing of that kind: there it is the end of the log, see `log_end`.
    """
    version = mysql_version(connection)
    if version is not None:
        return log_end(connection, endpoint, version)
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        values = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        cursor.execute("ROLLBACK")
    file, offset = values.get("binlog_snapshot_file", ""), values.get("binlog_snapshot_position", "0")
    if not file:
        raise _log_is_off(endpoint)
    return LogOffset(file, int(offset))


def log_end(
    connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, version: tuple[int, ...]
) -> LogOffset:
    """Where MySQL's log ends, visible or not: the end of a group.

    Waits while the events of other groups are written to the log (it takes LOCK_log), but neither for their
    fsync nor for their commit; performance_schema.log_status stops writers besides.
    """
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS" if version >= (8, 2) else "SHOW MASTER STATUS")
        row = cursor.fetchone()
    if row is None:
        raise _log_is_off(endpoint)
    return LogOffset(str(row[0]), int(row[1]))


def _log_is_off(endpoint: Endpoint) -> SourceError:
    return SourceError(f"shard {endpoint.shard}: the binary log is off; start the server with log_bin")


def log_files(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> dict[str, int]:
    """The log files that the server still has and their sizes in bytes, oldest first."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return {str(name): int(size) for name, size, *_ in cursor.fetchall()}


def open_xa(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> list[Xid]:
    """XIDs that are prepared and neither committed nor rolled back."""
    how = "" if mysql_version(connection) is None else " CONVERT XID"
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute(f"XA RECOVER{how}")
        return [_xid(*row) for row in cursor.fetchall()]


def _xid(format_id: int, gtrid: int, bqual: int, data: bytes | str) -> Xid:
    """From bytes of any kind (MariaDB), or from `0x` and hexadecimal digits (MySQL)."""
    name = data if isinstance(data, bytes) else bytes.fromhex(data.removeprefix("0x"))
    return Xid(format_id, name[:gtrid], name[gtrid : gtrid + bqual])


def ask_resets(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> Resets:
    """How often RESET was said so far. A row a statement: a global sql_select_limit cuts what SHOW answers.

    MySQL has no table of the Com_ counters (MySQL manual: Performance Schema Status Variable Tables).
    """
    said = {}
    with mapped(endpoint), connection.cursor() as cursor:
        for name in ("Com_reset", "Uptime"):
            cursor.execute("SHOW GLOBAL STATUS LIKE %s", (name,))
            said[name] = cursor.fetchone()
        cursor.execute("SELECT UNIX_TIMESTAMP()")
        row = cursor.fetchone()
    resets, uptime = said["Com_reset"], said["Uptime"]
    if resets is None or uptime is None or row is None:
        raise SourceError(
            f"shard {endpoint.shard}: the server does not tell Com_reset and Uptime, by which a reset of its "
            "log is noticed"
        )
    now = int(row[0])
    return Resets(int(resets[1]), now - int(uptime[1]), now)


def kept_seconds(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> float | None:
    """How long the server keeps its log files, in seconds; None when age does not purge them."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
            "('binlog_expire_logs_seconds', 'expire_logs_days', 'binlog_expire_logs_auto_purge')"
        )
        settings = {str(name): str(value) for name, value in cursor.fetchall()}
    if settings.pop("binlog_expire_logs_auto_purge", "ON") == "OFF":
        return None
    values = {name: float(value) for name, value in settings.items()}
    seconds = values.get("binlog_expire_logs_seconds") or values.get("expire_logs_days", 0.0) * 86_400
    return seconds or None
