"""What a run leaves behind when it cannot begin, and what the next one finds."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.engine import context
from catchment.feed import runner
from catchment.model.errors import EngineError
from catchment.state.store import Store
from catchment.watch.status import read_status
from tests.promises.exact.feedrun import make_feed


@pytest.fixture
def feed(shard: PrivateServer, tmp_path: Path) -> Feed:
    shard.sql(
        "DROP DATABASE IF EXISTS begun", "CREATE DATABASE begun", "CREATE TABLE begun.t (id INT PRIMARY KEY)"
    )
    return make_feed(tmp_path, {"-80": shard}, "begun", chunk_rows=100)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark master that does not answer, without the wait for it."""

    def refuse(*arguments: object) -> None:
        raise EngineError("no Spark")

    monkeypatch.setattr(context, "context", refuse)


def start(feed: Feed) -> None:
    with pytest.raises(EngineError, match="no Spark"):
        runner.run_feed(feed, until_caught_up=True, stop=threading.Event())


@pytest.mark.usefixtures("no_spark")
def test_without_spark_neither_clock_nor_store_stay_open(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Store] = []
    really = Store.close

    def close(store: Store) -> None:
        closed.append(store)
        really(store)

    monkeypatch.setattr(Store, "close", close)
    start(feed)
    assert [thread.name for thread in threading.enumerate() if thread.name == "clock"] == []
    assert len(closed) == 1


@pytest.mark.usefixtures("no_spark")
def test_a_state_store_lost_after_starts_that_brought_no_epoch(feed: Feed) -> None:
    for _ in range(3):
        start(feed)
    Path(feed.state.get_secret_value().removeprefix("sqlite:///")).unlink()
    start(feed)


@pytest.mark.usefixtures("no_spark")
def test_a_run_that_cannot_begin_leaves_its_exit_code_and_error(feed: Feed) -> None:
    start(feed)
    start(feed)
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        found = read_status(store)
    assert found.runner == ""
    assert found.run is not None
    assert (found.run.exit_code, found.run.ended is not None) == (7, True)
    assert [(error.kind, error.message, error.count) for error in found.errors] == [
        ("EngineError", "no Spark", 2)
    ]
