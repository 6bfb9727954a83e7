"""Which turns reach a client, and what it receives while nothing happens."""

from typing import Any

import pytest

from catchment import world
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.turns import Pace


class SomeTurn:
    """A turn in which a log went on; `told`: it has something for the client."""

    def __init__(self, *, told: bool) -> None:
        self.told = told


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found = [1000.0]
    monkeypatch.setattr(world, "steady_seconds", lambda: found[0])
    return found


def received(pace: Pace, now: list[float], seconds: float, turn: Any) -> list[tuple[float, Turn | Heartbeat]]:
    """What a client receives, at a turn every half a second, and when."""
    began = now[0]
    found: list[tuple[float, Turn | Heartbeat]] = []
    while now[0] < began + seconds:
        now[0] += 0.5
        said = pace.told(turn)
        if said is not None:
            found.append((now[0] - began, said))
    return found


def test_where_a_log_goes_on_a_place_comes_every_ten_seconds_also_between_heartbeats(
    now: list[float],
) -> None:
    turn: Any = SomeTurn(told=False)
    found = received(Pace(heartbeat_interval=2.0), now, 25.0, turn)
    assert [at for at, said in found if said is turn] == [10.0, 20.0]
    assert [at for at, said in found if isinstance(said, Heartbeat)] == [2, 4, 6, 8, 12, 14, 16, 18, 22, 24]


def test_while_no_log_goes_on_there_are_heartbeats_alone(now: list[float]) -> None:
    found = received(Pace(heartbeat_interval=5.0), now, 25.0, None)
    assert [at for at, said in found if isinstance(said, Heartbeat)] == [5, 10, 15, 20, 25]
    assert len(found) == 5
    assert received(Pace(), now, 25.0, None) == []


def test_a_turn_with_rows_puts_off_the_next_heartbeat(now: list[float]) -> None:
    pace = Pace(heartbeat_interval=2.0)
    told: Any = SomeTurn(told=True)
    assert received(pace, now, 1.5, told) == [(0.5, told), (1.0, told), (1.5, told)]
    assert [at for at, _ in received(pace, now, 2.5, None)] == [2.0]
