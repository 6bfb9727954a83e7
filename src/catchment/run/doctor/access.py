"""What the feed's user may do, found out by doing it."""

import struct
from collections.abc import Iterable
from contextlib import closing

import pymysql
from pymysql.connections import Connection
from pymysql.converters import escape_string

from catchment.flow.capture.connect import connect, mapped
from catchment.model.errors import CatchmentError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.run.doctor.finding import Finding, Severity

_COM_BINLOG_DUMP = 0x12
_NON_BLOCKING = 1
_FILE_HEADER_BYTES = 4


def quoted(table: TableId) -> str:
    """A table's name as SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in (table.schema, table.name))


def check_log_access(
    session: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, account: str
) -> tuple[list[Finding], tuple[str, str]]:
    """BINLOG MONITOR and REPLICATION SLAVE, and the server's filters (binlog_do_db, binlog_ignore_db)."""
    try:
        with session.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            row = cursor.fetchone()
    except pymysql.err.MySQLError as refused:
        return [_missing(endpoint, account, "BINLOG MONITOR", refused)], ("", "")
    if row is None:  # without a log; check_settings says so
        return [], ("", "")
    file, _, only, ignored = (str(value) for value in row[:4])
    return _check_dump(endpoint, account, file), (only, ignored)


def check_select(
    session: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, account: str, tables: Iterable[TableId]
) -> tuple[set[TableId], list[Finding]]:
    """The tables whose every column the user may SELECT, and findings about the others."""
    readable: set[TableId] = set()
    findings = []
    for table in tables:
        try:
            with session.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
            readable.add(table)
        except pymysql.err.MySQLError as refused:
            findings.append(_missing(endpoint, account, "SELECT", refused, quoted(table)))
    return readable, findings


def _check_dump(endpoint: Endpoint, account: str, file: str) -> list[Finding]:
    """Ask for the log and look at the first packet; the session is of no use afterwards."""
    try:
        with closing(connect(endpoint)) as session, mapped(endpoint):
            with session.cursor() as cursor:
                cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            start = struct.pack("<IHI", _FILE_HEADER_BYTES, _NON_BLOCKING, 0) + file.encode()
            try:
                session._execute_command(_COM_BINLOG_DUMP, start)  # type: ignore[attr-defined]
                session._read_packet()  # type: ignore[no-untyped-call]
            except pymysql.err.OperationalError as refused:
                return [_missing(endpoint, account, "REPLICATION SLAVE", refused)]
    except CatchmentError as lost:
        return [Finding(Severity.ERROR, endpoint.shard, str(lost))]
    return []


def _missing(
    endpoint: Endpoint, account: str, privilege: str, refused: pymysql.err.MySQLError, on: str = "*.*"
) -> Finding:
    user, _, host = account.rpartition("@")
    grantee = f"'{escape_string(user)}'@'{escape_string(host)}'"
    return Finding(
        Severity.ERROR,
        endpoint.shard,
        f"user {account} is refused: {refused.args[-1]}",
        "the feed cannot read",
        f"GRANT {privilege} ON {on} TO {grantee}",
    )
