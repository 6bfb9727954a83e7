"""Reading where a shard's log stands, without waiting for commits."""

import pymysql
from pymysql.connections import Connection

from catchment.flow.capture.connect import connect, mapped
from catchment.model.errors import SourceError
from catchment.model.position import LogOffset, Resets
from catchment.model.source import Endpoint


def snapshot_session(endpoint: Endpoint) -> "Connection[pymysql.cursors.Cursor]":
    """A session for `snapshot_offset`: a consistent snapshot is one in REPEATABLE READ only (MariaDB manual).

    A global sql_select_limit would cut off what SHOW answers, too (seen on 10.11).
    """
    connection = connect(endpoint, read_seconds=10)
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute(
            "SET SESSION tx_isolation = 'REPEATABLE-READ', lock_wait_timeout = 5, "
            f"sql_select_limit = {2**64 - 1}"
        )
    return connection


def snapshot_offset(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> LogOffset:
    """The log offset that belongs to a consistent snapshot taken now (MariaDB manual: START TRANSACTION).

    It is taken on credit: right within a file, it runs ahead of what SELECT shows at a rotation or a
    checkpoint event (DESIGN 3). SHOW MASTER STATUS is not used: it waits behind a large commit.
    """
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        values = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        cursor.execute("ROLLBACK")
    file, offset = values.get("binlog_snapshot_file", ""), values.get("binlog_snapshot_position", "0")
    if not file:
        raise SourceError(f"shard {endpoint.shard}: the binary log is off; start the server with log_bin")
    return LogOffset(file, int(offset))


def log_files(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> dict[str, int]:
    """The log files that the server still has and their sizes in bytes, oldest first."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return {str(name): int(size) for name, size, *_ in cursor.fetchall()}


def open_xa(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> list[str]:
    """XIDs that are prepared and neither committed nor rolled back."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute("XA RECOVER")
        return [str(row[3]) for row in cursor.fetchall()]


def ask_resets(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> Resets:
    """How often RESET was said so far. The LIMIT keeps a global sql_select_limit from cutting the answer."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE, UNIX_TIMESTAMP() FROM information_schema.GLOBAL_STATUS "
            "WHERE VARIABLE_NAME IN ('COM_RESET', 'UPTIME') LIMIT 2"
        )
        rows = cursor.fetchall()
    values = {str(name).upper(): int(value) for name, value, _ in rows}
    now = int(rows[0][2])
    return Resets(values["COM_RESET"], now - values["UPTIME"], now)


def kept_seconds(connection: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint) -> float | None:
    """How long the server keeps its log files, in seconds; None when age does not purge them."""
    with mapped(endpoint), connection.cursor() as cursor:
        cursor.execute(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds', 'expire_logs_days')"
        )
        values = {str(name): float(value) for name, value in cursor.fetchall()}
    seconds = values.get("binlog_expire_logs_seconds") or values.get("expire_logs_days", 0.0) * 86_400
    return seconds or None
