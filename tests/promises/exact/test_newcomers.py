"""Tables that are made after the feed began enter it and are exact from their first epoch on."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from catchment.api.epochs import epochs
from catchment.api.read import read
from catchment.config.feed import Feed
from catchment.config.shadows import SHADOWS
from catchment.feed.runner import run_feed
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.world.oracle import Oracle
from tests.world.patience import PATIENCE_SECONDS

NEW = "CREATE TABLE u (id INT PRIMARY KEY, n INT)"
# Its CREATE is proven visible when something follows.
ROWS = "INSERT INTO u VALUES (1, 10), (2, 20), (3, 30)"
PROOF = "REPLACE INTO t VALUES (1)"


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up and carries what comes."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, servers, fresh_schema(*servers.values()), new_tables="carry")
    for one in begun.servers:
        begun.sql(one, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    begun.run()
    return begun


def carried(steps: Steps) -> set[str]:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return {shape.table.name for shape in row.manifest.shapes}


def test_a_table_made_while_nobody_runs_the_feed_enters_at_the_next_start(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS)
    steps.sql("-80", "DELETE FROM u WHERE id = 2")
    steps.must_be_equal("u", "id", "n")
    steps.everywhere("UPDATE u SET n = n + 1", "INSERT INTO u VALUES (9, 90)", "INSERT INTO t VALUES (3)")
    steps.must_be_equal("u", "id", "n")
    assert steps.lake("t", "id") == steps.source("t", "id")


def test_before_it_entered_no_epoch_has_it(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS)
    steps.must_be_equal("u", "id", "n")
    found: list[int | None] = []
    for epoch in reversed(epochs(steps.feed)):
        try:
            found.append(read(steps.feed, f"{steps.schema}.u", epoch.epoch).arrow().num_rows)
        except ConfigError:
            found.append(None)
    without = found.count(None)
    assert without >= 2
    assert found[:without] == [None] * without
    assert found[without] == 6  # it was born in the log


def test_it_waits_until_every_shard_has_it(steps: Steps) -> None:
    steps.sql("-80", NEW, ROWS)
    steps.run()
    assert carried(steps) == {"t"}
    steps.sql("80-", NEW, ROWS)
    steps.must_be_equal("u", "id", "n")


def test_one_that_the_rules_take_only_now_enters(steps: Steps) -> None:
    steps.set(tables=[f"{steps.schema}.t"])
    steps.everywhere(NEW, ROWS)
    steps.run()
    assert carried(steps) == {"t"}
    steps.set(tables=[f"{steps.schema}.*"])
    steps.enter("u", PROOF)  # no run kept its CREATE
    steps.must_be_equal("u", "id", "n")


@pytest.mark.parametrize(
    "name",
    ["_t_gho", "_t_ghc", "_t_20261125120000_del", "_t_new", "__t_new", "_t_old", "_t_old_1764", "_t_chkpnt"],
)
def test_a_shadow_table_does_not_enter_unless_it_is_named(name: str) -> None:
    shadow, other = TableId("shop", name), TableId("shop", name.replace("_", ""))
    feed = Feed.model_construct(tables=("shop.*",), shadow_tables=SHADOWS)
    assert not feed.enters(shadow)
    assert feed.enters(other)
    assert Feed.model_construct(tables=("shop.*", f"shop.{name}"), shadow_tables=SHADOWS).enters(shadow)
    assert Feed.model_construct(tables=("shop.*",), shadow_tables=()).enters(shadow)


def test_what_a_tool_swaps_in_is_followed_under_the_name_of_the_table(steps: Steps) -> None:
    """As gh-ost does it, on one shard after the other."""
    steps.everywhere("CREATE TABLE proof (id INT PRIMARY KEY)")
    for shard in steps.servers:
        steps.sql(
            shard,
            "CREATE TABLE _t_gho LIKE t",
            "ALTER TABLE _t_gho ADD COLUMN n INT NOT NULL DEFAULT 3",
            "INSERT INTO _t_gho (id) SELECT id FROM t",
        )
        steps.run()
        steps.sql(shard, "INSERT INTO t VALUES (10)", "INSERT INTO _t_gho VALUES (10, 3)")
        steps.sql(shard, "RENAME TABLE t TO _t_del, _t_gho TO t", "DROP TABLE _t_del")
        steps.sql(shard, "INSERT INTO t VALUES (11, 4)")
    steps.renew("REPLACE INTO proof VALUES (1)")
    steps.must_be_equal("t", "id", "n")
    assert carried(steps) == {"t", "proof"}


def test_without_the_setting_none_enters(steps: Steps) -> None:
    steps.set(new_tables="skip")
    steps.everywhere(NEW, ROWS)
    steps.run()
    assert carried(steps) == {"t"}


def test_what_cannot_be_carried_is_told_and_ends_no_run(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    steps.everywhere("CREATE TABLE nokey (id INT)", "INSERT INTO t VALUES (7)")
    steps.must_be_equal("t", "id")
    assert carried(steps) == {"t"}
    told = [message for message in caplog.messages if "does not enter the feed yet" in message]
    assert len(told) == 1
    assert "there is no primary key" in told[0]


def test_tables_of_all_kinds_of_keys_enter_together(steps: Steps) -> None:
    steps.everywhere(
        NEW,
        ROWS,
        "CREATE TABLE v (name VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
        "INSERT INTO v VALUES ('a', 1), ('B', 2), ('c', 3)",
        "CREATE TABLE w (a INT, b VARCHAR(5), n INT, PRIMARY KEY (a, b))",
        "INSERT INTO w VALUES (1, 'x', 1), (1, 'y', 2)",
        "CREATE TABLE nothing (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (5)",
    )
    steps.run()
    steps.everywhere("UPDATE v SET n = 9 WHERE name = 'b'", "DELETE FROM w WHERE b = 'x'")
    steps.must_be_equal("v", "name", "n")
    assert steps.lake("w", "a", "b", "n") == steps.source("w", "a", "b", "n")
    assert carried(steps) == {"t", "u", "v", "w", "nothing"}
    assert steps.lake("nothing", "id") == []


@pytest.mark.parametrize("fault", [Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW])
def test_a_run_that_dies_while_a_table_enters_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.everywhere(NEW, ROWS)

    class Died(Exception):
        pass

    def die(at: Fault) -> None:
        if at is fault:
            raise Died

    with pytest.raises(Died):
        run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=die)
    # A run that dies between manifest and commit forgets the CREATE. Then others have to prove it visible.
    steps.enter("u", PROOF)
    steps.must_be_equal("u", "id", "n")
    assert carried(steps) == {"t", "u"}


def test_where_a_table_of_another_stands_it_does_not_enter(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    (steps.file.parent / "other").mkdir()
    other = Steps(steps.file.parent / "other", steps.servers, steps.schema)
    steps.everywhere(NEW, ROWS)
    other.set(name="other", sink={"path": str(steps.feed.sink.path)}, tables=[f"{steps.schema}.u"])
    other.run()
    steps.set(tables=[f"{steps.schema}.*"])
    steps.everywhere("INSERT INTO t VALUES (8)")
    steps.must_be_equal("t", "id")
    assert carried(steps) == {"t"}
    assert any("u does not enter the feed yet" in message for message in caplog.messages)


def test_an_altered_table_enters_as_it_is(steps: Steps) -> None:
    steps.everywhere(
        NEW, ROWS, "ALTER TABLE u ADD COLUMN m INT", "UPDATE u SET m = id", "INSERT INTO t VALUES (6)"
    )
    steps.must_be_equal("u", "id", "n", "m")
    steps.everywhere("ALTER TABLE u DROP COLUMN n", "INSERT INTO u VALUES (4, 4)")
    steps.must_be_equal("u", "id", "m")


def test_tables_enter_while_their_rows_change(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six tables, one after another, of which all are written to while others enter."""
    run_here(monkeypatch)
    shards = list(servers.values())
    schema = fresh_schema(*shards)
    steps = Steps(tmp_path, servers, schema, new_tables="carry")
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0)")
    steps.run()
    stop = threading.Event()
    rng = random.Random(5)
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(6):
                steps.everywhere(
                    f"CREATE TABLE n{number} (id INT PRIMARY KEY, n INT)",
                    f"INSERT INTO n{number} VALUES {', '.join(f'({key}, 0)' for key in range(1, 3001))}",
                )
                for _ in range(60):
                    table = f"n{rng.randint(0, number)}"
                    key = rng.randint(1, 3500)
                    steps.sql(
                        rng.choice(list(servers)),
                        rng.choice(
                            (
                                f"REPLACE INTO {table} VALUES ({key}, {rng.randint(1, 99)})",
                                f"DELETE FROM {table} WHERE id BETWEEN {key} AND {key + 5}",
                                f"UPDATE {table} SET n = n + 1 WHERE id % 50 = {key % 50}",
                            )
                        ),
                    )
        except BaseException as error:
            errors.append(error)

    writer = threading.Thread(target=write)
    feed = threading.Thread(target=lambda: run_feed(steps.feed, until_caught_up=False, stop=stop))
    feed.start()
    writer.start()
    writer.join()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(carried(steps)) < 7 and feed.is_alive() and time.monotonic() < deadline:
        steps.everywhere("UPDATE t SET n = n + 1")  # proves visible what was before
        time.sleep(0.1)
    stop.set()
    feed.join()
    assert not errors
    for number in range(6):
        steps.must_be_equal(f"n{number}", "id", "n")
    assert judged(steps, [f"{schema}.n{number}" for number in range(6)]) > 12


def judged(steps: Steps, tables: Sequence[str]) -> int:
    """Compare every epoch of tables with an integer key with the log, replayed by the oracle, as far as each is copied.
    How many epochs of a table were compared while it was copied or followed."""
    keys = {table: ("id",) for table in tables}
    oracles = {
        shard: Oracle.from_birth(server.login("root"), keys) for shard, server in steps.servers.items()
    }
    compared = 0
    for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all():
        found = {str(shape.table) for shape in row.manifest.shapes} & keys.keys()
        lake = {table: read(steps.feed, table, row.commit.epoch).arrow().to_pylist() for table in found}
        for shard, state in row.manifest.cut.shards.items():
            true = oracles[shard].advance(state.position.at.file, state.position.at.offset)
            for copy in (copy for copy in state.copies if str(copy.table) in found):
                table, limit = str(copy.table), copy.copied[0] if copy.copied else 0
                want = {
                    (key[0], record["n"])
                    for key, record in true[table].items()
                    if copy.done or int(str(key[0])) <= int(limit)
                }
                have = {(one["id"], one["n"]) for one in lake[table] if one["_shard"] == shard}
                assert have == want, f"{table} on {shard} as of epoch {row.commit.epoch}"
                compared += copy.copied is not None or copy.done
    return compared
