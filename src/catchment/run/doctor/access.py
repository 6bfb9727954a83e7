"""What the feed's user may do, found out by doing it."""

import struct
from collections.abc import Iterable, Mapping
from contextlib import closing

import pymysql
from pymysql.connections import Connection
from pymysql.converters import escape_string

from catchment.flow.capture.connect import connect, mapped, mysql_version
from catchment.flow.capture.log import announce_checksums
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
    """BINLOG MONITOR and REPLICATION SLAVE, and the server's filters (binlog_do_db, binlog_ignore_db).

    On MySQL REPLICATION CLIENT, REPLICATION SLAVE and XA_RECOVER_ADMIN.
    """
    version = mysql_version(session)
    findings = []
    if version is not None:
        findings = _check_statement(session, endpoint, account, "XA RECOVER CONVERT XID", "XA_RECOVER_ADMIN")
    try:
        with session.cursor() as cursor:
            cursor.execute(
                "SHOW BINARY LOG STATUS" if version and version >= (8, 2) else "SHOW MASTER STATUS"
            )
            row = cursor.fetchone()
    except pymysql.err.MySQLError as refused:
        privilege = "BINLOG MONITOR" if version is None else "REPLICATION CLIENT"
        return [*findings, _missing(endpoint, account, privilege, refused)], ("", "")
    if row is None:  # without a log; check_settings says so
        return findings, ("", "")
    file, _, only, ignored = (str(value) for value in row[:4])
    return [*findings, *_check_dump(endpoint, account, file)], (only, ignored)


def check_replica(
    session: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, variables: Mapping[str, str]
) -> list[Finding]:
    """Whether MySQL replicates changes that it does not log; MariaDB: see check_settings."""
    logged = variables.get("log_replica_updates", variables.get("log_slave_updates", "ON"))
    version = mysql_version(session)
    if version is None or logged.upper() in ("ON", "1"):
        return []
    try:
        with session.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS" if version >= (8, 0, 22) else "SHOW SLAVE STATUS")
            if not cursor.fetchall():
                return []
    except pymysql.err.MySQLError:
        return []  # REPLICATION CLIENT is missing; check_log_access says so
    return [
        Finding(
            Severity.ERROR,
            endpoint.shard,
            "the server is a replica and log_replica_updates is OFF",
            "changes that it replicates are not in its own log and never reach the lake",
            "start the server with log_replica_updates, or name its source as host",
        )
    ]


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


def _check_statement(
    session: "Connection[pymysql.cursors.Cursor]",
    endpoint: Endpoint,
    account: str,
    statement: str,
    privilege: str,
) -> list[Finding]:
    try:
        with session.cursor() as cursor:
            cursor.execute(statement)
    except pymysql.err.MySQLError as refused:
        return [_missing(endpoint, account, privilege, refused)]
    return []


def _check_dump(endpoint: Endpoint, account: str, file: str) -> list[Finding]:
    """Ask for the log and look at the first packet; the session is of no use afterwards."""
    try:
        with closing(connect(endpoint)) as session, mapped(endpoint):
            announce_checksums(session, endpoint)
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
