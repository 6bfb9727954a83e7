"""Another feed file for a feed that runs: tables join and leave, settings change, and what cannot change is named."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

import catchment
from catchment import doctor
from catchment.cli.main import execute
from catchment.config.another import told
from catchment.feed import runner
from catchment.feed.dump import order
from catchment.feed.edition import Edition
from catchment.feed.runner import run_feed
from catchment.model.errors import SourceError, StateError
from catchment.model.order import Action, Kept
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.state import orders
from catchment.state.lease import Owner, holder
from catchment.state.store import Store
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Died, Steps, run_here
from tests.promises.exact.test_newcomers import judged
from tests.promises.exact.test_orders import newest, running, wait
from tests.world.patience import PATIENCE_SECONDS

PROOF = "INSERT INTO other VALUES ()"


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has caught up with t and other, and does not take late."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "CREATE TABLE late (id INT PRIMARY KEY)",
        "INSERT INTO late VALUES (1), (2), (3)",
        PROOF,
    )
    takes(begun, "t", "other")
    begun.run()
    return begun


def takes(steps: Steps, *tables: str) -> None:
    steps.set(tables=[f"{steps.schema}.{name}" for name in tables])


def applied(steps: Steps, *leave: str) -> str:
    """What the run answers to the feed file as it is now."""
    return said(
        catchment.apply(steps.file, [f"{steps.schema}.{name}" for name in leave], wait=PATIENCE_SECONDS)
    )


def said(kept: Kept | None) -> str:
    assert kept is not None
    assert kept.answer is not None
    return f"{'done' if kept.answer.done else 'refused'}: {kept.answer.said}"


def carried(steps: Steps) -> set[str]:
    return {shape.table.name for shape in newest(steps).shapes}


def enters(steps: Steps, table: str) -> bool:
    """Whether a table has entered; a DDL is proven visible when others follow."""
    steps.everywhere(PROOF)
    return table in carried(steps)


def follows(steps: Steps) -> None:
    """The run goes on: a new row comes to the lake."""
    epoch = newest(steps).epoch
    steps.everywhere(PROOF)
    wait(lambda: newest(steps).epoch > epoch and steps.lake("other", "id") == steps.source("other", "id"))


def given(steps: Steps) -> int:
    """The number of an order to go by the feed file as it is now, which nobody has obeyed yet."""
    feed = steps.feed
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        return orders.give(store, replace(order(Action.APPLY), value=told(feed)))


@pytest.mark.promise("a running feed takes up a changed feed file")
def test_a_run_goes_by_another_feed_file(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StateError, match="the next run goes by its feed file"):
        catchment.apply(steps.file)
    assert execute(["apply", str(steps.file)]) == 6
    assert "is not run by anybody" in capsys.readouterr().err
    usual, refused = doctor.must_be_set_up, [3]
    holders, feed = [], steps.feed  # as it is before the file is written again

    def set_up(endpoint: Endpoint, tables: Sequence[str]) -> list[TableId]:
        with closing(Store.open(feed.state.get_secret_value(), feed.name)) as store:
            holders.append(holder(store))
        if len(tables) == refused[0]:
            raise SourceError("shard 80-: the user lacks SELECT")
        return usual(endpoint, tables)

    monkeypatch.setattr(runner, "must_be_set_up", set_up)
    with running(steps):
        takes(steps, "t", "other", "late")
        assert applied(steps) == "refused: shard 80-: the user lacks SELECT"
        follows(steps)
        assert carried(steps) == {"t", "other"}
        refused[0] = 0
        assert applied(steps) == "done: the run uses the new tables"
        wait(lambda: enters(steps, "late"))
        follows(steps)
        must_change_settings(steps)
        must_leave_when_named(steps)
        must_print(steps, capsys)
    assert len(holders) > len(steps.servers)
    assert set(holders) == {Owner.this_process()}, "another runner could have begun meanwhile"
    steps.must_be_equal("late", "id")


def must_change_settings(steps: Steps) -> None:
    """Those that may change while a feed runs are gone by; what cannot is named."""
    lake = yaml.safe_load(steps.file.read_text())["sink"]
    steps.set(
        epoch={"interval": "70ms", "tick": "20ms"},
        sink={**lake, "settle": "3s", "path": str(Path(lake["path"]).with_name("elsewhere"))},
    )
    assert applied(steps) == (
        "done: the run uses the new epoch.interval, epoch.tick, sink.settle; the next run will use the new sink.path"
    )
    assert applied(steps) == (
        "refused: sink.path cannot change while a feed runs; change the feed file and start the run again"
    )
    steps.set(sink={**lake, "settle": "3s"})
    follows(steps)
    assert applied(steps) == "done: nothing to do: the run already uses this file"
    steps.set(columns=[{"match": f"{steps.schema}.t.n", "mask": "nulls"}])
    assert applied(steps).startswith(
        f"refused: columns: those for {steps.schema}.t are not what the feed began with"
    )
    steps.set(columns=[])
    follows(steps)


def must_leave_when_named(steps: Steps) -> None:
    """A table leaves only when it is named."""
    takes(steps, "other", "late")
    assert applied(steps).startswith(
        f"refused: tables: {steps.schema}.t no longer matches, but the feed carries it"
    )
    assert carried(steps) == {"t", "other", "late"}
    assert applied(steps, "t") == "done: the run uses the new tables"
    wait(lambda: carried(steps) == {"other", "late"})
    follows(steps)
    assert applied(steps, "t") == "done: nothing to do: the run already uses this file"


def must_print(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the answers, and the order has no secret."""
    steps.set(verify={"every": "7d"}, mask_key="0123456789abcdef")
    assert execute(["apply", str(steps.file)]) == 0
    assert "apply the feed file: done: the run uses the new verify.every" in capsys.readouterr().out
    assert execute(["apply", str(steps.file), "--leave", f"{steps.schema}.other"]) == 6
    assert f'--leave {steps.schema}.other: `tables` takes it; add "!' in capsys.readouterr().out
    state = Path(str(steps.feed.state.get_secret_value()).removeprefix("sqlite:///"))
    secrets = [shard.password.get_secret_value() for shard in steps.feed.source.shards] + ["0123456789abcdef"]
    kept = b"".join(file.read_bytes() for file in state.parent.glob(f"{state.name}*"))
    assert kept
    assert not [one for one in secrets if one and one.encode() in kept]


