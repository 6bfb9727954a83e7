"""Orders to a feed: pauses are quiet, restarts exact, and what was copied is not copied again."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.feed import commands
from catchment.feed.runner import Outcome, run_feed
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.errors import ConfigError, StateError
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state import orders
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import TableStatus
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS, until

ROWS = 2000
PROOF = "INSERT INTO other VALUES (NULL)"


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.set(copy={"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1})
    values = ", ".join(f"({key}, {key})" for key in range(1, ROWS + 1))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES {values}",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    return begun


def newest(steps: Steps) -> Manifest:
    row = newest_row(steps)
    assert row is not None
    return row.manifest


def table(steps: Steps, name: str = "t") -> TableStatus:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        return next(one for one in read_status(store).tables if one.table == f"{steps.schema}.{name}")


class Running(threading.Thread):
    """A run of the feed beside the test."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(daemon=True)
        self._feed, self.stopping = steps.feed, threading.Event()
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.outcome = run_feed(self._feed, until_caught_up=False, stop=self.stopping)
        except BaseException as error:
            self.error = error


def newest_row(steps: Steps) -> EpochRow | None:
    return EpochsTable(steps.feed.sink.path, steps.feed.name).newest()


def holds_the_lease(steps: Steps) -> bool:
    """Whether a run is there to answer orders."""
    try:
        with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
            return bool(read_status(store).runner)
    except StateError:  # there is no store yet
        return False


@contextmanager
def running(steps: Steps) -> Iterator[Running]:
    """A run that goes on until the block ends."""
    run = Running(steps)
    run.start()
    try:
        wait(lambda: run.error is not None or (holds_the_lease(steps) and newest_row(steps)))
        yield run
    finally:
        run.stopping.set()
        run.join()
    if run.error is not None:
        raise run.error


def wait(holds: Callable[[], object]) -> None:
    until("what a test waits for", holds)


def beat(steps: Steps) -> None:
    """Rows of `other`, which is copied, in an epoch that was planned later."""
    others = len(steps.lake("other", "id"))
    steps.everywhere(PROOF)
    wait(lambda: len(steps.lake("other", "id")) == others + 2)


def is_renewed(steps: Steps) -> bool:
    """Whether the table follows the log. Its new copy begins when other rows show that the old one is visible."""
    beat(steps)
    return table(steps).state is TableState.FOLLOWING


def answered(steps: Steps, action: str, name: str | None = "t") -> str:
    given = catchment.dump(steps.file, action, f"{steps.schema}.{name}", wait=PATIENCE_SECONDS)
    (one,) = given
    assert one.answer is not None
    return f"{'done' if one.answer.done else 'refused'}: {one.answer.said}"


