"""Columns that come with a value in every row: servers log no such row, and every epoch has them all."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.sink.delta.epochs.table import EpochsTable
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.trial import SHARES, Alter, Trial

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
)
ADD = "ALTER TABLE t ADD COLUMN m INT NOT NULL DEFAULT 4"


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.everywhere(*BEGIN)
    begun.run()
    return begun


def never_stale(steps: Steps) -> bool:
    """Whether every epoch had all tables as of itself."""
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    return len(rows) > 1 and not any(row.manifest.stale for row in rows)


ONE_EPOCH = {
    "alone": f"{ADD}",
    "behind rows": f"UPDATE t SET n = 1 WHERE id = 1; DELETE FROM t WHERE id = 2; {ADD}",
    "before rows": f"{ADD}; UPDATE t SET n = 1 WHERE id = 1; INSERT INTO t VALUES (4, 4, 9), (5, 5, DEFAULT)",
    "among rows": f"INSERT INTO t VALUES (4, 4); UPDATE t SET n = 1 WHERE id = 1; {ADD}; DELETE FROM t WHERE id = 2;"
    "UPDATE t SET m = 8 WHERE id IN (3, 4); INSERT INTO t VALUES (2, 2, 2)",
    "twice": f"INSERT INTO t VALUES (4, 4); {ADD}; INSERT INTO t VALUES (5, 5, 5); ALTER TABLE t DROP m;"
    "ALTER TABLE t ADD COLUMN m INT DEFAULT 6; UPDATE t SET n = 1 WHERE id = 1",
    "twice behind rows": f"INSERT INTO t VALUES (4, 4); {ADD}; ALTER TABLE t DROP m;"
    "ALTER TABLE t ADD COLUMN m INT DEFAULT 6",
    "and dropped": f"{ADD}; ALTER TABLE t DROP m; ALTER TABLE t ADD COLUMN m INT; INSERT INTO t VALUES (4, 4, 4)",
    "another type": f"{ADD}; UPDATE t SET m = 9 WHERE id = 1;"
    "ALTER TABLE t DROP m, ADD COLUMN m VARCHAR(9) DEFAULT 'x'; INSERT INTO t VALUES (4, 4, 'y')",
    "in another case": "ALTER TABLE t ADD COLUMN M INT DEFAULT 4; INSERT INTO t (id, m) VALUES (4, 5)",
    "several": "ALTER TABLE t ADD COLUMN a INT DEFAULT 1, ADD COLUMN m INT NOT NULL DEFAULT 3, DROP n",
}


# Two shards cannot drop and add one name in one epoch.
ALONE_OR_TWO = {
    f"{name}, {count}": (statements, count)
    for name, statements in ONE_EPOCH.items()
    for count in (1, 2)
    if count == 1 or "DROP m" not in statements
}


@pytest.mark.parametrize(
    ("statements", "count"),
    ALONE_OR_TWO.values(),
    ids=ALONE_OR_TWO,
)
def test_one_epoch(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: str,
    count: int,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, dict(zip("ab", shards[:count], strict=False)), fresh_schema(*shards))
    steps.everywhere(*BEGIN)
    steps.run()
    steps.everywhere(*statements.split(";"))
    name = "M" if " M " in statements else "m"
    steps.must_be_equal("t", "id", name)
    steps.everywhere("UPDATE t SET m = NULL WHERE id = 3" if "NOT NULL" not in statements else "DO 0")
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id) VALUES (77)")
    steps.must_be_equal("t", "id", name)
    assert never_stale(steps)


@pytest.mark.parametrize(
    "behind", ["INSERT INTO t VALUES (6, 6, 6)", "DO 0"], ids=["rows behind", "none behind"]
)
def test_one_shard_before_the_other(steps: Steps, behind: str) -> None:
    """Each shard's rows get the value with its own ALTER; until then they have none."""
    steps.sql("-80", ADD, "UPDATE t SET n = 1 WHERE id = 1")
    steps.run()
    held = {(row[0], row[1]): row[2] for row in steps.lake("t", "id", "m")}
    assert [held["-80", key] for key in (1, 2, 3)] == [4, 4, 4]
    assert [held["80-", key] for key in (1, 2, 3)] == [None] * 3
    steps.sql("80-", "INSERT INTO t VALUES (4, 4)", ADD.replace("4", "5"), behind)
    steps.must_be_equal("t", "id", "n", "m")
    assert never_stale(steps)


def test_an_earlier_epoch_does_not_have_the_column(steps: Steps) -> None:
    steps.everywhere(ADD)
    steps.run()
    first, *_ = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    state = read(steps.feed, f"{steps.schema}.t", epoch=first.manifest.epoch)
    assert "m" not in state.arrow().column_names
    steps.everywhere("ALTER TABLE t DROP m")
    steps.must_be_equal("t", "id", "n")


