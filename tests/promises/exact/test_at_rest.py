"""A source at rest: no task is handed out, and yet every turn asks each shard whether its log is still the same."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump
from catchment.feed.runner import run_feed
from catchment.feed.shard_reader import ShardReader
from catchment.model.errors import ConnectionLost
from catchment.model.position import Resets
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source.offsets import ask_resets
from catchment.watch.report import Observer, Rest
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import chosen_server

TURNS = 5


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A shard whose log these tests reset."""
    with chosen_server(server_id=141) as server:
        yield server


@pytest.fixture
def steps(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": own}, fresh_schema(own))
    steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    steps.run()
    return steps


def rest(steps: Steps, at_turn: Callable[[int], None] = lambda turn: None) -> int:
    """Follow for some turns at rest; how many there were."""
    stop, turns = threading.Event(), [0]

    def at_rest(rest: Rest) -> None:
        turns[0] += 1
        at_turn(turns[0])
        if turns[0] >= TURNS:
            stop.set()

    run_feed(steps.feed, until_caught_up=False, observer=Observer(rested=at_rest), stop=stop)
    return turns[0]


def test_no_task_is_handed_out_and_a_shard_that_goes_away_may_come_back(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = run_here(monkeypatch)
    asked, lost = [0], [0]

    def ask(*arguments: object) -> Resets:
        asked[0] += 1
        if lost[0]:
            lost[0] -= 1
            raise ConnectionLost("shard a is away")
        return ask_resets(*arguments)  # type: ignore[arg-type]

    def away(turn: int) -> None:
        lost[0] = 2 if turn == 2 else 0

    monkeypatch.setattr(f"{ShardReader.__module__}.ask_resets", ask)
    assert rest(steps) == TURNS
    assert here.done == []
    assert asked[0] >= TURNS
    assert rest(steps, away) == TURNS
    assert lost == [0]
    steps.sql("a", "INSERT INTO t VALUES (3)")
    steps.must_be_equal("t", "id")
    assert here.done != []


def test_a_log_that_is_reset_at_rest(steps: Steps, own: PrivateServer) -> None:
    """The new log may come to the very offset of the old one between two turns."""
    for quick in (False, True):

        def reset(turn: int, quick: bool = quick) -> None:
            if turn == 2:
                end = own.log_end()
                own.sql("RESET MASTER")
                while quick and own.log_end()[1] < end[1]:
                    own.sql(f"INSERT INTO {steps.schema}.t VALUES ({own.log_end()[1]})")

        assert rest(steps, reset) == TURNS
        newest = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
        assert newest is not None
        assert "reset" in newest.manifest.stale[0].reason, f"quick: {quick}"
        dump(steps.file, "start", wait=0)
        steps.renew("CREATE TABLE u (id INT)", "DROP TABLE u")
        steps.must_be_equal("t", "id")
