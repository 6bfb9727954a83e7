"""Which view serves a turn: one that counts there, and that nobody was asked something of before, if there is one."""

from typing import Any

import pytest

from catchment import world
from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.stream import views
from catchment.serve.stream.tables import Chosen, Known
from catchment.serve.stream.views import Views
from catchment.source.view import IDLE_SECONDS, View

KEY = ForeignKey("f", TableId("d", "c"), ("p",), TableId("d", "p"), ("id",), Does.FOLLOW)
KNOWN = Known(Chosen(), {}, {}, {})


class _Session:
    def __init__(self) -> None:
        self.open = True

    def abandon(self) -> None:
        self.open = False


class Shard:
    """A shard whose log ends at `end`; the stream asks for views there."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.end, self.seconds = 100, 0.0
        self.sessions: list[_Session] = []
        self.views = Views(Endpoint("-", "h", 1, "u", "p"))
        self.views.told(at(1), acted=True)
        patch.setattr(views, "opened_view", self._opened)
        patch.setattr(world, "steady_seconds", lambda: self.seconds)

    def _opened(self, endpoint: Any, server: Any, floor: LogOffset, prepared: Any) -> View:
        session: Any = _Session()
        self.sessions.append(session)
        return View(floor, prepared, at(self.end), self.seconds, session)

    def view(self, place: int) -> View | None:
        """The view for the log behind a place."""
        position = Position(at(place), 1, Server(1, "h", 1), GtidList())
        return self.views.at(ShardState(position, at(place), keys=(KEY,)), KNOWN)

    @property
    def held(self) -> int:
        """How many sessions are held."""
        return sum(one.open for one in self.sessions)


def at(offset: int) -> LogOffset:
    return LogOffset("log.000001", offset)


@pytest.fixture
def shard(monkeypatch: pytest.MonkeyPatch) -> Shard:
    return Shard(monkeypatch)


def test_a_view_counts_from_where_the_log_ended_behind_it(shard: Shard) -> None:
    assert shard.view(99) is None
    found = shard.view(100)
    assert found is not None
    assert found.told == at(100)
    assert shard.view(150) is found, "a later place is one of its log, too"


def test_one_that_was_asked_is_given_up_once_another_counts(shard: Shard) -> None:
    first, shard.end = shard.view(100), 120
    assert first is not None
    first.used = True
    assert shard.view(110) is first, "no other one counts yet"
    second = shard.view(120)
    assert second is not None
    assert second is not first
    assert first.lost
    assert not second.used


def test_so_many_are_held_however_long_it_takes(shard: Shard) -> None:
    for place in range(100, 200):
        shard.end, shard.seconds = place, shard.seconds + 2.0
        assert shard.view(place) is not None
        assert shard.held <= 3
    assert len(shard.sessions) > 50, "they are replaced while the log goes on"
    shard.views.close()
    assert shard.held == 0


def test_at_rest_they_are_replaced_seldom(shard: Shard) -> None:
    for _ in range(1000):
        shard.seconds += 0.1
        shard.view(100)
    assert len(shard.sessions) <= 6


def test_one_that_was_held_for_too_long_is_let_go(shard: Shard) -> None:
    first, shard.end = shard.view(100), 200
    assert first is not None
    shard.seconds += IDLE_SECONDS + 1
    assert shard.view(100) is None
    assert first.lost


def test_one_that_the_log_does_not_reach_in_time_is_replaced(shard: Shard) -> None:
    shard.end = 200
    assert shard.view(100) is None
    shard.seconds += IDLE_SECONDS + 1
    assert shard.view(100) is None
    assert [one.open for one in shard.sessions] == [False, True]


def test_without_foreign_keys_none_is_held(shard: Shard) -> None:
    shard.view(100)
    position = Position(at(100), 1, Server(1, "h", 1), GtidList())
    assert shard.views.at(ShardState(position, at(100), keys=()), KNOWN) is None
    assert shard.held == 0
