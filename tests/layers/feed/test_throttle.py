"""Checks in threads of their own: what is not known does not pass, a check that hangs delays nobody, and where nothing
is to be copied nobody is asked."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from catchment import world
from catchment.config import ThrottleConfig
from catchment.feed import throttle as throttle_module
from catchment.feed.checks import Probe
from catchment.feed.rates import Rates
from catchment.feed.throttle import Throttle
from catchment.model.errors import SourceError
from catchment.model.throttle import Breach, Check
from catchment.source.load import LoadSessions
from catchment.watch.throttles import Throttles
from tests.world.patience import PATIENCE_SECONDS, until

Ask = Callable[[], Breach | None]
FULL = Breach(Check.QUERY, "is 7, and is to be at most 5", 7, 5)


def wait(holds: Callable[[], object]) -> None:
    until("what the test waits for", holds)


class Asked:
    """Checks that a test answers, by shard; `times` they were made."""

    def __init__(self, answers: dict[str, Ask]) -> None:
        self.answers = answers
        self.times: list[float] = []
        self.told = Throttles()
        self.throttle = Throttle(self._probes, None, self.told)

    def _probes(self, shard: str, config: ThrottleConfig) -> tuple[Probe, ...]:
        if shard not in self.answers:
            return ()

        def ask(sessions: LoadSessions) -> Breach | None:
            self.times.append(time.monotonic())
            return self.answers[shard]()

        return (Probe(Check.QUERY, ask),)

    def shut(self, *shards: str) -> frozenset[str]:
        return self.throttle.shut(shards)


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked({"a": lambda: None})
    yield made
    made.throttle.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks are made again at once, and the first epoch waits for their answers however busy the machine is."""
    monkeypatch.setattr(throttle_module, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(throttle_module, "_FIRST_SECONDS", PATIENCE_SECONDS)


@pytest.mark.usefixtures("at_once")
def test_a_shard_copies_when_its_checks_let_it(asked: Asked) -> None:
    assert asked.shut("a", "b") == frozenset()
    asked.answers["a"] = lambda: FULL
    wait(lambda: asked.shut("a", "b") == {"a"})
    (one,) = asked.told.now
    assert (one.shard, one.breach) == ("a", FULL)
    asked.answers["a"] = lambda: None
    wait(lambda: not asked.shut("a", "b"))
    assert asked.told.now == ()


@pytest.mark.usefixtures("at_once")
def test_a_check_that_cannot_be_made_lets_nothing_pass_and_is_tried_again(asked: Asked) -> None:
    def fails() -> None:
        raise SourceError("no such table")

    def broken() -> None:
        raise RuntimeError("password=hunter2")

    asked.answers["a"] = fails
    assert asked.shut("a", "b") == {"a"}
    assert str(asked.told.now[0].breach) == "query cannot be asked: no such table"
    asked.answers["a"] = broken
    wait(lambda: asked.shut("a", "b") == {"a"} and "RuntimeError" in asked.told.now[0].breach.said)
    assert "hunter2" not in asked.told.now[0].breach.said
    asked.answers["a"] = lambda: None
    wait(lambda: not asked.shut("a", "b"))


def test_a_check_that_hangs_delays_no_epoch_and_lets_nothing_pass(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()

    def late() -> None:
        hangs.wait(PATIENCE_SECONDS)

    asked.answers = dict.fromkeys("abcd", late)
    began = time.monotonic()
    assert asked.shut("a", "b", "c", "d") == {"a", "b", "c", "d"}
    first = time.monotonic() - began
    began = time.monotonic()
    for _ in range(100):
        assert asked.shut("a", "b", "c", "d") == {"a", "b", "c", "d"}
    assert time.monotonic() - began < first, "a hundred epochs wait less than the first one"
    assert str(asked.told.now[0].breach) == "query has given no answer yet"
    hangs.set()
    wait(lambda: not asked.shut("a", "b", "c", "d"))
    hangs.clear()
    monkeypatch.setattr(throttle_module, "FRESH_SECONDS", 0.2)
    monkeypatch.setattr(throttle_module, "CHECK_SECONDS", 0.01)
    wait(lambda: "a" in asked.shut("a") and "no answer for" in asked.told.now[0].breach.said)
    hangs.set()


def test_checks_are_made_once_a_second(asked: Asked) -> None:
    wait(lambda: asked.shut("a") == frozenset() and len(asked.times) >= 4)
    gaps = [b - a for a, b in zip(asked.times, asked.times[1:], strict=False)]
    assert min(gaps) > 0.9


def test_nobody_is_asked_where_nothing_is_to_be_copied(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle_module, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(throttle_module, "_UNWANTED_SECONDS", 0.2)
    assert asked.shut() == frozenset()
    assert asked.times == []
    wait(lambda: asked.shut("a") == frozenset() and asked.times)

    def threads() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name == "throttle a"]

    wait(lambda: not threads())
    made = len(asked.times)
    asked.shut()
    assert not threads()
    assert len(asked.times) == made
    wait(lambda: asked.shut("a") == frozenset() and len(asked.times) > made)


def test_it_ends_with_the_run(asked: Asked) -> None:
    asked.shut("a")
    asked.throttle.close()
    wait(lambda: not [one for one in threading.enumerate() if one.name == "throttle a"])


class Seconds:
    """A clock that the test sets."""

    now = 100.0

    def steady_seconds(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    made = Seconds()
    monkeypatch.setattr(world, "steady_seconds", made.steady_seconds)
    return made


def test_a_shard_copies_no_more_than_its_rates(clock: Seconds) -> None:
    rates = Rates(ThrottleConfig.model_validate({"rows_per_second": 100, "bytes_per_second": "1MB"}))
    assert not rates.waits("a")
    assert (rates.allowance("a").rows, rates.allowance("a").bytes) == (200, 2 << 20)
    rates.take("a", 200, 1000)
    assert rates.waits("a")
    assert not rates.waits("b"), "each shard has a budget of its own"
    assert rates.breach("a") is None, "it is paced as it is to be"
    clock.now += 1.0
    assert not rates.waits("a")
    rates.take("a", 1100, 0)
    found = rates.breach("a")
    assert found is not None
    assert str(found) == "rows_per_second is 100, and 1,000 rows were read ahead of it"
    clock.now += 10.9
    assert rates.waits("a")
    clock.now += 0.2
    assert not rates.waits("a")
    rates.take("a", 0, 3 << 20)
    assert rates.waits("a")


def test_rates_that_change(clock: Seconds) -> None:
    rates = Rates(ThrottleConfig(rows_per_second=100))
    rates.take("a", 1200, 0)
    rates.change(ThrottleConfig(rows_per_second=1000))
    assert rates.waits("a")
    clock.now += 2.0
    assert not rates.waits("a")
    rates.take("a", 100_000, 0)
    rates.change(ThrottleConfig())
    assert not rates.waits("a")
    rates.change(ThrottleConfig(rows_per_second=10))
    assert rates.allowance("a").rows == 20


def test_a_shard_that_read_ahead_is_told_of(clock: Seconds) -> None:
    told = Throttles()
    throttle = Throttle(throttle=ThrottleConfig(rows_per_second=10), told=told)
    throttle.rates.take("a", 25, 0)
    assert throttle.shut(["a", "b"]) == {"a"}
    assert list(told.now) == []
    throttle.rates.take("a", 100, 0)
    throttle.shut(["a", "b"])
    assert [one.breach.check for one in told.now] == [Check.ROWS_PER_SECOND]
