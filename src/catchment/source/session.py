"""Sessions on a shard: logged in by PyMySQL, pinned, and known to be the server that we mean.

Foreign errors become ours here and nowhere else.
"""

import re
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from socket import socket
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import DictCursor

from catchment import world
from catchment.model.errors import (
    CatchmentError,
    ConnectionLost,
    LoginRefused,
    OtherServer,
    ServerSaid,
    SourceError,
)
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.source import lenient
from catchment.source.parting import NOTICED_SECONDS, has_ended
from catchment.source.pinned import STATEMENT_SECONDS, session_settings, set_statement
from catchment.source.tls import context_of

CONNECT_SECONDS = 10
# The socket gives up a minute later than the server, so that the server's own word comes first.
READ_SECONDS = STATEMENT_SECONDS + 60

# Client errors of libmysql's numbering: no connection, lost connection, server gone. And 1053: shutdown in
# progress, 1927 and 3169: connection killed, 4031: it was idle, 1040, 1203 and 1226: too many connections.
_LOST = {2002, 2003, 2006, 2013, 2055, 1053, 1927, 3169, 4031, 1040, 1203, 1226}
# A privilege or the account itself is missing.
ACCESS = {1044, 1045, 1142, 1143, 1227, 1698}
# PyMySQL's own, at a login: a plugin that it does not know, one that failed, and what it gives no number.
# By series of MariaDB, the first patch whose UPDATE and DELETE events have no generated columns. Seen in the log of
# 11.8.9; 10.11 and earlier ones of 11.8 had them.
_LEAVES_GENERATED_OUT = {(11, 8): 9}
_LOGIN = {2059, 2061, 0}
# Login plugins to which PyMySQL sends the password as it is.
_IN_CLEAR = {"mysql_clear_password", "dialog"}
_WAY_OUT = "ALTER USER to one of ed25519, mysql_native_password (MariaDB), caching_sha2_password (MySQL)"
# Of lower_case_table_names. With 2 (macOS) a server has names as they were written, and compares them otherwise.
_IN_LOWER_CASE = 1


@contextmanager
def mapped(endpoint: Endpoint, refusal: type[SourceError] = SourceError) -> Iterator[None]:
    """Turn PyMySQL's and the socket's errors into ours, naming the shard. `refusal`: what a missing privilege is."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        ours = _ours(error, endpoint, refusal)
        ours.shard = endpoint.shard
        raise ours from error


def _ours(
    error: pymysql.err.MySQLError | OSError, endpoint: Endpoint, refusal: type[SourceError]
) -> SourceError:
    where = f"shard {endpoint.shard} at {endpoint.host}:{endpoint.port}"
    if isinstance(error, OSError):
        return ConnectionLost(f"{where}: {error}")
    code, text = _answer(error)
    if code in _LOST:
        return ConnectionLost(f"{where}: {text}")
    if code in ACCESS:
        return refusal(
            f"{where}: user {endpoint.user!r} is refused ({code}: {text}); "
            "check the password and GRANT SELECT, REPLICATION SLAVE and BINLOG MONITOR (MariaDB), "
            "or REPLICATION CLIENT and XA_RECOVER_ADMIN (MySQL)"
        )
    return ServerSaid(code, f"{text} ({where})")


def answer_behind(error: SourceError) -> tuple[int, str]:
    """The server's number and text of an error that a statement raised; the number is 0 where it gave none."""
    cause = error.__cause__
    return _answer(cause) if isinstance(cause, pymysql.err.MySQLError) else (0, str(error))


