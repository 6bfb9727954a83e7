"""A session that stands by for the next dump: it is used once, only while it is fresh, and never left behind."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from catchment import world
from catchment.demo.server import PrivateServer
from catchment.model.errors import SourceError
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.source import standby as module
from catchment.source.dump import dumping
from catchment.source.session import Session, connect
from catchment.source.standby import Standby
from catchment.wire.log.decoder import LogDecoder
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with chosen_server(server_id=171) as server:
        yield server


@pytest.fixture
def endpoint(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, "catchment", server.password)


@pytest.fixture
def standby(endpoint: Endpoint) -> Iterator[Standby]:
    with connect(endpoint) as session:
        known = session.server
    with world.pool(1, "standby") as pool:
        standby = Standby(endpoint, known, pool)
        yield standby
        standby.close()


def sessions(server: PrivateServer) -> set[int]:
    found = server.sql("SELECT id FROM information_schema.processlist WHERE user = 'catchment'")
    return {int(row[0]) for row in found}


def number(session: Session) -> int:
    row = session.row("SELECT CONNECTION_ID()")
    assert row is not None
    return int(row[0])


def awaited(server: PrivateServer, wanted: set[int]) -> None:
    """Wait until the server has these sessions and no other: it lets go of them a moment later."""
    until(
        f"the server has the sessions {wanted} alone, not",
        lambda: sessions(server) == wanted,
        seen=lambda: sessions(server),
    )


def test_it_is_used_once(server: PrivateServer, standby: Standby) -> None:
    standby.prepare()
    standby.prepare()
    first, second = standby(), standby()
    assert number(first) != number(second)
    awaited(server, {number(first), number(second)})
    first.close()
    second.close()


def test_a_dump_goes_through_it(server: PrivateServer, standby: Standby, endpoint: Endpoint) -> None:
    standby.prepare()
    start = LogOffset(server.log_end()[0], 4)
    with dumping(endpoint, standby, start, LogDecoder(start, set(), None)) as dump:
        assert dump.pull() > 0
    awaited(server, set())


def test_a_stale_one_is_given_up(
    server: PrivateServer, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby.prepare()
    before = standby()
    standby.prepare()
    monkeypatch.setattr(module, "_FRESH_SECONDS", 0.0)
    after = standby()
    awaited(server, {number(before), number(after)})
    before.close()
    after.close()


def test_at_rest_none_stands_by(
    server: PrivateServer, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby.prepare()
    standby.rest()
    monkeypatch.setattr(module, "_FRESH_SECONDS", 0.0)
    standby.rest()
    awaited(server, set())


def test_a_login_that_failed_is_tried_again(endpoint: Endpoint, standby: Standby) -> None:
    wrong = replace(endpoint, user="nobody")
    failing = Standby(wrong, standby._server, standby._pool)
    failing.prepare()
    with pytest.raises(SourceError, match="nobody"):
        failing()
    failing.close()
