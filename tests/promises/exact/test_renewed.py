"""DDL whose effect is in no log: the table stands as of the last exact epoch, is copied anew, and takes its place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.erasure.places import data_files
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.upkeep.clean import Keeping, clean_feed
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import EMPTIES, Steps, run_here
from tests.promises.exact.trial import SHARES, Alter, Trial
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
    "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
    "INSERT INTO other VALUES (1)",
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two tables on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    for one in begun.servers:
        begun.sql(one, *BEGIN)
    begun.run()
    return begun


PROOF = "INSERT INTO other VALUES (NULL)"
WAYS = {
    "unknown": ([*EMPTIES, "INSERT INTO t VALUES (7, 70)"], ("id", "n")),
    "widened": (
        ["ALTER TABLE t MODIFY n BIGINT DEFAULT (1 + 1)", "UPDATE t SET n = 5000000000 WHERE id = 2"],
        ("id", "n"),
    ),
    "narrowed": (["UPDATE t SET n = 1", "ALTER TABLE t MODIFY n TINYINT"], ("id", "n")),
    "default": (["ALTER TABLE t ADD COLUMN m INT NOT NULL DEFAULT 4"], ("id", "n", "m")),
    "renamed column": (["ALTER TABLE t CHANGE n m SMALLINT"], ("id", "m")),
    "text": (["ALTER TABLE t MODIFY n VARCHAR(20)"], ("id", "n")),
    "another key": (["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)"], ("id", "n")),
    "swap": (
        [
            "CREATE TABLE t_new (id BIGINT PRIMARY KEY, n INT, m INT)",
            "INSERT INTO t_new SELECT id, n, 1 FROM t",
            "RENAME TABLE t TO t_old, t_new TO t",
            "DROP TABLE t_old",
        ],
        ("id", "n", "m"),
    ),
    "made anew": (
        ["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, w INT)", "INSERT INTO t VALUES (9, 9)"],
        ("id", "w"),
    ),
    "emptied": ([*EMPTIES], ("id", "n")),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_copied_anew(steps: Steps, way: str) -> None:
    statements, columns = WAYS[way]
    steps.everywhere(*statements, PROOF, PROOF)
    steps.renew(PROOF)
    steps.must_be_equal("t", *columns)
    assert steps.lake("other", "id") == steps.source("other", "id")
    steps.everywhere("DELETE FROM t WHERE id = 1", PROOF)
    steps.must_be_equal("t", *columns)


@pytest.mark.mariadb("MySQL logs the names of columns or nothing that a table could be described by")
@pytest.mark.parametrize("way", ["unknown", "widened", "default", "swap", "made anew"])
def test_a_log_that_names_no_columns(
    way: str, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    statements, columns = WAYS[way]
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        steps = Steps(tmp_path, {"a": server}, fresh_schema(server))
        steps.everywhere(*BEGIN)
        steps.run()
        steps.everywhere("UPDATE t SET n = n + 1", *statements, PROOF, PROOF)
        steps.renew(PROOF)
        steps.must_be_equal("t", *columns)
        steps.everywhere("DELETE FROM t WHERE id = 1", PROOF)
        steps.must_be_equal("t", *columns)
        steps.must_be_equal("other", "id")


def test_epochs_of_a_copy_that_was_never_settled_can_be_read_as_before(steps: Steps) -> None:
    """The plain table's first version is of the new copy; the window for readers begins before it."""
    table = f"{steps.schema}.t"
    before = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert before is not None
    rows = read(steps.feed, table).arrow()
    steps.everywhere("UPDATE t SET n = n + 1", "ALTER TABLE t ORDER BY n", PROOF)
    steps.renew(PROOF)
    for _ in range(2):
        settled(steps.feed)
    assert read(steps.feed, table, before.manifest.epoch).arrow().equals(rows)
    root, first = steps.feed.sink.path, tail_dir(steps.feed.sink.path, TableId.parse(table))
    assert data_files(first)
    clean_feed(root, steps.feed.name, Keeping(window_seconds=0, attempt_seconds=0))
    assert not data_files(first)
    steps.must_be_equal("t", "id", "n")


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_tables_are_copied_anew_under_random_transactions(
    servers: Servers, spark: SparkContext, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=41, chunk_rows=40)
    wider = "ALTER TABLE orders MODIFY status SMALLINT UNSIGNED NOT NULL CHECK (status < 60000)"
    longer = "ALTER TABLE items MODIFY quantity BIGINT NOT NULL, MODIFY price DECIMAL(14,3) CHECK (price < 10000000)"
    alters = [
        Alter(4, "-80", "ALTER TABLE items ORDER BY quantity"),
        Alter(8, "80-", wider),
        Alter(9, "-80", wider),
        Alter(14, "80-", "ALTER TABLE people COLLATE utf8mb4_bin"),
        Alter(18, "-80", longer),
        Alter(22, "80-", longer),
        Alter(26, "-80", "ALTER TABLE orders ORDER BY status"),
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale > 10
    assert verdict.renewed >= 3
    assert verdict.plain > 10
    assert verdict.told > 10
