"""Copies by marks or by snapshots: what may happen between a SELECT and its cut, to marks and to staged rows."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.model.errors import ServerSaid
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.state.faults import Fault
from catchment.state.store import Store
from catchment.watch.status import read_status
from tests.conftest import Shards
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.staging import set_copy, staged, staged_tables
from tests.promises.exact.steps import Died, Steps, run_here
from tests.promises.exact.test_orders import answered, newest, running, table, wait
from tests.world.engines import Here
from tests.world.marks import marks_allowed, sides
from tests.world.settled import clean_feed

Fresh = Callable[..., str]

pytestmark = pytest.mark.mariadb(
    "MySQL tells no place in the log with a snapshot, and marks are not proven there"
)

STRATEGIES = pytest.mark.parametrize("strategy", ["watermark", "snapshot"])
ROWS = 240
PROOF = "INSERT INTO other VALUES (NULL)"
# What is done to a table of that name while rows of it wait for their cut.
CHANGES = {
    "truncated": ["TRUNCATE TABLE truncated", "INSERT INTO truncated VALUES (5, 6)"],
    "altered": [
        "ALTER TABLE altered ADD m INT NOT NULL DEFAULT 7",
        "UPDATE altered SET n = 0 WHERE id < 9",
    ],
    "dropped": ["DROP TABLE dropped", "CREATE TABLE dropped (id INT PRIMARY KEY, n INT)"],
}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    return run_here(monkeypatch)


@pytest.fixture
def marks(shards: Shards, fresh_schema: Fresh) -> str:
    return marks_allowed(shards, fresh_schema(*shards))


@pytest.fixture
def steps(here: Here, shards: Shards, fresh_schema: Fresh, tmp_path: Path) -> Steps:
    """A feed that has not begun, whose copy takes some epochs."""
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}",
        "CREATE TABLE bare (name VARCHAR(20) COLLATE utf8mb4_unicode_ci PRIMARY KEY)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    return begun


@STRATEGIES
def test_what_happens_between_the_select_and_the_cut(
    here: Here, steps: Steps, marks: str, strategy: str
) -> None:
    """DDL on tables of which rows wait; parents that go with their children, of which no log has anything; and staged
    rows that are lost. What may be wrong is read again."""
    set_copy(steps, strategy, marks)
    for name in CHANGES:
        steps.everywhere(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)", f"INSERT INTO {name} SELECT * FROM t"
        )
    steps.everywhere(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p SELECT id FROM t",
        "INSERT INTO c SELECT id, id FROM p",
    )
    turns: Counter[str] = Counter()

    def meddle(at: Fault) -> None:
        if at is not Fault.AFTER_STAGE:
            return
        for name in sorted(staged_tables(here)):
            turns[name] += 1
            if name in CHANGES and turns[name] == 2:
                steps.everywhere(*CHANGES[name])
            if name == "c" and turns[name] < 8:
                steps.everywhere(f"DELETE FROM p WHERE id % 8 = {turns[name]}")
            if name == "t" and turns[name] == 2:
                for path in staged(steps.feed.sink.path):
                    path.unlink()

    run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=meddle)
    assert {name for name, count in turns.items() if count >= 2} >= {*CHANGES, "c", "t"}, turns
    steps.renew(PROOF)
    for name in ("t", *CHANGES, "p", "c"):
        steps.must_be_equal(name, *steps.columns("-80", name))


@STRATEGIES
def test_a_paused_copy_is_quiet_and_goes_on_where_it_stood(steps: Steps, marks: str, strategy: str) -> None:
    set_copy(steps, strategy, marks)
    rows = 1200
    steps.everywhere(f"INSERT INTO t SELECT seq, seq FROM seq_{ROWS + 1}_to_{rows}")
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        assert answered(steps, "pause") == "done: it is paused"
        paused = table(steps).rows
        assert 0 < paused < 2 * rows
        steps.everywhere("UPDATE t SET n = -1 WHERE id IN (1, 1199)", "INSERT INTO other VALUES (2)")
        wait(lambda: len(steps.lake("other", "id")) == 4)
        assert table(steps).rows == paused
        held = {key: n for _, key, n in steps.lake("t", "id", "n")}
        assert held[1] == -1
        assert 1199 not in held
        assert answered(steps, "resume") == "done: it is copying"
        wait(lambda: newest(steps).cut.copied)
        assert table(steps).rows == 2 * rows
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("bare", "name")


def test_a_strategy_that_changes_between_runs_that_die(
    steps: Steps, marks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What waited when a run died is read again, and the cleaner takes it."""
    left = [0]

    def die(at: Fault, place: Fault) -> None:
        left[0] -= at is place
        if left[0] == 0:
            for path in staged(steps.feed.sink.path):  # as a kill leaves them
                path.with_name(f"left-{path.name}").write_bytes(path.read_bytes())
            raise Died

    steps.set(copy={"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1})
    died = [
        ("rewind", Fault.AFTER_MANIFEST),
        ("watermark", Fault.AFTER_STAGE),
        ("snapshot", Fault.AFTER_STAGE),
    ]
    for strategy, place in died:
        if strategy != "rewind":
            set_copy(steps, strategy, marks)
        steps.everywhere("UPDATE t SET n = n + 1", "DELETE FROM t WHERE id % 11 = 0")
        left[0] = 2
        with suppress(Died):
            run_feed(
                steps.feed, until_caught_up=True, stop=threading.Event(), fault=partial(die, place=place)
            )
        assert left[0] == 0, f"by {strategy} it came through"
        assert not newest(steps).cut.copied
        feed = steps.feed
        with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
            run = read_status(store).run
        assert run is not None
        assert run.strategy == strategy
        capsys.readouterr()
        assert execute(["status", str(steps.file)]) == 0
        told = f"rows are copied by {strategy}" in capsys.readouterr().out
        assert told == (strategy != "rewind"), strategy
    waited = staged(steps.feed.sink.path)
    assert waited
    steps.must_be_equal("t", "id", "n")
    clean_feed(steps.feed.sink.path, steps.feed.name, Keeping(3600, 3600))
    assert set(staged(steps.feed.sink.path)) == set(waited), "they are young"
    clean_feed(steps.feed.sink.path, steps.feed.name, Keeping(3600, 0))
    assert staged(steps.feed.sink.path) == []
    steps.must_be_equal("t", "id", "n")


def test_a_log_without_names_shows_marks_too_and_they_go_when_all_is_copied(
    here: Here, tmp_path: Path
) -> None:
    with PrivateServer(server_id=118, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        server.sql(
            "CREATE DATABASE d",
            "CREATE DATABASE m",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT UNSIGNED)",
            "INSERT INTO d.t SELECT seq, 4294967295 - seq FROM d.seq_1_to_200",
        )
        steps, marks = Steps(tmp_path, {"-80": server}, "d"), marks_allowed([server], "m")
        set_copy(steps, "watermark", marks)
        seen: list[list[int]] = []

        def look(at: Fault) -> None:
            if at is Fault.AFTER_STAGE:
                seen.append(sides(server, marks))

        run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=look)
        assert [2] in seen, "a high mark comes last"
        assert sides(server, marks) == []
        steps.must_be_equal("t", "id", "n")


def test_marks_that_wait_hold_up_the_copy_and_not_the_log(
    steps: Steps, marks: str, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has locked the row of a shard's marks: each turn gives that shard's groups up, and goes on."""
    monkeypatch.setattr("catchment.source.marks.MARK_SECONDS", 1)
    set_copy(steps, "watermark", marks)
    with closing(shards[0].connect(autocommit=False)) as locking, locking.cursor() as cursor:
        locked: list[Fault] = []

        def lock(at: Fault) -> None:
            if at is Fault.AFTER_STAGE and not locked:
                locked.append(at)
                cursor.execute(f"SELECT * FROM {marks} FOR UPDATE")

        with FeedRun(steps.feed, lock) as run:
            manifest = run.wait("the other shard", lambda done: done[-1].cut.shards["80-"].copied)
            assert not manifest.cut.shards["-80"].copied
            steps.everywhere("UPDATE t SET n = n + 1")
            assert not run.wait_for_log(steps.servers).cut.copied
            locking.rollback()
            run.wait("all is copied", lambda done: done[-1].cut.copied)
    steps.must_be_equal("t", "id", "n")


def test_a_table_of_marks_that_goes_ends_the_run_by_name(steps: Steps, marks: str, shards: Shards) -> None:
    set_copy(steps, "watermark", marks)

    def drop(at: Fault) -> None:
        if at is Fault.AFTER_STAGE:
            shards[0].sql(f"DROP TABLE IF EXISTS {marks}")

    with pytest.raises(ServerSaid, match=rf"{marks}' doesn't exist"):
        run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=drop)
    steps.must_be_equal("t", "id", "n")
