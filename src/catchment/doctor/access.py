"""What the feed's user may do, found out by doing it."""

import struct
from collections.abc import Collection, Iterable, Mapping

from pymysql.converters import escape_string

from catchment.doctor.finding import Finding, Severity
from catchment.model.errors import Retry, ServerSaid, SourceError
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.dump import announce
from catchment.source.offsets import log_status
from catchment.source.session import ACCESS, Session, answer_behind, connect, mapped

_COM_BINLOG_DUMP = 0x12
_NON_BLOCKING = 1
_FILE_HEADER_BYTES = 4
# All that MySQL says of XA RECOVER to a user without the privilege.
_ER_XAER_RMERR = 1401


def quoted(table: TableId) -> str:
    """A table's name as SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in (table.schema, table.name))


def check_log_access(session: Session, account: str) -> tuple[list[Finding], tuple[str, str]]:
    """BINLOG MONITOR and REPLICATION SLAVE, and the server's filters (binlog_do_db, binlog_ignore_db).

    On MySQL REPLICATION CLIENT, REPLICATION SLAVE and XA_RECOVER_ADMIN. Raises SourceError, ConnectionLost for what is
    no lack of a privilege.
    """
    mysql = session.server.mysql
    findings = _check_xa_recover(session, account) if mysql else []
    try:
        row = log_status(session)
    except SourceError as refused:
        privilege = "REPLICATION CLIENT" if mysql else "BINLOG MONITOR"
        return [*findings, _missing(session.endpoint, account, privilege, refused)], ("", "")
    if row is None:  # without a log; check_settings says so
        return findings, ("", "")
    file, _, only, ignored = (str(value) for value in row[:4])
    return [*findings, *_check_dump(session.endpoint, account, file)], (only, ignored)


def check_replica(session: Session, variables: Mapping[str, str]) -> list[Finding]:
    """Whether MySQL replicates changes that it does not log; MariaDB: see check_settings. Raises as
    check_log_access.
    """
    logged = variables.get("log_replica_updates", variables.get("log_slave_updates", "ON"))
    version = session.mysql_version
    if version is None or logged.upper() in ("ON", "1"):
        return []
    try:
        if not session.rows("SHOW REPLICA STATUS" if version >= (8, 0, 22) else "SHOW SLAVE STATUS"):
            return []
    except SourceError as refused:
        _missing(session.endpoint, "", "REPLICATION CLIENT", refused)
        return []  # check_log_access says so
    return [
        Finding(
            Severity.ERROR,
            session.endpoint.shard,
            "the server is a replica and log_replica_updates is OFF",
            "changes that it replicates are not in its own log and never reach the lake",
            "start the server with log_replica_updates, or name its source as host",
        )
    ]


def check_select(
    session: Session, account: str, tables: Iterable[TableId]
) -> tuple[set[TableId], list[Finding]]:
    """The tables whose every column the user may SELECT, and findings about the others. Raises ConnectionLost."""
    readable: set[TableId] = set()
    findings = []
    for table in tables:
        try:
            session.run(f"SELECT * FROM {quoted(table)} LIMIT 0")
            readable.add(table)
        except SourceError as refused:
            findings.append(_unreadable(session.endpoint, account, table, refused))
    return readable, findings


def _unreadable(endpoint: Endpoint, account: str, table: TableId, refused: SourceError) -> Finding:
    try:
        return _missing(endpoint, account, "SELECT", refused, on=quoted(table))
    except ServerSaid as said:
        wait = "wait until what alters or locks it has ended, and ask again"
        repair = f'look at it with CHECK TABLE, or add "!{table}" to `tables`'
        remedy = wait if said.retry is Retry.SAME else repair
        return Finding(
            Severity.ERROR, endpoint.shard, f"{table} cannot be read: {said}", "it cannot be copied", remedy
        )


def _check_xa_recover(session: Session, account: str) -> list[Finding]:
    try:
        session.run("XA RECOVER CONVERT XID")
    except SourceError as refused:
        return [
            _missing(session.endpoint, account, "XA_RECOVER_ADMIN", refused, codes={*ACCESS, _ER_XAER_RMERR})
        ]
    return []


def _check_dump(endpoint: Endpoint, account: str, file: str) -> list[Finding]:
    """Ask for the log and look at the first packet, in a session that is of no use afterwards."""
    with connect(endpoint) as session:
        announce(session)
        start = struct.pack("<IHI", _FILE_HEADER_BYTES, _NON_BLOCKING, 0) + file.encode()
        try:
            with mapped(endpoint):
                session._execute_command(_COM_BINLOG_DUMP, start)  # type: ignore[attr-defined]
                session._read_packet()  # type: ignore[no-untyped-call]
        except SourceError as refused:
            return [_missing(endpoint, account, "REPLICATION SLAVE", refused)]
    return []


def _missing(
    endpoint: Endpoint,
    account: str,
    privilege: str,
    refused: SourceError,
    *,
    on: str = "*.*",
    codes: Collection[int] = ACCESS,
) -> Finding:
    """The privilege that the account lacks; raises an error of another number again."""
    code, text = answer_behind(refused)
    if code not in codes:
        raise refused
    user, _, host = account.rpartition("@")
    grantee = f"'{escape_string(user)}'@'{escape_string(host)}'"
    return Finding(
        Severity.ERROR,
        endpoint.shard,
        f"user {account} is refused: {text}",
        "the feed cannot read",
        f"GRANT {privilege} ON {on} TO {grantee}",
    )
