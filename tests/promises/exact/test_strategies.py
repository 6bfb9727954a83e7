"""Every epoch of a copy by marks or by snapshots is exact, as of a copy that rewinds: docs/strategies.md."""

import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.model.errors import ServerSaid
from catchment.sink.delta.layout import staged_dir
from catchment.sink.delta.upkeep.clean import Keeping, clean_feed
from catchment.state.faults import Fault
from catchment.state.store import Store
from catchment.watch.status import read_status
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Died, Steps, run_here
from tests.promises.exact.test_orders import answered, newest, running, table, wait
from tests.promises.exact.trial import Alter, Trial
from tests.promises.exact.verdict import Verdict
from tests.world.marks import by, marks_allowed, sides

Fresh = Callable[..., str]

pytestmark = pytest.mark.mariadb(
    "MySQL tells no place in the log with a snapshot, and marks are not proven there"
)

STRATEGIES = ("watermark", pytest.param("snapshot", marks=pytest.mark.wide))
ROWS = 1200
ADDED = "ALTER TABLE orders ADD COLUMN extra VARCHAR(20)"


@pytest.mark.parametrize(
    ("strategy", "engine", "share"),
    [
        pytest.param("watermark", "local", 0.6, marks=pytest.mark.wide),
        pytest.param("snapshot", "spark", 0.6, marks=pytest.mark.wide),
        pytest.param("watermark", "local", 1.0, marks=pytest.mark.long),
        pytest.param("snapshot", "local", 1.0, marks=pytest.mark.long),
        pytest.param("watermark", "spark", 1.0, marks=pytest.mark.long),
        pytest.param("snapshot", "spark", 1.0, marks=pytest.mark.long),
    ],
)
def test_every_epoch_under_random_transactions_is_exact(
    servers: Servers,
    fresh_schema: Fresh,
    tmp_path: Path,
    spark: SparkContext,
    strategy: str,
    engine: str,
    share: float,
) -> None:
    schema, marks = (fresh_schema(*servers.values()) for _ in range(2))
    copying = by(strategy, marks_allowed(servers.values(), marks))
    trial = Trial(servers, schema, tmp_path, seed=41, chunk_rows=6, copying=copying, engine=engine)
    trial.fill("orders", "extra")
    alters = [Alter(4, "-80", ADDED), Alter(9, "80-", ADDED)]
    verdict = trial.run(epochs=20, rest_every=5, alters=alters, share=share)
    must_be_judged(trial, verdict, share)
    assert all(sides(server, copying["marks"]) == [] for server in servers.values())


def must_be_judged(trial: Trial, verdict: Verdict, share: float) -> None:
    """The verdict is clean, of a run in which there was something to judge."""
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 20
    assert verdict.copying >= share * 8
    assert verdict.rests >= 3
    assert all(xa.committed > 3 for xa in trial.xa)
    assert staged(trial.feed.sink.path) == []


def staged(lake: object) -> list[Path]:
    return sorted(staged_dir(Path(str(lake))).glob("*"))


@pytest.fixture
def marks(shards: Shards, fresh_schema: Fresh) -> str:
    return marks_allowed(shards, fresh_schema(*shards))


