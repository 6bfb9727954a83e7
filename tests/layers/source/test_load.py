"""What servers tell of their load, each kind in its own words."""

from collections.abc import Iterator

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.errors import ConnectionLost, ServerSaid, SourceError
from catchment.model.source import Endpoint
from catchment.source import load
from catchment.source.load import (
    LoadSessions,
    answer_to,
    history_list_length,
    replica_lag,
    threads_running,
)
from catchment.source.session import Session
from tests.world.servers.launch import PrivateMySQL


def endpoint_of(server: PrivateServer, user: str = FEED_USER) -> Endpoint:
    return Endpoint("a", server.host, server.port, user, server.login(user)["password"])


@pytest.fixture
def sessions() -> Iterator[LoadSessions]:
    made = LoadSessions()
    yield made
    made.give_up()


@pytest.fixture
def session(sessions: LoadSessions, shard: PrivateServer) -> Session:
    return sessions.on(endpoint_of(shard))


def test_threads_that_run(session: Session) -> None:
    running = threads_running(session)
    assert running is not None
    assert running >= 1


@pytest.mark.mariadb("MySQL tells it to users with PROCESS")
def test_the_history_list(session: Session) -> None:
    assert history_list_length(session) is not None


@pytest.mark.mariadb("the accounts of MySQL are below")
def test_a_privilege_that_is_missing_is_named(session: Session) -> None:
    with pytest.raises(SourceError, match="GRANT REPLICA MONITOR ON"):
        replica_lag(session)


def must_tell(server: PrivateMySQL, sessions: LoadSessions) -> None:
    session = sessions.on(endpoint_of(server))
    assert threads_running(session) is not None
    with pytest.raises(SourceError, match="GRANT PROCESS ON"):
        history_list_length(session)
    with pytest.raises(SourceError, match="is no replica"):
        replica_lag(session)
    with pytest.raises(ServerSaid, match="3024"):
        answer_to(session, "SELECT COUNT(*) FROM information_schema.columns a WHERE SLEEP(60)")
    root = sessions.on(endpoint_of(server, "root"))
    assert history_list_length(root) is not None


@pytest.mark.parametrize("fixture", ["mysql_97_server", pytest.param("mysql_server", marks=pytest.mark.wide)])
def test_mysql(
    fixture: str, request: pytest.FixtureRequest, sessions: LoadSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "ASK_SECONDS", 1)  # the server is asked to sleep for longer
    must_tell(request.getfixturevalue(fixture), sessions)


@pytest.mark.parametrize(
    ("select", "number"),
    [
        ("SELECT 4.5", 4.5),
        ("SELECT '7'", 7),
        ("WITH a AS (SELECT 3 n) SELECT n FROM a", 3),
        ("SELECT NULL", None),
        ("SELECT 1 FROM DUAL WHERE 1 = 0", None),
        ("SELECT TRUE", 1),
    ],
)
def test_numbers(session: Session, select: str, number: float | None) -> None:
    assert answer_to(session, select) == number


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("SELECT 'much'", "no number"),
        ("SELECT 1, 2", "2 columns instead of one number"),
        ("SELECT n FROM nowhere.t", "1049|1142|1146|denied"),
    ],
)
def test_what_is_no_number(session: Session, select: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        answer_to(session, select)


def test_nothing_is_written(shard: PrivateServer, sessions: LoadSessions) -> None:
    """Whatever the account may do."""
    session = sessions.on(endpoint_of(shard, "root"))
    with pytest.raises(ServerSaid, match="1792"):
        session.run("CREATE TABLE mysql.not_made (n INT)")


def test_a_session_is_kept_until_it_is_given_up(shard: PrivateServer, sessions: LoadSessions) -> None:
    first = sessions.on(endpoint_of(shard))
    assert sessions.on(endpoint_of(shard)) is first
    shard.sql(f"KILL {answer_to(first, 'SELECT CONNECTION_ID()'):.0f}")
    with pytest.raises(ConnectionLost):
        threads_running(first)
    sessions.give_up()
    assert threads_running(sessions.on(endpoint_of(shard))) is not None
