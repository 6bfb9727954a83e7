"""A shard whose log has not moved costs an epoch neither a task nor a login, and is identified all the same."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump
from catchment.model.source import Endpoint
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source import session
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.servers.chosen import chosen_server

EPOCHS = 5


@pytest.fixture
def quiet() -> Iterator[PrivateServer]:
    """A shard that nobody writes to, and whose log a test may reset."""
    with chosen_server(server_id=142) as server:
        yield server


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    return run_here(monkeypatch)


@pytest.fixture
def steps(
    quiet: PrivateServer, shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, here: Here
) -> Steps:
    """A feed whose shards `moving` and `quiet` are copied."""
    steps = Steps(tmp_path, {"moving": shard, "quiet": quiet}, fresh_schema(shard, quiet))
    for name in steps.servers:
        steps.sql(name, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    steps.sql("moving", "CREATE TABLE alone (id INT PRIMARY KEY)", "INSERT INTO alone VALUES (1)")
    steps.must_be_equal("t", "id")
    return steps


def follow(steps: Steps) -> None:
    """Run the feed over some epochs in which one shard moves."""
    with FeedRun(steps.feed) as run:
        for number in range(EPOCHS):
            before = len(run.epochs)
            steps.sql("moving", f"INSERT INTO t VALUES ({10 + number})")
            run.wait_for_epochs(before + 1)
        run.wait_for_log({"moving": steps.servers["moving"]})


def test_only_the_shard_that_moves_has_tasks_and_logins(
    steps: Steps, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins: Counter[str] = Counter()
    really = session._logged_in

    def counted(endpoint: Endpoint, *rest: object) -> session.Session:
        logins[endpoint.shard] += 1
        return really(endpoint, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "_logged_in", counted)
    here.done.clear()
    follow(steps)
    assert len(here.done) >= EPOCHS
    assert {task.endpoint.shard for tasks in here.done for task in tasks} == {"moving"}
    # What a start asks, and the clock's own session.
    assert logins["quiet"] < EPOCHS + 5 < logins["moving"]
    assert steps.lake("t", "id") == steps.source("t", "id")
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    assert len({row.manifest.cut.positions["quiet"].at for row in rows[-EPOCHS:]}) == 1


def test_a_quiet_shard_whose_log_is_reset_begins_again(steps: Steps, quiet: PrivateServer) -> None:
    """Also where the new log comes to the very offset of the old one before the next epoch."""

    def reset() -> None:
        end = quiet.log_end()
        quiet.sql("RESET MASTER")
        while quiet.log_end()[1] < end[1]:
            steps.sql("quiet", f"INSERT INTO t VALUES ({quiet.log_end()[1]})")

    with FeedRun(steps.feed) as run:
        steps.sql("moving", "INSERT INTO t VALUES (100)")
        run.wait_for_epochs(1)
        reset()
        steps.sql("moving", "INSERT INTO t VALUES (200)")
        newest = run.wait("a stale table", lambda epochs: bool(epochs[-1].stale))
        steps.sql("moving", "INSERT INTO alone VALUES (2)")
        run.wait_for_log({"moving": steps.servers["moving"]})
        assert steps.lake("alone", "id") == steps.source("alone", "id") == [("moving", 1), ("moving", 2)]
        assert [one.table.name for one in run.epochs[-1].stale] == ["t"]
    assert "reset" in newest.stale[0].reason
    dump(steps.file, "start", wait=0)
    steps.renew("CREATE TABLE IF NOT EXISTS u (id INT)", "DROP TABLE u")
    steps.must_be_equal("t", "id")