@pytest.fixture
def steps(shards: Shards, fresh_schema: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A feed that has not begun, whose copy takes some epochs."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    values = ", ".join(f"({key}, {key})" for key in range(1, ROWS + 1))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES {values}",
        "CREATE TABLE bare (name VARCHAR(20) COLLATE utf8mb4_unicode_ci PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    return begun


def set_copy(steps: Steps, strategy: str, marks: str) -> None:
    steps.set(copy={"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1, **by(strategy, marks)})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_paused_copy_is_quiet_and_goes_on_where_it_stood(steps: Steps, marks: str, strategy: str) -> None:
    set_copy(steps, strategy, marks)
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        assert answered(steps, "pause") == "done: it is paused"
        paused = table(steps).rows
        assert 0 < paused < 2 * ROWS
        steps.everywhere("UPDATE t SET n = -1 WHERE id IN (1, 1199)", "INSERT INTO other VALUES (2)")
        wait(lambda: len(steps.lake("other", "id")) == 4)
        assert table(steps).rows == paused
        held = {key: n for _, key, n in steps.lake("t", "id", "n")}
        assert held[1] == -1
        assert 1199 not in held
        assert answered(steps, "resume") == "done: it is copying"
        wait(lambda: newest(steps).cut.copied)
        assert table(steps).rows == 2 * ROWS
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("bare", "name")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "fault",
    [
        Fault.AFTER_STAGE,
        pytest.param(Fault.AFTER_PLAN, marks=pytest.mark.wide),
        Fault.DURING_READ,
        pytest.param(Fault.AFTER_MANIFEST, marks=pytest.mark.wide),
    ],
)
def test_a_run_that_ends_anywhere_in_a_turn_is_gone_on_with(
    steps: Steps, marks: str, strategy: str, fault: Fault
) -> None:
    set_copy(steps, strategy, marks)
    steps.die_again_and_again(fault, 3)
    steps.everywhere("UPDATE t SET n = n + 1 WHERE id % 7 = 0", "DELETE FROM t WHERE id % 11 = 0")
    steps.must_be_equal("t", "id", "n")


def test_the_cleaner_takes_rows_that_no_epoch_has(steps: Steps, marks: str) -> None:
    set_copy(steps, "watermark", marks)
    lake = steps.feed.sink.path
    kept: list[Path] = []

    def keep(at: Fault) -> None:
        if at is Fault.AFTER_STAGE and not kept:
            kept.extend(staged(lake))
            for path in kept:
                path.with_name(f"left-{path.name}").write_bytes(path.read_bytes())

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=keep)
    assert kept
    assert [path.name for path in staged(lake)] == [f"left-{path.name}" for path in kept]
    clean_feed(lake, steps.feed.name, Keeping(3600, 3600))
    assert staged(lake), "they are young"
    clean_feed(lake, steps.feed.name, Keeping(3600, 0))
    assert staged(lake) == []
    steps.must_be_equal("t", "id", "n")


def test_rows_that_are_gone_before_their_cut_are_read_again(steps: Steps, marks: str) -> None:
    set_copy(steps, "snapshot", marks)
    lost = 0

    def lose(at: Fault) -> None:
        nonlocal lost
        if at is Fault.AFTER_STAGE and lost < 3:
            for path in staged(steps.feed.sink.path):
                path.unlink()
                lost += 1

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=lose)
    assert lost
    assert steps.lake("t", "id", "n") == steps.source("t", "id", "n")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_strategy_may_change_between_runs_and_is_told(
    steps: Steps, marks: str, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left = [4]

    def die(at: Fault) -> None:
        left[0] -= at is Fault.AFTER_MANIFEST
        if left[0] == 0:
            raise Died

    steps.set(copy={"chunk_rows_max": 40, "group_time": "0s"})
    with suppress(Died):
        run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=die)
    assert not newest(steps).cut.copied
    set_copy(steps, strategy, marks)
    steps.everywhere("UPDATE t SET n = n + 1")
    steps.must_be_equal("t", "id", "n")
    feed = steps.feed
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        run = read_status(store).run
    assert run is not None
    assert run.strategy == strategy
    capsys.readouterr()
    assert execute(["status", str(steps.file)]) == 0
    assert f"rows are copied by {strategy}" in capsys.readouterr().out


def test_marks_are_taken_away_when_all_is_copied(steps: Steps, marks: str, shards: Shards) -> None:
    set_copy(steps, "watermark", marks)
    seen: list[list[int]] = []

    def look(at: Fault) -> None:
        if at is Fault.AFTER_STAGE:
            seen.append(sides(shards[0], marks))

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=look)
    assert [2] in seen, "a high mark comes last"
    assert sides(shards[0], marks) == sides(shards[1], marks) == []
    steps.must_be_equal("t", "id", "n")


