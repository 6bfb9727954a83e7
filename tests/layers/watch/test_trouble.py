"""What a run tries again is counted, logged ever more rarely, and forgotten once it succeeds."""

import logging

import pytest

from catchment.model.errors import ConnectionLost, CutMissed, EngineError, ServerSaid, StateAway
from catchment.watch.troubles import Troubles
from tests.world.worlds import SetClocks, put

SECOND = 1_000_000
START = 1_763_784_727 * SECOND


class Now(SetClocks):
    """The time that a test sets."""

    us: int


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    clocks = Now(us=START)
    put(monkeypatch, clocks)
    return clocks


def test_a_shard_that_is_away_is_told_with_since_and_try(now: Now) -> None:
    troubles = Troubles()
    for _ in range(7):
        troubles.failed(ConnectionLost("shard -80 at db1:3306: refused"), "-80", now.us)
        now.us += 10 * SECOND
    (found,) = list(troubles.now)
    assert (found.shard, found.since_us, found.tries, found.kind) == ("-80", START, 7, "ConnectionLost")
    assert (
        str(found) == "shard -80 is away since 2025-11-22T04:12:07Z (try 7): shard -80 at db1:3306: refused"
    )
    troubles.passed("80-")
    assert list(troubles.now) == [found]
    troubles.passed("-80")
    assert list(troubles.now) == []
    (noted,) = troubles.take_errors()
    assert (noted.count, noted.first_us, noted.last_us) == (7, START, START + 60 * SECOND)
    assert troubles.take_errors() == ()


def test_a_try_that_takes_long_counts_from_its_beginning(now: Now) -> None:
    troubles = Troubles()
    troubles.failed(ConnectionLost("timed out"), "-80", now.us - 10 * SECOND)
    assert troubles.now[0].since_us == START - 10 * SECOND


def test_it_is_logged_at_once_and_then_more_and_more_rarely(
    now: Now, caplog: pytest.LogCaptureFixture
) -> None:
    troubles = Troubles()
    told: list[int] = []
    with caplog.at_level(logging.INFO):
        for _ in range(5 * 3600):
            before = len(caplog.records)
            troubles.failed(ConnectionLost("refused"), "-80")
            told += [(now.us - START) // SECOND] * (len(caplog.records) - before)
            now.us += SECOND
        assert told == [0, 60, 120, 240, 480, 960, 1920, 3840, 7440, 11040, 14640]
        caplog.clear()
        troubles.passed("-80")
        troubles.passed("-80")
    assert [record.message for record in caplog.records] == [
        "shard -80 answers again after 18000 s (18,000 tries)"
    ]
    assert [record.levelname for record in caplog.records] == ["INFO"], "that a trouble is over is none"


def test_an_epoch_that_is_read_twice_is_not_worth_a_line(now: Now, caplog: pytest.LogCaptureFixture) -> None:
    troubles = Troubles()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            troubles.failed(CutMissed("torn"))
        troubles.passed()
        assert caplog.records == []
        for _ in range(3):
            troubles.failed(CutMissed("torn"))
        assert [record.message for record in caplog.records] == [
            "the epoch is read again since 2025-11-22T04:12:07Z (try 3): torn"
        ]


def test_what_the_loop_meets_of_the_clock_is_one_trouble(now: Now) -> None:
    troubles, error = Troubles(), ConnectionLost("refused")
    troubles.failed(error, "-80")
    troubles.failed(error)
    assert [(one.shard, one.tries) for one in troubles.now] == [("-80", 1)]


def test_a_server_that_is_busy_is_not_away(now: Now) -> None:
    troubles = Troubles()
    troubles.failed(ServerSaid(1205, "Lock wait timeout exceeded"), "-80")
    assert str(troubles.now[0]).startswith("shard -80 fails since ")


def test_a_state_store_that_is_away_is_told_at_once_beside_an_epoch(
    now: Now, caplog: pytest.LogCaptureFixture
) -> None:
    troubles = Troubles()
    with caplog.at_level(logging.INFO):
        troubles.failed(CutMissed("torn"))
        troubles.went_away(StateAway("refused"))
        now.us += 3 * SECOND
        troubles.came_back(StateAway.away)
    assert [record.message for record in caplog.records] == [
        "the state store is away since 2025-11-22T04:12:07Z (try 1): refused",
        "the state store answers again after 3 s (1 try)",
    ]
    assert [one.kind for one in troubles.now] == ["CutMissed"]


def test_a_trouble_that_passes_at_once_is_heard_of(now: Now) -> None:
    heard: list[list[str]] = []
    troubles = Troubles()
    troubles.heard = lambda current: heard.append([one.kind for one in current])
    troubles.failed(EngineError("a worker died"))
    troubles.passed()
    assert heard == [["EngineError"], []]
