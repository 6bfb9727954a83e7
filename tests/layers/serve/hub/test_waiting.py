"""Clients that are not told anything yet, or not now: in line, and at what they may have without an acknowledgement."""

from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest

from catchment import world
from catchment.model.errors import ClientLeft
from catchment.model.source import Endpoint
from catchment.model.subscription import Subscription
from catchment.serve.hub import hub as hub_module
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.entrant import Entrant
from catchment.serve.hub.hub import Hub
from catchment.serve.hub.subscribed import Subscribed
from catchment.serve.hub.telling import Known
from catchment.serve.hub.turnstile import Visit
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import Source

SOURCE = Source({"ks/-": Endpoint("ks/-", "h", 3306, "u", "p")})


class Words:
    """Each message is a word."""

    known: Known = MappingProxyType({})

    def messages(self, turn: Any) -> Iterator[str]:
        yield "heartbeat" if isinstance(turn, Heartbeat) else "turn"

    def catch_up(self, known: Known) -> Iterator[str]:
        return iter(())

    def size(self, message: str) -> int:
        return 10


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that moves on where somebody waits."""
    found = [1000.0]
    monkeypatch.setattr(world, "steady_seconds", lambda: found[0])
    return found


@pytest.fixture
def line(now: list[float], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A turnstile that lets somebody in as this list says, and does not any more once it is empty."""
    answers: list[bool] = []

    def enter(visit: Visit, *, copies: bool, timeout: float) -> bool:
        now[0] += timeout
        return answers.pop(0) if answers else False

    monkeypatch.setattr(Visit, "enter", enter)
    return answers


def entrant(hub: Hub, heartbeat: float, stays: Any = lambda: True) -> Entrant[str]:
    ask = Ask(flags=Flags(heartbeat_interval=heartbeat))
    return Entrant(hub.opening(ask, Words, "one", stays), hub.close, Words(), heartbeat)


@pytest.mark.parametrize(("heartbeat", "told"), [(0.5, 10), (1.0, 10), (2.5, 3), (0.0, 0)])
def test_who_stands_in_line_hears_heartbeats(line: list[bool], heartbeat: float, told: int) -> None:
    one = entrant(Hub(SOURCE), heartbeat)
    assert [word for _ in range(10) for word in one.pull()] == ["heartbeat"] * told
    one.close()


def test_who_leaves_the_line_gives_back_its_place(line: list[bool]) -> None:
    """Whether its connection says so, or its client is closed."""
    hub = Hub(SOURCE, limits=hub_module.Limits(clients=1))
    there = [True]
    first = entrant(hub, 0.0, lambda: there[0])
    assert list(first.pull()) == []
    there[0] = False
    with pytest.raises(ClientLeft):
        list(first.pull())
    second = entrant(hub, 0.0)
    assert list(second.pull()) == []
    second.close()
    assert list(entrant(hub, 0.0).pull()) == []


def test_who_is_let_in_is_told_by_its_stream(line: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    line += [False, True]
    begun: list[Any] = []

    def started(*args: Any) -> Any:
        begun.append(args)
        raise ClientLeft("far enough")

    monkeypatch.setattr(hub_module, "started", started)
    one = entrant(Hub(SOURCE), 1.0)
    assert list(one.pull()) == ["heartbeat"]
    assert not begun
    with suppress(ClientLeft):
        list(one.pull())
    assert len(begun) == 1


class Full:
    """A client that has been given all that it may have."""

    def __init__(self, now: list[float], wait: float) -> None:
        self.now, self.wait, self.told = now, wait, object()

    def pull(self) -> Iterator[str]:
        self.told = object()
        yield "turn"

    def waited(self) -> Iterator[str]:
        yield "heartbeat"


class Asked:
    """The state store, which counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Subscription:
        self.times += 1
        return Subscription("search", "{}", "", 1, 0)


@pytest.mark.parametrize("wait", [0.1, 1.0])
def test_a_subscriber_at_its_limit_hears_heartbeats(
    now: list[float], monkeypatch: pytest.MonkeyPatch, wait: float
) -> None:
    """And it looks for what was acknowledged at another server."""

    class Passing:
        """An event for which nobody waits in vain: time passes."""

        def __init__(self) -> None:
            self.set_now = False

        def wait(self, timeout: float) -> bool:
            now[0] += 0.0 if self.set_now else timeout
            return self.set_now

        def set(self) -> None:
            self.set_now = True

        def clear(self) -> None:
            self.set_now = False

    monkeypatch.setattr(world, "event", Passing)
    asked, client = Asked(), Full(now, wait)
    one: Subscribed[str] = Subscribed(client, Words().size, asked(), asked, 10)  # type: ignore[arg-type]
    assert list(one.pull()) == ["turn"]
    asked.times = 0
    began, words = now[0], []
    while now[0] < began + 20:
        words += list(one.pull())
    assert set(words) == {"heartbeat"}
    assert len(words) == asked.times == pytest.approx(200, abs=1)
    one.wake()
    times = asked.times
    list(one.pull())
    assert asked.times == times + 1
