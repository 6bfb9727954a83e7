"""Tables that are made while a feed runs are followed from their first row on, and no row of them is copied."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_newcomers import carried, judged
from tests.world.checkpoints import ended_by_checkpoint
from tests.world.patience import PATIENCE_SECONDS
from tests.world.servers.chosen import MYSQL, chosen_kind, chosen_server

NEW = "CREATE TABLE u (id INT PRIMARY KEY, n INT)"
ROWS = "INSERT INTO u VALUES (1, 10), (2, 20), (3, 30)"
AS_TEXT = ("SET SESSION binlog_format = STATEMENT", ROWS)


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    return begun(servers, fresh_schema(*servers.values()), tmp_path, monkeypatch)


def begun(servers: Servers, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A feed of one table on two shards that has caught up."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, servers, schema)
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    steps.run()
    return steps


def manifests(steps: Steps) -> list[Manifest]:
    return [row.manifest for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()]


def was_born(steps: Steps, name: str = "u", shards: int = 2) -> bool:
    """Whether a table's newest copy was complete on so many shards in the epoch with which it began."""
    table = TableId(steps.schema, name)
    shape = manifests(steps)[-1].shape(table)
    entered = next(one for one in manifests(steps) if one.epoch == shape.generation)
    done = [c for state in entered.cut.shards.values() for c in state.copies if c.table == table and c.done]
    return len(done) == shards


def test_a_table_is_followed_from_its_first_row(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS, "DELETE FROM u WHERE id = 2", "UPDATE u SET n = n + 1 WHERE id = 3")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)
    steps.everywhere("UPDATE u SET n = 7 WHERE id = 1", "INSERT INTO u VALUES (2, 5)")
    steps.must_be_equal("u", "id", "n")
    assert steps.lake("t", "id") == steps.source("t", "id")


def test_nothing_has_to_follow_its_create(steps: Steps) -> None:
    """On a server at rest a copy would wait for another transaction, which proves the CREATE visible."""
    steps.everywhere(NEW)
    steps.must_be_equal("u", "id", "n")
    assert carried(steps) == {"t", "u"}
    assert was_born(steps)


@pytest.mark.mariadb("checkpoint events")
def test_a_feed_begins_in_front_of_a_create(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    for shard, server in servers.items():
        for _ in range(100):
            steps.sql(
                shard, "DROP TABLE IF EXISTS u", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (2)"
            )
            steps.sql(shard, "FLUSH BINARY LOGS", NEW)
            if ended_by_checkpoint(server):
                break
        else:
            raise AssertionError("no checkpoint event came behind the CREATE")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)
    steps.everywhere(ROWS, "INSERT INTO t VALUES (3)")
    steps.must_be_equal("u", "id", "n")
    assert steps.lake("t", "id") == steps.source("t", "id")


@pytest.mark.parametrize(
    "makes",
    [
        ["CREATE TABLE u LIKE v"],
        ["CREATE TABLE IF NOT EXISTS w (id INT PRIMARY KEY)", "CREATE TABLE u (LIKE v)"],
        ["CREATE TABLE u (id INT PRIMARY KEY)", "ALTER TABLE u ADD COLUMN n INT", "CREATE INDEX i ON u (n)"],
        ["CREATE TABLE u (id INT PRIMARY KEY, n INT, m INT)", "ALTER TABLE u DROP COLUMN m, ADD UNIQUE (n)"],
        ["DROP TABLE v", "CREATE TABLE u (id INT PRIMARY KEY, n INT) ENGINE=InnoDB COMMENT='it is'"],
        ["CREATE TABLE u (id INT PRIMARY KEY)", "DROP TABLE u", "CREATE TABLE u (id INT PRIMARY KEY, n INT)"],
        ["CREATE TABLE u (id INT, n INT)", "CREATE OR REPLACE TABLE u (id INT PRIMARY KEY, n INT)"],
    ],
)  # fmt: skip
def test_however_it_is_made(steps: Steps, makes: list[str]) -> None:
    if chosen_kind() in MYSQL and any("OR REPLACE" in sql for sql in makes):
        pytest.skip("MySQL has no CREATE OR REPLACE TABLE")
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.u"])
    steps.everywhere("CREATE TABLE v (id INT PRIMARY KEY, n INT)")
    steps.run()
    steps.everywhere(*makes, "INSERT INTO u (id, n) VALUES (1, 1), (2, 2)", "UPDATE u SET n = 9 WHERE id = 2")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)