def test_a_log_without_names_shows_marks_too(
    fresh_schema: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    with PrivateServer(server_id=118, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        server.sql(
            "CREATE DATABASE d", "CREATE DATABASE m", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT UNSIGNED)"
        )
        server.sql("INSERT INTO d.t SELECT seq, 4294967295 - seq FROM d.seq_1_to_200")
        steps = Steps(tmp_path, {"-80": server}, "d")
        set_copy(steps, "watermark", marks_allowed([server], "m"))
        steps.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_marks_that_wait_hold_up_the_copy_and_not_the_log(
    steps: Steps, marks: str, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked the row of a shard's marks: each turn gives that shard's groups up, and goes on."""
    monkeypatch.setattr("catchment.source.marks.MARK_SECONDS", 1)
    set_copy(steps, "watermark", marks)
    with closing(shards[0].connect(autocommit=False)) as locking, running(steps), locking.cursor() as cursor:
        wait(lambda: sides(shards[0], marks))
        cursor.execute(f"SELECT * FROM {marks} FOR UPDATE")
        wait(lambda: newest(steps).cut.shards["80-"].copied)
        assert not newest(steps).cut.shards["-80"].copied
        epoch = newest(steps).epoch
        steps.everywhere("UPDATE t SET n = n + 1")
        wait(lambda: newest(steps).epoch > epoch)
        locking.rollback()
        wait(lambda: newest(steps).cut.copied)
    steps.must_be_equal("t", "id", "n")


def test_a_table_of_marks_that_goes_ends_the_run_by_name(steps: Steps, marks: str, shards: Shards) -> None:
    set_copy(steps, "watermark", marks)

    def drop(at: Fault) -> None:
        if at is Fault.AFTER_STAGE:
            shards[0].sql(f"DROP TABLE IF EXISTS {marks}")

    with pytest.raises(ServerSaid, match=rf"{marks}' doesn't exist"):
        run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=drop)
    steps.must_be_equal("t", "id", "n")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(["TRUNCATE TABLE t", "INSERT INTO t VALUES (5, 6)"], id="truncate"),
        pytest.param(
            ["ALTER TABLE t ADD m INT NOT NULL DEFAULT 7", "UPDATE t SET n = 0 WHERE id < 9"], id="alter"
        ),
        pytest.param(["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, n INT)"], id="drop"),
    ],
)
def test_ddl_between_the_select_and_the_cut(
    steps: Steps, marks: str, strategy: str, changes: list[str]
) -> None:
    set_copy(steps, strategy, marks)
    turns = 0

    def change(at: Fault) -> None:
        nonlocal turns
        turns += at is Fault.AFTER_STAGE
        if at is Fault.AFTER_STAGE and turns == 3:
            steps.everywhere(*changes)

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=change)
    assert turns >= 3
    steps.renew("INSERT INTO other VALUES (NULL)")
    steps.must_be_equal("t", *steps.columns("-80", "t"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_children_that_go_with_their_parents_between_the_select_and_the_cut(
    steps: Steps, marks: str, strategy: str
) -> None:
    """No log has them, so a chunk that may hold one is read again."""
    set_copy(steps, strategy, marks)
    numbers = ", ".join(f"({key})" for key in range(ROWS // 2))
    steps.everywhere(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        f"INSERT INTO p VALUES {numbers}",
        "INSERT INTO c SELECT id, id FROM p",
    )
    turns = 0

    def change(at: Fault) -> None:
        nonlocal turns
        if at is Fault.AFTER_STAGE and turns < 60:
            turns += 1
            steps.everywhere(f"DELETE FROM p WHERE id % 60 = {turns}")

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=change)
    assert turns > 3
    steps.must_be_equal("c", "id", "p")
    steps.must_be_equal("p", "id")