def _answer(error: pymysql.err.MySQLError) -> tuple[int, str]:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    return code, error.args[1] if len(error.args) > 1 else str(error)


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
    """Turn what a server says to a login into LoginRefused: an account may be locked or expired, a host blocked.

    What PyMySQL raises at a login plugin that it lacks or knows by half becomes SourceError. It raises errors of its
    own, and of Python (RuntimeError without PyNaCl, AttributeError, IndexError).
    """
    cause: Exception
    try:
        with mapped(endpoint, LoginRefused):
            yield
        return
    except ServerSaid as error:
        if error.code not in _LOGIN:
            raise LoginRefused(f"{error}; the login of user {endpoint.user!r} is refused") from error
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
    """A session on a shard: logged in, pinned, and known by the server that it is on. `with` closes it.

    What asks raises ConnectionLost, ServerSaid where the server refuses, or SourceError where a privilege is missing.
    """

    endpoint: Endpoint
    server: Server
    isolation = "READ-COMMITTED"
    folds = False  # whether the server has names of tables and schemas in lower case

    def run(self, sql: str, args: Sequence[Any] | None = None) -> None:
        """Run a statement whose answer says nothing."""
        self.rows(sql, args)

    def row(self, sql: str, args: Sequence[Any] | None = None) -> tuple[Any, ...] | None:
        """The first row that a statement answers; None when there is none."""
        return next(iter(self.rows(sql, args)), None)

    def rows(self, sql: str, args: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows that a statement answers, read to the last."""
        with mapped(self.endpoint), self.cursor() as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    def named_row(self, sql: str, args: Sequence[Any] | None = None) -> dict[str, Any] | None:
        """As `row`, by column name: for answers whose columns differ between versions."""
        return next(iter(self.named_rows(sql, args)), None)

    def named_rows(self, sql: str, args: Sequence[Any] | None = None) -> list[dict[str, Any]]:
        """As `rows`, by column name."""
        with mapped(self.endpoint), self.cursor(DictCursor) as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    @property
    def mysql_version(self) -> tuple[int, ...] | None:
        """MySQL's version from its greeting, e.g. (8, 0, 36); None when the server is MariaDB."""
        said = str(self.server_version)  # type: ignore[attr-defined]
        if "mariadb" in said.lower():
            return None
        return tuple(int(part) for part in re.findall(r"\d+", said)[:3])

    @property
    def leaves_generated_out(self) -> bool:
        """Whether the server's row events of UPDATE and DELETE lack generated columns, whatever binlog_row_image is."""
        said = re.search(r"(\d+)\.(\d+)\.(\d+)-mariadb", str(self.server_version).lower())  # type: ignore[attr-defined]
        if said is None:
            return False
        major, minor, patch = map(int, said.groups())
        return patch >= _LEAVES_GENERATED_OUT.get((major, minor), patch + 1)

    @property
    def sock(self) -> socket:
        """The socket below, for answers that PyMySQL does not read; its errors are to be `mapped`."""
        raw: socket = self._sock  # type: ignore[attr-defined]
        return raw

    def readable(self, seconds: float, beside: Sequence["Session"] = ()) -> Sequence["Session"]:
        """Which of this session and those `beside` it have a `sock` of which nobody has read all, or one that the
        server has closed; waits so many seconds for the first."""
        by_number = {one.sock.fileno(): one for one in (self, *beside)}
        # TLS has read ahead.
        held = [
            one for one in by_number.values() if (pending := getattr(one.sock, "pending", None)) and pending()
        ]
        if held:
            return held
        with mapped(self.endpoint):
            poll = select.poll()
            for number in by_number:
                poll.register(number, select.POLLIN)
            return [by_number[number] for number, _ in poll.poll(seconds * 1000)]

    def abandon(self) -> None:
        """Close the session while it is answering, or after.

        What is left of a result still comes, and a dump goes on: no command may follow, not even the COM_QUIT of
        `close`. To close once more is harmless.
        """
        self._force_close()

    def _force_close(self) -> None:
        """What PyMySQL does last on every way out."""
        raw, endpoint = getattr(self, "_sock", None), getattr(self, "endpoint", None)
        lingers = raw is not None and endpoint is not None and endpoint.counted and not has_ended(raw)
        super()._force_close()  # type: ignore[misc]
        if lingers:
            world.sleep(NOTICED_SECONDS)

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """What PyMySQL sends at a login, SET NAMES; here it is all of the settings."""
        self.charset, self.encoding, self.collation = charset, lenient.NAME, collation
        self.query(set_statement(self.settings))

    @property
    def settings(self) -> dict[str, str]:
        """What is pinned in this session, by name."""
        return session_settings(self.mysql_version, self.isolation)


class _Snapshots(Session):
    isolation = "REPEATABLE-READ"


def connect(
    endpoint: Endpoint,
    expected: Server | None = None,
    *,
    read_seconds: int = READ_SECONDS,
    snapshots: bool = False,
) -> Session:
    """Log in, set what a SELECT depends on, and read that back together with who answers. The settings come first,
    since an sql_mode can change the answer (EMPTY_STRING_IS_NULL). Two statements in all.

    `snapshots`: REPEATABLE READ, for consistent snapshots. Raises ConnectionLost, SourceError (also where the server
    ignores a setting), OtherServer when it is not the `expected` server, or ConfigError for what `tls` names.
    """
    servers = world.servers()
    if servers is not None:
        session: Session = servers.login(endpoint, snapshots=snapshots, read_seconds=read_seconds)
    else:
        session = _logged_in(endpoint, _Snapshots if snapshots else Session, read_seconds)
    try:
        if servers is None:
            session.server = _known(session)
        if expected is not None:
            must_be(session.server, expected, endpoint)
    except BaseException:
        session.abandon()
        raise
    return session


def _logged_in(endpoint: Endpoint, kind: type[Session], read_seconds: int) -> Session:
    context = context_of(endpoint)
    plugins = _Plugins(endpoint)
    with _login(endpoint, plugins):
        session = kind(
            host=endpoint.host,
            port=endpoint.port,
            user=endpoint.user,
            # A text would be sent in Latin-1 (PyMySQL 1.1).
            password=endpoint.now.password.encode(),
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
    session.endpoint = endpoint
    return session


def _known(session: Session) -> Server:
    """Who answers. Raises SourceError when the session does not keep its settings (a proxy that multiplexes sessions
    does not)."""
    pinned = session.settings
    names = [
        *(f"SESSION.{name}" for name in pinned),
        "lower_case_table_names",
        "server_id",
        "hostname",
        "port",
    ]
    if session.mysql_version is not None:
        names.append("server_uuid")
    row = session.row(f"SELECT {', '.join(f'@@{name}' for name in names)}")
    assert row is not None
    found = dict(zip(pinned, map(str, row), strict=False))
    wrong = {name: found[name] for name, value in pinned.items() if found[name] != value}
    if wrong:
        raise SourceError(
            f"shard {session.endpoint.shard}: the session does not keep its settings ({wrong}); "
            "connect to the server itself, not through a proxy that shares sessions"
        )
    cases, server_id, hostname, port, *uuid = row[len(pinned) :]
    session.folds = int(cases) == _IN_LOWER_CASE
    return Server(int(server_id), str(hostname), int(port), *map(str, uuid))


def must_be(found: Server, expected: Server, endpoint: Endpoint) -> None:
    """Raise OtherServer unless the session is on the expected server."""
    if found != expected:
        raise OtherServer(
            f"shard {endpoint.shard}: {endpoint.host}:{endpoint.port} is now {found}, the feed was "
            f"reading {expected}; "
            "point the feed at the old server, or adopt this one: `catchment adopt FEED.yaml --shard "
            f"{endpoint.shard}` goes on if it has the old one's data and log, and with --copy also if it has a log of "
            "its own (a replica that was promoted)"
        )
