"""Sessions on a shard: logged in by PyMySQL, pinned, and known to be the server that we mean.

Foreign errors become ours here and nowhere else.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.charset import charset_by_name
from pymysql.connections import Connection

from catchment.model.errors import (
    NEW_FEED,
    CatchmentError,
    ConnectionLost,
    Diverged,
    ServerSaid,
    SourceError,
)
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.source.tls import context_of

CONNECT_SECONDS = 10
# What the server allows a statement; a minute later the socket gives up, so that the server's own word comes first.
STATEMENT_SECONDS = 300
READ_SECONDS = STATEMENT_SECONDS + 60

# Client errors of libmysql's numbering: no connection, lost connection, server gone. And 1053: shutdown in
# progress, 1927 and 3169: connection killed, 4031: it was idle, 1040, 1203 and 1226: too many connections.
_LOST = {2002, 2003, 2006, 2013, 2055, 1053, 1927, 3169, 4031, 1040, 1203, 1226}
# A privilege or the account itself is missing.
ACCESS = {1044, 1045, 1142, 1143, 1227, 1698}
# PyMySQL's own, at a login: a plugin that it does not know, one that failed, and what it gives no number.
_LOGIN = {2059, 2061, 0}
# Login plugins to which PyMySQL sends the password as it is.
_IN_CLEAR = {"mysql_clear_password", "dialog"}
_WAY_OUT = "ALTER USER to one of ed25519, mysql_native_password (MariaDB), caching_sha2_password (MySQL)"

# What every reading session sets, and then reads back: each one changed values or truncated results
# somewhere.
_PINNED = {
    "autocommit": "1",
    "time_zone": "+00:00",
    "sql_mode": "",
    "sql_select_limit": str(2**64 - 1),
    "character_set_client": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "lock_wait_timeout": "5",
    # else a global max_join_size below a table's size refuses to read it (error 1104)
    "sql_big_selects": "1",
    "group_concat_max_len": str(2**30),
}
_PINNED_MARIADB = {"max_statement_time": f"{STATEMENT_SECONDS}.0"}
# The hard limit is in milliseconds and for SELECT alone.
_PINNED_MYSQL = {"max_execution_time": str(STATEMENT_SECONDS * 1000)}
# By the version that brought them (MySQL manual: Option and Variable Changes for MySQL 8.0). Estimates of rows may be a
# day old; a secondary engine (HeatWave) lags behind InnoDB; a primary key that the server made can be hidden from the
# catalog.
_PINNED_MYSQL_SINCE = {
    (8, 0, 3): {"information_schema_stats_expiry": "0"},
    (8, 0, 13): {"use_secondary_engine": "OFF"},
    (8, 0, 30): {"show_gipk_in_create_table_and_information_schema": "1"},
}


@contextmanager
def mapped(endpoint: Endpoint) -> Iterator[None]:
    """Turn PyMySQL's and the socket's errors into ours, naming the shard."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        ours = _ours(error, endpoint)
        ours.shard = endpoint.shard
        raise ours from error


def _ours(error: pymysql.err.MySQLError | OSError, endpoint: Endpoint) -> SourceError:
    where = f"shard {endpoint.shard} at {endpoint.host}:{endpoint.port}"
    if isinstance(error, OSError):
        return ConnectionLost(f"{where}: {error}")
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = error.args[1] if len(error.args) > 1 else str(error)
    if code in _LOST:
        return ConnectionLost(f"{where}: {text}")
    if code in ACCESS:
        return SourceError(
            f"{where}: user {endpoint.user!r} is refused ({code}: {text}); "
            "check the password and GRANT SELECT, REPLICATION SLAVE and BINLOG MONITOR (MariaDB), "
            "or REPLICATION CLIENT and XA_RECOVER_ADMIN (MySQL)"
        )
    return ServerSaid(code, f"{text} ({where})")


class _Plugins(dict[str, Any]):
    """Further login plugins for PyMySQL: none, but it tells here which one the server asks for, before it answers.
    Whoever stands in the server's place may ask for the password in clear: `get` raises SourceError without TLS."""

    asked = ""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    def __bool__(self) -> bool:
        return True

    def get(self, name: str | bytes | None, default: object = None) -> None:
        self.asked = name.decode("ascii", "replace") if isinstance(name, bytes) else name or ""
        if self.asked in _IN_CLEAR and self._endpoint.tls is None:
            endpoint = self._endpoint
            raise SourceError(
                f"shard {endpoint.shard} at {endpoint.host}:{endpoint.port}: for user {endpoint.user!r} the server "
                f"asks for the password in clear (plugin {self.asked}), and it was not sent; set tls for the shard, "
                f"or {_WAY_OUT}"
            )