@pytest.mark.promise("orders pause, resume and restart a copy")
def test_orders_to_a_run(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    with running(steps) as run:
        wait(lambda: table(steps).rows > 0)
        assert answered(steps, "pause") == "done: it is paused"
        paused = table(steps)
        assert paused.state is TableState.PAUSED
        assert 0 < paused.rows < 2 * ROWS
        steps.everywhere("UPDATE t SET n = n + 1000000 WHERE id IN (1, 1999)")
        # Were it not paused, each of these epochs would have brought rows.
        for _ in range(2):
            beat(steps)
            assert table(steps).rows == paused.rows
        held = {row[1]: row[2] for row in steps.lake("t", "id", "n")}
        assert held[1] == 1000001
        assert 1999 not in held
        assert answered(steps, "pause") == "done: it is paused already"
        assert answered(steps, "resume") == "done: it is copying"
        wait(lambda: newest(steps).cut.copied)
        assert table(steps).rows == 2 * ROWS
        assert answered(steps, "resume").startswith("refused: it is following")

        steps.set(copy={"chunk_rows_max": 1000, "group_time": "0s"})
        generation = newest(steps).shapes[-1].generation
        steps.everywhere("UPDATE t SET n = 0 WHERE id = 5")
        assert answered(steps, "restart") == "done: it is copied again"
        wait(lambda: is_renewed(steps))
        assert newest(steps).shapes[-1].generation > generation
        assert execute(["stop", str(steps.file)]) == 0
        assert "done: the run ends" in capsys.readouterr().out
        run.join(PATIENCE_SECONDS)
        assert run.outcome is not None
        assert run.outcome.ordered
    with pytest.raises(StateError, match="not run by anybody"):
        catchment.stop(steps.file)
    with pytest.raises(ConfigError, match="say which table"):
        catchment.dump(steps.file, "restart")
    with pytest.raises(ConfigError, match="expected one of start, pause, resume, restart"):
        catchment.dump(steps.file, "stop")
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


@pytest.mark.promise("orders wait for the next run, and their effect lasts")
def test_orders_without_a_run(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        answered(steps, "pause")
    rows = table(steps).rows
    steps.everywhere("INSERT INTO other VALUES (7)")
    steps.must_be_equal("other", "id")  # what is paused holds up no run
    assert table(steps).state is TableState.PAUSED
    assert table(steps).rows == rows
    steps.set(copy={"chunk_rows_max": 1000, "group_time": "0s"})
    catchment.dump(steps.file, "start")
    steps.must_be_equal("t", "id", "n")

    (kept,) = catchment.dump(steps.file, "restart", f"{steps.schema}.t")
    assert kept.answer is None
    began = newest(steps).epoch
    steps.renew(PROOF)
    assert max(shape.generation for shape in newest(steps).shapes) > began
    steps.must_be_equal("t", "id", "n")

    steps.set(schema_change="freeze")
    steps.everywhere("TRUNCATE t", "INSERT INTO t VALUES (1, 1)", PROOF)
    steps.run()
    assert table(steps).state is TableState.STALE
    assert execute(["dump", "start", str(steps.file), "--table", f"{steps.schema}.t"]) == 0
    assert "queued; a run carries it out" in capsys.readouterr().out
    steps.everywhere(PROOF)
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "n")
    assert execute(["tables", str(steps.file)]) == 0
    assert "following" in capsys.readouterr().out
    assert execute(["status", str(steps.file), "--json"]) == 0
    assert '"done"' in capsys.readouterr().out
    assert execute(["dump", "pause", str(steps.file), "--table", "shop.nothing"]) == 2


def test_an_order_is_obeyed_by_the_look_that_ends_the_run(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run at rest meets the order to copy a table again and the one to end at once."""
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
    steps.set(epoch={"interval": "1h", "tick": "50ms"})
    steps.everywhere(PROOF)
    with running(steps) as run:
        wait(lambda: len(steps.lake("other", "id")) == 4)  # now the loop waits for the next epoch
        with monkeypatch.context() as unlooked:
            unlooked.setattr(commands, "_LOOK_SECONDS", 1e9)
            again = catchment.dump(steps.file, "restart", f"{steps.schema}.t", wait=0)
            asked = [*again, catchment.stop(steps.file, wait=0)]
        run.join(PATIENCE_SECONDS)
        assert run.outcome is not None
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        kept = [orders.find(store, one.number) for one in asked]
    assert [one is not None and one.answer is not None and one.answer.done for one in kept] == [True, True]
    assert newest(steps).stale_since(TableId(steps.schema, "t")) is not None


def test_random_orders_beside_writers(steps: Steps) -> None:
    """Two shards, many orders in any order, runs that stop at any moment: at the end all is equal, and no epoch lacks
    what it has copied."""
    rng = random.Random(3)
    for _ in range(4):
        with running(steps):
            for _ in range(6):
                key = rng.randint(1, ROWS)
                one = rng.choice(list(steps.servers))
                steps.sql(
                    one,
                    rng.choice(
                        (
                            f"UPDATE t SET n = n + 1 WHERE id BETWEEN {key} AND {key + 50}",
                            f"DELETE FROM t WHERE id = {key}",
                            f"REPLACE INTO t VALUES ({key}, 7)",
                        )
                    ),
                    "INSERT INTO other VALUES (NULL)",
                )
                action = rng.choice(("pause", "resume", "start", "restart", "restart"))
                catchment.dump(steps.file, action, f"{steps.schema}.t", wait=rng.choice((0.0, 1.0)))
    catchment.dump(steps.file, "start", f"{steps.schema}.t")
    steps.everywhere("INSERT INTO other VALUES (NULL)")
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")
