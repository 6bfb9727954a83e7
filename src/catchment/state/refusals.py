"""What a database refuses, by the number that its driver gives: whether waiting helps, or what does.

SQLite's result codes, libmysql's and the server's error numbers, and PostgreSQL's SQLSTATE classes.
"""

import sqlite3
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoneFree

# The result codes that pass: another process has it locked, its disk is full, or its disk cannot be read or written.
_SQLITE_PASSES: Final = {
    sqlite3.SQLITE_BUSY: "another program holds it open; end that program",
    sqlite3.SQLITE_LOCKED: "another program holds it open; end that program",
    sqlite3.SQLITE_PROTOCOL: "another program holds it open; end that program",
    sqlite3.SQLITE_FULL: "free some space there",
    sqlite3.SQLITE_IOERR: "check the disk",
}
# Those that do not, and what helps. SQLITE_ERROR: no such table or column.
_SQLITE_STAYS: Final = {
    sqlite3.SQLITE_CANTOPEN: "check that the directory exists and may be written",
    sqlite3.SQLITE_READONLY: "check the permissions of the file and its directory",
    sqlite3.SQLITE_NOTADB: "it is damaged or not a state store; move it away, it is rebuilt from the lake",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away, it is rebuilt from the lake",
    sqlite3.SQLITE_ERROR: "it is not a state store, or was replaced while in use; run the same command again",
}
# MySQL and MariaDB. No connection, or a lost one: 2002, 2003, 2006, 2013, 2014, 2055, 1927, 3169, 4031. The server
# ends, or has no room for one more: 1053, 1040, 1203, 1226. Its disk is full: 1021, 1114, 3100. It takes no writes
# until somebody promotes it: 1290, 1792, 1836. Other transactions were in the way: 1205, 1213. KILL QUERY: 1317.
_MYSQL_PASSES: Final = frozenset(
    {2002, 2003, 2006, 2013, 2014, 2055, 1927, 3169, 4031, 1053, 1040, 1203, 1226}
    | {1021, 1114, 3100, 1290, 1792, 1836, 1205, 1213, 1317}
)
# PostgreSQL's classes: connection exception, transaction rollback, insufficient resources, operator intervention (it
# shuts down or starts up), system error; and two codes: read_only_sql_transaction, lock_not_available.
_POSTGRES_PASSES: Final = ("08", "40", "53", "57", "58", "25006", "55P03")

_CHECK: Final = "check `state` in the feed file"
_ANSWERS_NOT: Final = "check that it runs, and `state` in the feed file"


def advice(fault: Exception) -> tuple[bool, str]:
    """Whether work that failed may succeed later, and what helps meanwhile or instead. `fault`: an error of SQLAlchemy,
    or of the driver itself."""
    if isinstance(fault, NoneFree):  # all connections of the pool hang
        return True, _ANSWERS_NOT
    if isinstance(fault, DBAPIError) and fault.connection_invalidated:
        return True, _ANSWERS_NOT
    cause: BaseException = (fault.orig if isinstance(fault, DBAPIError) else None) or fault
    if isinstance(cause, SQLAlchemyError):
        return False, _CHECK
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        passes = _SQLITE_PASSES.get(code)
        return passes is not None, passes or _SQLITE_STAYS.get(code, _CHECK)
    return (True, _ANSWERS_NOT) if _passes(cause) else (False, _CHECK)


def _passes(cause: BaseException) -> bool:
    number = cause.args[0] if cause.args and isinstance(cause.args[0], int) else getattr(cause, "errno", None)
    if isinstance(number, int):
        return number in _MYSQL_PASSES
    # psycopg has no SQLSTATE of a login that failed, whatever the reason.
    state = getattr(cause, "sqlstate", getattr(cause, "pgcode", None))
    if state is None:
        return type(cause).__name__ == "OperationalError"
    return str(state).startswith(_POSTGRES_PASSES)
