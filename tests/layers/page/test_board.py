"""What a page says of a run that does not turn, and of a state store that does not answer, without either."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client import CollectorRegistry

from catchment.config import load
from catchment.model.errors import StateError
from catchment.page import kept
from catchment.page.board import Board
from catchment.page.health import PATIENCE_SECONDS as HEALTHY_SECONDS
from catchment.page.health import Health
from catchment.page.kept import Kept
from catchment.page.routes import page_of
from catchment.state.notes import Trouble
from catchment.state.store import Store
from catchment.watch.report import Observer, Rest
from tests.layers.page.test_page import asked, shown
from tests.layers.page.test_server import serving
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.worlds import SetClocks, put


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    """Of a feed whose shards and state store nobody asks."""
    shard = {"name": "-80", "host": "127.0.0.1", "port": 9, "user": "u", "password": "p"}
    described = {
        "name": "shop",
        "source": {"keyspace": "shop", "shards": [shard]},
        "tables": ["*.*"],
        "sink": {"path": "lake"},
        "state": "sqlite:///state.sqlite",
    }
    (tmp_path / "feed.yaml").write_text(yaml.safe_dump(described))
    told = Kept(cast(Store, None))
    yield Board(load(tmp_path / "feed.yaml"), told)
    told.stop()


def test_a_state_store_that_is_slow_holds_up_no_health(
    board: Board, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More ask for the status than are served at once."""
    held = threading.Event()
    monkeypatch.setattr(kept, "read_status", lambda store: held.wait(PATIENCE_SECONDS))
    monkeypatch.setattr(kept, "_FIRST_SECONDS", 0.1)
    board.before(Observer()).rested(Rest(0))
    with serving(port, answer=page_of(board, CollectorRegistry())):
        askers = [threading.Thread(target=asked, args=(port, "/status.json")) for _ in range(20)]
        for asker in askers:
            asker.start()
        assert asked(port, "/healthz") == (200, "ok\n")
        assert shown(port)["status"] is None
        for asker in askers:
            asker.join()
        held.set()


def test_a_store_that_fails_is_told_beside_what_it_said_before(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = [None]

    def read(store: Store) -> Any:
        if isinstance(said[-1], Exception):
            raise said[-1]
        return said[-1]

    monkeypatch.setattr(kept, "read_status", read)
    monkeypatch.setattr(kept, "REFRESH_SECONDS", 0.0)
    assert board.shown().status_fault == ""
    said.append(StateError("the store is away"))
    until("the fault is shown", lambda: board.shown().status_fault == "the store is away")
    said.append(None)
    until("the store is back", lambda: board.shown().status_fault == "")


def test_a_run_that_turns_no_more_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SetClocks(steady=1000)
    put(monkeypatch, clocks)
    health = Health(2.0)
    health.doing("starting Spark")
    assert health.fault(()) == "no epoch yet: starting Spark"
    health.turned()
    assert health.fault(()) == ""
    clocks.steady = 1000 + HEALTHY_SECONDS + 2
    assert health.fault(()) == ""
    clocks.steady += 10
    away = Trouble("-80", 0, 7, "ConnectionLost", "refused", "the shard")
    assert health.fault([away]) == (
        "no epoch and no rest for 72 s; shard -80 is away since 1970-01-01T00:00:00Z (try 7): refused"
    )