def test_a_run_that_dies_before_it_answers_leaves_the_order_to_the_next(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = steps.feed
    takes(steps, "t", "other", "late")
    number = given(steps)
    with monkeypatch.context() as dying:
        dying.setattr(Edition, "tell", lambda edition, *_: died() if edition.order else None)
        with pytest.raises(Died):
            run_feed(by, until_caught_up=True, stop=threading.Event())
    with closing(Store.open(by.state.get_secret_value(), by.name, create=False)) as store:
        assert [one.number for one in orders.open_orders(store)] == [number]
        run_feed(by, until_caught_up=True, stop=threading.Event())
        assert said(orders.find(store, number)) == "done: the run uses the new tables"
    for _ in range(3):
        steps.everywhere(PROOF)
        steps.run()
    steps.must_be_equal("late", "id")


def died() -> None:
    raise Died


def test_every_epoch_is_exact_while_files_are_applied_again_and_again(steps: Steps) -> None:
    done = threading.Event()

    def write() -> None:
        for key in range(3, 10_000):
            steps.sql(
                "-80" if key % 2 else "80-",
                f"REPLACE INTO t VALUES ({key % 40}, {key})",
                f"DELETE FROM t WHERE id = {key * 7 % 40}",
                PROOF,
            )
            if done.is_set():
                return

    writer = threading.Thread(target=write)
    with running(steps):
        writer.start()
        try:
            for number in range(3):
                steps.set(epoch={"interval": f"{60 + number}ms", "tick": "20ms"})
                takes(steps, "t", "other", "late")
                assert applied(steps) == "done: the run uses the new " + (
                    "epoch.interval, " * (number > 0)
                ) + ("tables" if number else "epoch.interval, epoch.tick, tables")
                wait(lambda: "late" in carried(steps))
                takes(steps, "t", "other")
                assert applied(steps, "late") == "done: the run uses the new tables"
        finally:
            done.set()
            writer.join()
    steps.must_be_equal("t", "id", "n")
    assert judged(steps, [f"{steps.schema}.t"]) > 12