@contextmanager
def _login(endpoint: Endpoint, plugins: _Plugins) -> Iterator[None]:
    """Turn what PyMySQL raises at a login plugin that it lacks or knows by half into SourceError: errors of its own,
    and of Python (RuntimeError without PyNaCl, AttributeError, IndexError)."""
    cause: Exception
    try:
        with mapped(endpoint):
            yield
        return
    except ServerSaid as error:
        if error.code not in _LOGIN:
            raise
        said, cause = str(error.__cause__), error
    except CatchmentError:
        raise
    except Exception as error:
        said, cause = f"plugin {plugins.asked}: {type(error).__name__}: {error}", error
    raise SourceError(
        f"shard {endpoint.shard} at {endpoint.host}:{endpoint.port}: user {endpoint.user!r} logs in by a plugin that "
        f"PyMySQL does not master ({said}); {_WAY_OUT}"
    ) from cause


class Session(Connection):
    """A session on a shard: logged in, pinned, and known by the server that it is on."""

    server: Server
    isolation = "READ-COMMITTED"

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """What PyMySQL sends at a login, SET NAMES; here it is all of the settings."""
        self.charset, self.encoding, self.collation = charset, charset_by_name(charset).encoding, collation
        assignments = (f"SESSION {name} = {_literal(value)}" for name, value in _pinned(self).items())
        self.query(f"SET {', '.join(assignments)}")


class _Snapshots(Session):
    isolation = "REPEATABLE-READ"


def connect(
    endpoint: Endpoint,
    expected: Server | None = None,
    *,
    read_seconds: int = READ_SECONDS,
    snapshots: bool = False,
) -> Session:
    """Log in, set what a SELECT depends on, and read that back together with who answers: pinned first, since an
    sql_mode can change the answer (EMPTY_STRING_IS_NULL). Two statements in all.

    `snapshots`: REPEATABLE READ, for consistent snapshots. Raises ConnectionLost, SourceError (also where the server
    ignores a setting), Diverged when it is not the `expected` server, or ConfigError for what `tls` names.
    """
    session = _logged_in(endpoint, _Snapshots if snapshots else Session, read_seconds)
    try:
        session.server = _known(session, endpoint)
        if expected is not None:
            must_be(session.server, expected, endpoint)
    except BaseException:
        session._force_close()  # type: ignore[attr-defined]
        raise
    return session


def _logged_in(endpoint: Endpoint, kind: type[Session], read_seconds: int) -> Session:
    context = context_of(endpoint)
    plugins = _Plugins(endpoint)
    with _login(endpoint, plugins):
        return kind(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            # A text would be sent in Latin-1 (PyMySQL 1.1).
            password=endpoint.password.encode(),
            ssl=context,
            # Without this PyMySQL loads the system's certificates at every login: 47 ms instead of 1.
            ssl_disabled=endpoint.tls is None,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            write_timeout=CONNECT_SECONDS,
            program_name="catchment",
            auth_plugin_map=plugins,
        )


def mysql_version(connection: "Connection[pymysql.cursors.Cursor]") -> tuple[int, ...] | None:
    """MySQL's version from its greeting, e.g. (8, 0, 36); None when the server is MariaDB."""
    said = str(connection.server_version)  # type: ignore[attr-defined]
    if "mariadb" in said.lower():
        return None
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3])


def _pinned(session: Session) -> dict[str, str]:
    version = mysql_version(session)
    isolation = "tx_isolation" if version is None else "transaction_isolation"
    return {**_settings(version), isolation: session.isolation}


def _settings(version: tuple[int, ...] | None) -> dict[str, str]:
    if version is None:
        return _PINNED | _PINNED_MARIADB
    pinned = _PINNED | _PINNED_MYSQL
    for since, settings in _PINNED_MYSQL_SINCE.items():
        if version >= since:
            pinned |= settings
    return pinned


def _known(session: Session, endpoint: Endpoint) -> Server:
    """Who answers. Raises SourceError when the session does not keep its settings (a proxy that multiplexes sessions
    does not)."""
    pinned = _pinned(session)
    names = [*(f"SESSION.{name}" for name in pinned), "server_id", "hostname", "port"]
    if mysql_version(session) is not None:
        names.append("server_uuid")
    with mapped(endpoint), session.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'@@{name}' for name in names)}")
        row = cursor.fetchone()
    assert row is not None
    found = dict(zip(pinned, map(str, row), strict=False))
    wrong = {name: found[name] for name, value in pinned.items() if found[name] != value}
    if wrong:
        raise SourceError(
            f"shard {endpoint.shard}: the session does not keep its settings ({wrong}); "
            "connect to the server itself, not through a proxy that shares sessions"
        )
    server_id, hostname, port, *uuid = row[len(pinned) :]
    return Server(int(server_id), str(hostname), int(port), *map(str, uuid))


def _literal(value: str) -> str:
    return value if value.replace(".", "", 1).isdigit() else f"'{value}'"


def must_be(found: Server, expected: Server, endpoint: Endpoint) -> None:
    """Raise Diverged unless the session is on the expected server."""
    if found != expected:
        raise Diverged(
            f"shard {endpoint.shard}: {endpoint.host}:{endpoint.port} is now {found}, the feed was "
            f"reading {expected}; "
            "point the feed at the old server; if this is the old one, moved or renamed with its data and log, "
            f"`catchment adopt FEED.yaml --shard {endpoint.shard}` checks that, and the feed goes on; otherwise start "
            f"{NEW_FEED} to copy again"
        )
