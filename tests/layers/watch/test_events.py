"""Events as lines: each is written at once, and neither a slow reader nor one that has gone holds up the run."""

import json
import logging
import queue
import re
import threading
from typing import Any

import pytest

from catchment.model.errors import SourceError
from catchment.watch import events as module
from catchment.watch.events import Events
from tests.world.patience import PATIENCE_SECONDS


class Reader:
    """Takes lines, or waits with one of them until it may go on, or is gone."""

    def __init__(self) -> None:
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.may_read = threading.Event()
        self.may_read.set()
        self.waits = threading.Event()
        self.gone = False

    def write(self, line: str) -> None:
        if not self.may_read.is_set():
            self.waits.set()
        assert self.may_read.wait(PATIENCE_SECONDS)
        if self.gone:
            raise BrokenPipeError(32, "Broken pipe")
        self.lines.put(json.loads(line))

    def next(self) -> dict[str, Any]:
        return self.lines.get(timeout=PATIENCE_SECONDS)

    def all(self) -> list[dict[str, Any]]:
        found = []
        while not self.lines.empty():
            found.append(self.lines.get())
        return found


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def test_each_line_has_its_time_and_comes_before_the_next_event(
    reader: Reader, stop: threading.Event
) -> None:
    events = Events(reader.write, stop)
    events.tell("started", feed="shop")
    line = reader.next()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {"event": "started", "feed": "shop"}
    events.observer().doing("looking at 2 shards")
    assert reader.next()["what"] == "looking at 2 shards"
    stop.set()
    assert reader.next()["event"] == "stopping"
    events.ended(130, "stopped", epoch="e")
    (last,) = reader.all()
    assert (last["event"], last["exit_code"], last["state"], last["epoch"]) == ("ended", 130, "stopped", "e")


def test_an_error_that_is_not_ours_is_told_without_its_words(reader: Reader, stop: threading.Event) -> None:
    events = Events(reader.write, stop)
    events.ended(70, "failed", RuntimeError("password=hunter2"))
    error = reader.next()["error"]
    assert error["kind"] == "RuntimeError"
    assert "hunter2" not in error["message"]
    events = Events(reader.write, stop)
    events.ended(3, "failed", SourceError("shard -80: no"))
    assert reader.next()["error"] == {"kind": "SourceError", "message": "shard -80: no", "shard": ""}


def test_a_slow_reader_holds_up_nobody_and_is_told_what_was_left_out(
    reader: Reader, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 10)
    events = Events(reader.write, stop)
    reader.may_read.clear()
    events.tell("first")
    assert reader.waits.wait(PATIENCE_SECONDS)
    for number in range(15):
        events.observer().doing(str(number))
    reader.may_read.set()
    assert reader.next()["event"] == "first"
    assert (lost := reader.next())["event"] == "left_out"
    assert lost["events"] == 5
    assert [reader.next()["what"] for _ in range(10)] == [str(number) for number in range(10)]
    events.ended(0, "caught up")
    assert reader.next()["event"] == "ended"


def test_a_reader_that_is_gone_ends_the_telling_alone(
    reader: Reader, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    events = Events(reader.write, stop)
    reader.gone = True
    for _ in range(3):
        events.tell("something")
    events.ended(0, "caught up")
    assert reader.lines.empty()
    assert caplog.messages == ["the reader of events is gone (Broken pipe), and the feed goes on"]


def test_a_reader_that_never_reads_does_not_keep_the_command(
    reader: Reader, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "END_SECONDS_MAX", 0.1)
    events = Events(reader.write, stop)
    reader.may_read.clear()
    events.tell("first")
    assert reader.waits.wait(PATIENCE_SECONDS)
    events.ended(0, "caught up")  # comes back
    reader.may_read.set()


def test_an_event_that_cannot_be_made_is_logged(
    reader: Reader, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    events = Events(reader.write, stop)
    events.observer().committed("no report")  # type: ignore[arg-type]
    events.ended(0, "caught up")
    assert reader.next()["event"] == "ended"
    assert caplog.messages == ["telling what a run does failed, and the feed goes on"]


def test_warnings_are_events_beside_the_log(
    reader: Reader, stop: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    events, log = Events(reader.write, stop), logging.getLogger("catchment.somewhere")
    with events.warnings():
        log.warning("a table %s", "is stale")
        log.info("nobody wants to know")
        logging.getLogger("elsewhere").warning("of a library: it may hold a secret")
    events.ended(0, "caught up")
    assert [line.get("message") for line in reader.all()] == ["a table is stale", None]
    assert caplog.messages == ["a table is stale", "of a library: it may hold a secret"]