TYPES = (
    "BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615",
    "DECIMAL(9,2) NOT NULL DEFAULT '-0.5'",
    "DOUBLE NOT NULL DEFAULT 3",
    "FLOAT DEFAULT 16777216",
    "VARCHAR(30) NOT NULL DEFAULT 'it''s {new} \"%s\" `x`'",
    "VARCHAR(9) CHARACTER SET latin1 NOT NULL",
    "TEXT NOT NULL",
    "VARBINARY(9) NOT NULL",
    "ENUM('x','y') NOT NULL",
    "SET('x','y') DEFAULT 'y'",
    "DATE NOT NULL DEFAULT '2026-02-28'",
    "DATETIME(6) DEFAULT '2026-02-28 01:02:03.000004'",
    "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "BIT(9) DEFAULT 300",
    "YEAR DEFAULT 1999",
    "BOOLEAN NOT NULL DEFAULT TRUE",
)


def test_values_of_all_types(steps: Steps, spark: SparkContext) -> None:
    """Those that the statement says are those that row events show afterwards, to every engine."""
    names = [f"c{number}" for number in range(len(TYPES))]
    added = ", ".join(f"ADD COLUMN {name} {kind}" for name, kind in zip(names, TYPES, strict=True))
    steps.everywhere(f"ALTER TABLE t {added}")
    steps.run()
    session = SparkSession(spark)
    told = [
        state.select(["_shard", "id", *names]).sort_by([("_shard", "ascending"), ("id", "ascending")])
        for state in (
            read(steps.feed, f"{steps.schema}.t").arrow(),
            read(steps.feed, f"{steps.schema}.t").spark(session).toArrow(),
        )
    ]
    steps.everywhere("UPDATE t SET n = n + 1")
    steps.run()
    logged = read(steps.feed, f"{steps.schema}.t").arrow().select(["_shard", "id", *names])
    logged = logged.sort_by([("_shard", "ascending"), ("id", "ascending")])
    assert logged.num_rows == 6
    assert not any(logged[name].null_count for name in names)
    for rows in told:
        assert rows.to_pylist() == logged.to_pylist()
    assert never_stale(steps)


@pytest.mark.mariadb("MySQL logs the names of columns or nothing that a table could be described by")
@pytest.mark.parametrize("statements", ONE_EPOCH.values(), ids=ONE_EPOCH)
def test_a_log_that_names_no_columns(
    statements: str,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nameless: PrivateServer,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": nameless}, fresh_schema(nameless))
    steps.everywhere(*BEGIN)
    steps.run()
    steps.everywhere(*statements.split(";"))
    name = "M" if " M " in statements else "m"
    steps.must_be_equal("t", "id", name)
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id) VALUES (77)")
    steps.must_be_equal("t", "id", name)


@pytest.fixture(scope="module")
def nameless() -> Iterator[PrivateServer]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield server


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN m VARCHAR(40) DEFAULT 'für'",
        "ALTER TABLE t ADD COLUMN m DATETIME DEFAULT CURRENT_TIMESTAMP",
        "ALTER TABLE t ADD COLUMN m INT AS (n + 1)",
    ],
)
def test_values_that_are_not_told_for_certain_are_copied(steps: Steps, statement: str) -> None:
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", statement)
    steps.renew("INSERT INTO other VALUES (NULL)")
    steps.must_be_equal("t", "id", "m")
    assert not never_stale(steps)


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_columns_come_with_values(
    servers: Servers, spark: SparkContext, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=43, chunk_rows=6)
    trial.fill("orders", "extra")
    extra = "ALTER TABLE orders ADD COLUMN extra INT DEFAULT 7"
    marked = (
        "ALTER TABLE items ADD COLUMN mark VARCHAR(10) NOT NULL DEFAULT 'new', "
        "ADD COLUMN rate DECIMAL(6,2) DEFAULT 1.50"
    )
    seen = "ALTER TABLE people ADD COLUMN seen TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"
    dropped, again = (
        "ALTER TABLE orders DROP COLUMN extra",
        "ALTER TABLE orders ADD COLUMN extra BIGINT DEFAULT -3",
    )
    # The rest at epoch 32 parts the DROPs from what is added again.
    alters = [
        Alter(4, "-80", extra),
        Alter(10, "80-", extra),
        Alter(14, "80-", marked),
        Alter(15, "-80", marked),
        Alter(20, "-80", seen),
        Alter(24, "80-", seen),
        Alter(28, "-80", dropped),
        Alter(29, "80-", dropped),
        Alter(33, "80-", again),
        Alter(35, "-80", again),
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale == 0
    assert verdict.plain > 10
    assert verdict.told > 10