def must_log_selects(statements: Sequence[str]) -> None:
    if chosen_kind() == "mysql-8.0" and any("SELECT" in sql for sql in statements):
        pytest.skip("MySQL refuses CREATE TABLE ... SELECT with GTIDs before 8.0.21")


def test_create_with_select_in_a_session_that_logs_rows(steps: Steps) -> None:
    must_log_selects(["SELECT"])
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.u"])
    steps.everywhere("CREATE TABLE v (id INT PRIMARY KEY, n INT)", "INSERT INTO v VALUES (1, 1), (2, 2)")
    steps.run()
    steps.everywhere("CREATE TABLE u (PRIMARY KEY (id)) SELECT * FROM v", "UPDATE u SET n = 3 WHERE id = 2")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)


@pytest.fixture(scope="module")
def apart() -> Iterator[Servers]:
    """Servers whose logs no oracle reads: they hold statements as text."""
    with (
        chosen_server(server_id=131, password="t") as first,
        chosen_server(server_id=132, password="t") as second,
    ):
        for server in (first, second):
            server.sql(f"GRANT SHOW VIEW, TRIGGER ON *.* TO {FEED_USER}@'%'")
        yield {"-80": first, "80-": second}


@pytest.mark.parametrize(
    "writes",
    [
        [NEW, *AS_TEXT],
        ["CREATE TABLE v (id INT PRIMARY KEY, n INT)", "INSERT INTO v VALUES (1, 1)",
         "SET SESSION binlog_format = STATEMENT", "CREATE TABLE u (PRIMARY KEY (id)) SELECT * FROM v"],
        ["CREATE TABLE u (PRIMARY KEY (id)) SELECT 1 AS id, 2 AS n", "ALTER TABLE u ADD COLUMN m INT"],
        [NEW, ROWS, "ALTER TABLE u ADD COLUMN m INT"],
        [NEW, *AS_TEXT, "ALTER TABLE u ADD COLUMN m INT"],
        [NEW, ROWS, "TRUNCATE TABLE u", ROWS],
        [NEW, ROWS, "ALTER TABLE u MODIFY n BIGINT"],
    ],
)  # fmt: skip
def test_what_the_log_does_not_tell_is_copied(
    apart: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    writes: list[str],
) -> None:
    must_log_selects(writes)
    steps = begun(apart, fresh_schema(*apart.values()), tmp_path, monkeypatch)
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.u"])
    steps.everywhere(*writes)
    steps.everywhere("INSERT INTO t VALUES (9)")
    steps.must_be_equal("u", "id", "n")
    assert not was_born(steps, shards=1)


def test_on_one_shard_long_before_the_other(steps: Steps) -> None:
    steps.sql("-80", NEW, ROWS)
    steps.run()
    assert carried(steps) == {"t"}
    steps.sql("-80", "DELETE FROM u WHERE id = 1", "INSERT INTO t VALUES (4)")
    steps.run()
    steps.sql("80-", NEW, ROWS)
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)


def test_too_much_log_is_not_read_again(steps: Steps) -> None:
    steps.set(copy={"log_budget": "1MB"})
    steps.everywhere("CREATE TABLE w (id INT PRIMARY KEY, b LONGBLOB)")
    steps.sql("-80", NEW, ROWS)
    steps.run()
    steps.sql("-80", *(f"INSERT INTO w VALUES ({number}, REPEAT('b', 600000))" for number in range(2)))
    steps.sql("80-", NEW, ROWS, "INSERT INTO t VALUES (4)")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps, shards=1)


