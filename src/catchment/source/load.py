"""What a shard bears now: numbers that it and its replicas tell of themselves, each asked in bounded time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.source.session import ACCESS, Session, answer_behind, connect

# What the server allows a question; the socket gives up a second later.
ASK_SECONDS = 4
# MySQL renamed statement and column (8.0.22); MariaDB shows all its connections by a statement of its own.
_REPLICA_SINCE = (8, 0, 22)
_LAGS = ("Seconds_Behind_Source", "Seconds_Behind_Master")


class LoadSessions:
    """Sessions that ask, one for each server, kept from question to question; not thread-safe."""

    def __init__(self) -> None:
        self._open: dict[Endpoint, Session] = {}

    def on(self, endpoint: Endpoint) -> Session:
        """The session on a server, which reads alone. Raises SourceError."""
        session = self._open.get(endpoint)
        if session is None:
            session = self._open[endpoint] = connect(endpoint, read_seconds=ASK_SECONDS + 1)
            session.run("SET SESSION TRANSACTION READ ONLY")
            # MariaDB counts seconds, MySQL milliseconds of SELECT alone.
            limit = (
                f"max_statement_time = {ASK_SECONDS}"
                if session.mysql_version is None
                else f"max_execution_time = {ASK_SECONDS * 1000}"
            )
            session.run(f"SET SESSION {limit}")
        return session

    def give_up(self) -> None:
        """Leave all sessions: one of them may still owe an answer."""
        for session in self._open.values():
            session.abandon()
        self._open.clear()


def threads_running(session: Session) -> float | None:
    """Threads that are not asleep, that of the session among them. Raises SourceError."""
    return _number(session.row("SHOW GLOBAL STATUS LIKE 'Threads_running'"), 1)


def history_list_length(session: Session) -> float | None:
    """Transactions that InnoDB has not purged. Raises SourceError, on MySQL also without PROCESS."""
    if session.mysql_version is None:
        return _number(session.row("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'"), 1)
    metric = "SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"
    with _needing(session, "PROCESS"):
        return _number(session.row(metric), 0)


def replica_lag(session: Session) -> float | None:
    """Seconds that a replica lags, by its farthest channel; None where one of them does not say. Raises SourceError,
    also where the server is no replica."""
    version = session.mysql_version
    if version is None:
        statement = "SHOW ALL SLAVES STATUS"
    else:
        statement = f"SHOW {'REPLICA' if version >= _REPLICA_SINCE else 'SLAVE'} STATUS"
    with _needing(session, "REPLICA MONITOR" if version is None else "REPLICATION CLIENT"):
        rows = session.named_rows(statement)
    if not rows:
        endpoint = session.endpoint
        raise SourceError(
            f"{endpoint.host}:{endpoint.port} is no replica: it replicates from nobody; see `replicas` of shard "
            f"{endpoint.shard} in the feed file"
        )
    lags = [next((row[name] for name in _LAGS if name in row), None) for row in rows]
    known = [float(lag) for lag in lags if lag is not None]
    return max(known) if len(known) == len(lags) else None


def answer_to(session: Session, select: str) -> float | None:
    """The one number that a SELECT gives; None for NULL and for no row. Raises SourceError."""
    row = session.row(select)
    if row is not None and len(row) != 1:
        raise SourceError(
            f"shard {session.endpoint.shard}: it gives {len(row)} columns instead of one number"
        )
    return _number(row, 0)


@contextmanager
def _needing(session: Session, privilege: str) -> Iterator[None]:
    """Name the privilege that a question needs beside those of every feed."""
    try:
        yield
    except SourceError as error:
        if answer_behind(error)[0] not in ACCESS:
            raise
        endpoint = session.endpoint
        raise SourceError(
            f"user {endpoint.user!r} may not ask {endpoint.host}:{endpoint.port}; GRANT {privilege} ON *.* there"
        ) from error


def _number(row: Sequence[Any] | None, place: int) -> float | None:
    """A number of a row; None for NULL and for no row. Raises SourceError for what is no number."""
    value = None if row is None else row[place]
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SourceError("the answer is no number") from None
