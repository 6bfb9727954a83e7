"""What the feed's user may do, found out by doing it."""

import struct
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing

import pymysql
from pymysql.connections import Connection
from pymysql.converters import escape_string

from catchment.doctor.finding import Finding, Severity
from catchment.model.errors import Retry, ServerSaid
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.log import announce_checksums
from catchment.source.session import ACCESS, connect, mapped, mysql_version

_COM_BINLOG_DUMP = 0x12
_NON_BLOCKING = 1
_FILE_HEADER_BYTES = 4
# All that MySQL says of XA RECOVER to a user without the privilege.
_ER_XAER_RMERR = 1401


def quoted(table: TableId) -> str:
    """A table's name as SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in (table.schema, table.name))


def check_log_access(
    session: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, account: str
) -> tuple[list[Finding], tuple[str, str]]:
    """BINLOG MONITOR and REPLICATION SLAVE, and the server's filters (binlog_do_db, binlog_ignore_db).

    On MySQL REPLICATION CLIENT, REPLICATION SLAVE and XA_RECOVER_ADMIN. Raises SourceError, ConnectionLost for what is
    no lack of a privilege.
    """
    version = mysql_version(session)
    findings = []
    if version is not None:
        findings = _check_xa_recover(session, endpoint, account)
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
    """Whether MySQL replicates changes that it does not log; MariaDB: see check_settings. Raises as
    check_log_access.
    """
    logged = variables.get("log_replica_updates", variables.get("log_slave_updates", "ON"))
    version = mysql_version(session)
    if version is None or logged.upper() in ("ON", "1"):
        return []
    try:
        with session.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS" if version >= (8, 0, 22) else "SHOW SLAVE STATUS")
            if not cursor.fetchall():
                return []
    except pymysql.err.MySQLError as refused:
        _missing(endpoint, "", "REPLICATION CLIENT", refused)
        return []  # check_log_access says so
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
    """The tables whose every column the user may SELECT, and findings about the others. Raises ConnectionLost."""
    readable: set[TableId] = set()
    findings = []
    for table in tables:
        try:
            with session.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
            readable.add(table)
        except pymysql.err.MySQLError as refused:
            findings.append(_unreadable(endpoint, account, table, refused))
    return readable, findings


def _unreadable(endpoint: Endpoint, account: str, table: TableId, refused: pymysql.err.MySQLError) -> Finding:
    try:
        return _missing(endpoint, account, "SELECT", refused, on=quoted(table))
    except ServerSaid as said:
        wait = "wait until what alters or locks it has ended, and ask again"
        repair = f'look at it with CHECK TABLE, or add "!{table}" to `tables`'
        remedy = wait if said.retry is Retry.SAME else repair
        return Finding(
            Severity.ERROR, endpoint.shard, f"{table} cannot be read: {said}", "it cannot be copied", remedy
        )


def _check_xa_recover(
    session: "Connection[pymysql.cursors.Cursor]", endpoint: Endpoint, account: str
) -> list[Finding]:
    try:
        with session.cursor() as cursor:
            cursor.execute("XA RECOVER CONVERT XID")
    except pymysql.err.MySQLError as refused:
        return [_missing(endpoint, account, "XA_RECOVER_ADMIN", refused, codes={*ACCESS, _ER_XAER_RMERR})]
    return []


def _check_dump(endpoint: Endpoint, account: str, file: str) -> list[Finding]:
    """Ask for the log and look at the first packet, in a session that is of no use afterwards."""
    with closing(connect(endpoint)) as session, mapped(endpoint):
        announce_checksums(session, endpoint)
        start = struct.pack("<IHI", _FILE_HEADER_BYTES, _NON_BLOCKING, 0) + file.encode()
        try:
            session._execute_command(_COM_BINLOG_DUMP, start)  # type: ignore[attr-defined]
            session._read_packet()  # type: ignore[no-untyped-call]
        except pymysql.err.MySQLError as refused:
            return [_missing(endpoint, account, "REPLICATION SLAVE", refused)]
    return []


def _missing(
    endpoint: Endpoint,
    account: str,
    privilege: str,
    refused: pymysql.err.MySQLError,
    *,
    on: str = "*.*",
    codes: Collection[int] = ACCESS,
) -> Finding:
    """The privilege that the account lacks; raises what `mapped` makes of an error of another number."""
    if not refused.args or refused.args[0] not in codes:
        with mapped(endpoint):
            raise refused
    user, _, host = account.rpartition("@")
    grantee = f"'{escape_string(user)}'@'{escape_string(host)}'"
    return Finding(
        Severity.ERROR,
        endpoint.shard,
        f"user {account} is refused: {refused.args[-1]}",
        "the feed cannot read",
        f"GRANT {privilege} ON {on} TO {grantee}",
    )