def test_a_table_dropped_and_made_again_is_not_copied(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS)
    steps.must_be_equal("u", "id", "n")
    steps.everywhere("DROP TABLE u", "INSERT INTO t VALUES (5)")
    steps.run()
    assert [one.table.name for one in manifests(steps)[-1].outside] == ["u"]
    steps.everywhere("CREATE TABLE u (id INT PRIMARY KEY, m INT)", "INSERT INTO u VALUES (3, 4), (9, 9)")
    steps.must_be_equal("u", "id", "m")
    assert was_born(steps)
    assert manifests(steps)[-1].stale == ()
    steps.everywhere("DROP TABLE u", NEW, ROWS)  # between two epochs
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps)


def test_made_again_on_one_shard_the_other_is_copied(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS)
    steps.must_be_equal("u", "id", "n")
    steps.sql("-80", "DROP TABLE u", NEW, "INSERT INTO u VALUES (7, 7)")
    steps.everywhere("INSERT INTO t VALUES (6)")
    steps.renew("INSERT INTO t VALUES (77)")
    steps.must_be_equal("u", "id", "n")
    assert was_born(steps, shards=1)


@pytest.mark.parametrize("fault", [Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW])
def test_a_run_that_dies_while_it_enters_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.everywhere(NEW, ROWS)
    steps.die_again_and_again(fault, 4)
    steps.everywhere("UPDATE u SET n = n + 1", "INSERT INTO u VALUES (4, 40)")
    steps.enter("u", "REPLACE INTO t VALUES (1)")
    steps.must_be_equal("u", "id", "n")
    assert carried(steps) == {"t", "u"}


def test_a_prepared_transaction_of_it_counts_when_it_is_committed(steps: Steps) -> None:
    steps.everywhere(NEW, ROWS)
    steps.sql("-80", "XA START 'born'", "INSERT INTO u VALUES (5, 50)", "XA END 'born'", "XA PREPARE 'born'")
    try:
        steps.run()
        assert was_born(steps)
        assert steps.lake("u", "id") == [(shard, key) for shard in ("-80", "80-") for key in (1, 2, 3)]
    finally:
        steps.sql("-80", "XA COMMIT 'born'")
    steps.must_be_equal("u", "id", "n")


@pytest.mark.wide
def test_every_epoch_is_exact_while_tables_are_made_and_written_to(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten tables are made under writes, one of them again and again. Each is compared with the log at every epoch."""
    run_here(monkeypatch)
    schema = fresh_schema(*servers.values())
    steps = Steps(tmp_path, servers, schema)
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 0)")
    steps.run()
    stop, rng, errors = threading.Event(), random.Random(7), []

    def write() -> None:
        try:
            for number in range(10):
                made = f"CREATE TABLE n{number} (id INT PRIMARY KEY, n INT)"
                steps.everywhere(made, *([f"DROP TABLE n{number}", made] if number % 3 == 0 else ()))
                if number % 3 == 1:
                    steps.everywhere("DROP TABLE n0", "CREATE TABLE n0 (id INT PRIMARY KEY, n INT)")
                for _ in range(40):
                    table, key = f"n{rng.choice((0, number, max(0, number - 1)))}", rng.randint(1, 60)
                    steps.sql(
                        rng.choice(list(servers)),
                        rng.choice(
                            (
                                f"REPLACE INTO {table} VALUES ({key}, {rng.randint(1, 99)})",
                                f"DELETE FROM {table} WHERE id BETWEEN {key} AND {key + 5}",
                                f"UPDATE {table} SET n = n + 1 WHERE id % 5 = {key % 5}",
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
    while len(carried(steps)) < 11 and feed.is_alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    stop.set()
    feed.join()
    assert not errors
    for number in range(10):
        steps.must_be_equal(f"n{number}", "id", "n")
        assert was_born(steps, f"n{number}")
    assert judged(steps, [f"{schema}.n{number}" for number in range(10)]) > 100
