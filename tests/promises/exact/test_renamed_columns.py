"""Columns that get another name: the values stay, servers log no row, and nothing is read from the source again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.renaming import (
    BACK,
    FURTHER,
    RENAME,
    begun,
    epochs,
    must_be_settled,
    must_follow,
    of_others,
    some_wide,
)
from tests.promises.exact.steps import Rows, Steps
from tests.promises.exact.test_filled import never_stale
from tests.promises.exact.trial import SHARES, Alter, Trial
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    return begun(tmp_path, fresh_schema(*shards), monkeypatch, {"-80": shards[0], "80-": shards[1]})


# The statements, and the columns that there are behind them.
ONE_EPOCH = {
    "alone": (RENAME, "c v"),
    "behind rows": (f"UPDATE t SET a = 1 WHERE id = 1; DELETE FROM t WHERE id = 2; {RENAME}", "c v"),
    "before rows": (f"{RENAME}; UPDATE t SET v = 'x' WHERE id = 1; INSERT INTO t VALUES (4, 4, 'y')", "c v"),
    "among rows": (
        f"INSERT INTO t VALUES (4, 4, 'y'); UPDATE t SET v = 'n' WHERE id = 1; {RENAME};"
        "DELETE FROM t WHERE id = 2; UPDATE t SET c = 8 WHERE id = 3; INSERT INTO t VALUES (2, 2, 'z')",
        "c v",
    ),
    "by CHANGE": (
        "UPDATE t SET a = 9 WHERE id = 2; ALTER TABLE t CHANGE COLUMN a größe INT FIRST",
        "größe v",
    ),
    "a text": ("ALTER TABLE t CHANGE v w VARCHAR(9); UPDATE t SET w = 'more' WHERE id = 1", "a w"),
    "and wider": (
        "UPDATE t SET a = 5 WHERE id = 3; ALTER TABLE t CHANGE a c BIGINT, CHANGE v w VARCHAR(50);"
        "UPDATE t SET c = 1234567890123, w = 'a longer text' WHERE id = 1",
        "c w",
    ),
    "twice": (f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; {FURTHER}", "d v"),
    "twice behind rows": (f"UPDATE t SET a = 5 WHERE id = 1; {RENAME}; {FURTHER}", "d v"),
    "twice before rows": (f"{RENAME}; {FURTHER}; UPDATE t SET v = 'x' WHERE id = 1", "d v"),
    "twice and wider": (
        f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; ALTER TABLE t MODIFY c BIGINT;"
        f"UPDATE t SET c = 1234567890123 WHERE id = 2; {FURTHER}",
        "d v",
    ),
    "back": (
        f"UPDATE t SET a = 2 WHERE id = 2; {RENAME}; UPDATE t SET c = 5 WHERE id = 1; {BACK};"
        "INSERT INTO t VALUES (4, 4, 'y')",
        "a v",
    ),
    "back behind rows": (f"{RENAME}; UPDATE t SET c = 5 WHERE id = 1; {BACK}", "a v"),
    "back and forth": (f"{RENAME}; {BACK}; {RENAME}", "c v"),
    "beside others": (
        "INSERT INTO t VALUES (4, 4, 'y'); ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN e INT NOT NULL DEFAULT 5,"
        " MODIFY v VARCHAR(30), ADD INDEX (id, v); UPDATE t SET e = 6 WHERE id = 1",
        "c v e",
    ),
    "and the name again": (
        "ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN a INT DEFAULT 4; UPDATE t SET a = 1 WHERE id = 2",
        "c v",
    ),
    "to a name that goes": (
        "UPDATE t SET a = 3 WHERE id = 3; ALTER TABLE t DROP v, RENAME COLUMN a TO v",
        "",
    ),
    "added and renamed": (
        "ALTER TABLE t ADD COLUMN m INT NOT NULL DEFAULT 6; UPDATE t SET m = 1 WHERE id = 1;"
        "ALTER TABLE t RENAME COLUMN m TO n; INSERT INTO t VALUES (4, 4, 'y', 9)",
        "a v n",
    ),
    "added and renamed behind rows": (
        "UPDATE t SET a = 1 WHERE id = 1; ALTER TABLE t ADD COLUMN m INT DEFAULT 6; ALTER TABLE t RENAME COLUMN m TO n",
        "a v n",
    ),
    "renamed and dropped": (f"UPDATE t SET a = 1; {RENAME}; UPDATE t SET c = 2; ALTER TABLE t DROP c", "v"),
}
# Two shards cannot take a name from a column and give it to another in one epoch.
ALONE = ("and the name again", "to a name that goes")
SHARDS = {
    f"{name}, {count}": (*ONE_EPOCH[name], count)
    for name in ONE_EPOCH
    for count in (1, 2)
    if count == 1 or name not in ALONE
}


@pytest.mark.parametrize(
    ("statements", "columns", "count"),
    some_wide(SHARDS, ("among rows, 2", "twice, 2", "and wider, 1", "back, 2")),
)
def test_one_epoch(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: str,
    columns: str,
    count: int,
) -> None:
    servers = dict(zip("ab", shards[:count], strict=False))
    must_follow(begun(tmp_path, fresh_schema(*shards), monkeypatch, servers), statements, columns)


@pytest.mark.mariadb("MySQL logs the names of columns or nothing that a table could be described by")
@pytest.mark.parametrize(("statements", "columns"), some_wide(ONE_EPOCH, ("beside others",)))
def test_a_log_that_names_no_columns(
    statements: str,
    columns: str,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nameless: PrivateServer,
) -> None:
    must_follow(begun(tmp_path, fresh_schema(nameless), monkeypatch, {"a": nameless}), statements, columns)


@pytest.fixture(scope="module")
def nameless() -> Iterator[PrivateServer]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield server


def by_shard(steps: Steps, shard: str, *columns: str) -> Rows:
    return [row[1:] for row in steps.lake("t", *columns) if row[0] == shard]


@pytest.mark.parametrize("settles", [True, pytest.param(False, marks=pytest.mark.wide)])
def test_one_shard_before_the_other(steps: Steps, settles: bool) -> None:
    """Until a shard renames the column, it has that under the former name alone."""
    steps.sql("-80", "UPDATE t SET a = 11 WHERE id = 1", RENAME, "UPDATE t SET v = 'x' WHERE id = 2")
    steps.run()
    for _ in range(2):
        assert by_shard(steps, "-80", "id", "a", "c") == [(1, None, 11), (2, None, 20), (3, None, None)]
        assert by_shard(steps, "80-", "id", "a", "c") == [(1, 10, None), (2, 20, None), (3, None, None)]
        if settles:
            settled(steps.feed)
    steps.sql("80-", "UPDATE t SET a = 5 WHERE id = 2", "INSERT INTO t VALUES (4, 4, 'y')")
    steps.run()
    assert by_shard(steps, "80-", "id", "a") == [(1, 10), (2, 5), (3, None), (4, 4)]
    assert execute(["verify", str(steps.file)]) == 0
    steps.sql("-80", FURTHER)
    steps.run()
    if settles:
        settled(steps.feed)
    steps.sql("80-", RENAME, "UPDATE t SET c = 6 WHERE id = 2")
    steps.run()
    assert by_shard(steps, "80-", "id", "c") == [(1, 10), (2, 6), (3, None), (4, 4)]
    steps.sql("80-", FURTHER)
    steps.must_be_equal("t", "id", "d", "v")
    must_be_settled(steps, "id", "d", "v")
    assert execute(["verify", str(steps.file)]) == 0
    assert never_stale(steps)


CHAINS = {
    "filled": (
        "ALTER TABLE t ADD m INT NOT NULL DEFAULT 4",
        "ALTER TABLE t RENAME COLUMN m TO n",
        "ALTER TABLE t CHANGE n o INT NOT NULL",
    ),
    "wider": (
        "ALTER TABLE t MODIFY a BIGINT",
        "ALTER TABLE t RENAME COLUMN a TO m",
        "ALTER TABLE t RENAME COLUMN m TO o",
    ),
    "renamed and wider": (
        "ALTER TABLE t RENAME COLUMN a TO m",
        "ALTER TABLE t MODIFY m BIGINT",
        "ALTER TABLE t RENAME COLUMN m TO o",
    ),
    "text": (
        "ALTER TABLE t RENAME COLUMN v TO m",
        "ALTER TABLE t CHANGE m n VARCHAR(40)",
        "ALTER TABLE t CHANGE n o TEXT",
    ),
}


@pytest.mark.wide
@pytest.mark.parametrize("settles", [(), (0,), (1,), (0, 1, 2)])
@pytest.mark.parametrize("chain", CHAINS)
def test_chains(steps: Steps, chain: str, settles: tuple[int, ...]) -> None:
    """Each statement in an epoch of its own, one shard before the other, with settles between."""
    statements = CHAINS[chain]
    for number, statement in enumerate(statements):
        for shard, key in (("-80", 1), ("80-", 2)):
            steps.sql(shard, f"INSERT INTO t (id) VALUES ({10 + number})", statement)
            steps.sql(
                shard, f"DELETE FROM t WHERE id = {9 + number}", f"UPDATE t SET id = -id WHERE id = {key}"
            )
            steps.run()
        if number in settles:
            settled(steps.feed)
    steps.must_be_equal("t", "id", "o")
    must_be_settled(steps, "id", "o")
    assert never_stale(steps)


@pytest.mark.wide
def test_types_apart(steps: Steps) -> None:
    """A shard may rename a column that is of another type there than on the other one."""
    steps.sql("-80", "ALTER TABLE t MODIFY a BIGINT", "UPDATE t SET a = 1234567890123 WHERE id = 1", RENAME)
    steps.run()
    steps.sql("80-", RENAME, "UPDATE t SET c = 5 WHERE id = 3")
    steps.must_be_equal("t", "id", "c", "v")
    steps.sql("80-", FURTHER, "ALTER TABLE t MODIFY d BIGINT", "UPDATE t SET d = 1234567890123 WHERE id = 2")
    steps.run()
    steps.sql("-80", FURTHER)
    steps.must_be_equal("t", "id", "d", "v")
    must_be_settled(steps, "id", "d", "v")
    assert never_stale(steps)


@pytest.mark.wide
def test_every_version_and_epoch_is_exact(steps: Steps) -> None:
    """Older ones have the column under the name of then, for every reader."""
    settled(steps.feed)
    known: list[tuple[int, str, Rows]] = []

    def note(name: str) -> None:
        steps.must_be_equal("t", "id", name, "v")
        settled(steps.feed)
        known.append((epochs(steps)[-1], name, steps.source("t", "id", name, "v")))

    note("a")
    steps.everywhere(RENAME)
    note("c")
    steps.everywhere("UPDATE t SET c = 1 WHERE id = 1", FURTHER, "INSERT INTO t VALUES (4, 4, 'y')")
    note("d")
    steps.everywhere("ALTER TABLE t RENAME COLUMN d TO e, ADD COLUMN f INT DEFAULT 4")
    note("e")
    directory = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "t"))
    with DeltaScan() as scan:
        for epoch, name, rows in known:
            then = read(steps.feed, f"{steps.schema}.t", epoch=epoch).arrow()
            names = ("_shard", "id", name, "v")
            assert sorted(tuple(row[n] for n in names) for row in then.to_pylist()) == rows
            assert not {"a", "c", "d", "e"} - {name} & {*then.column_names}
        seen = set()
        for version in range(DeltaTable(directory).version() + 1):
            (name,) = {"a", "c", "d", "e"} & {
                f.name for f in DeltaTable(directory, version=version).schema().fields
            }
            found = scan.rows(directory, ("_shard", "id", name, "v"), version).to_pylist()
            told = sorted((tuple(row.values()) for row in found), key=repr)
            assert told == of_others(steps, "id", name, "v", version=version)
            assert told in [sorted(rows, key=repr) for _, its, rows in known if its == name]
            seen.add(name)
    assert seen == {"a", "c", "d", "e"}


@pytest.mark.wide
def test_by_spark(steps: Steps, spark: SparkContext) -> None:
    """Before a settle, where Spark brings values from the former columns, and of a former type."""
    settled(steps.feed)
    steps.everywhere("ALTER TABLE t CHANGE a `c{d}` BIGINT", "UPDATE t SET `c{d}` = 12345678901 WHERE id = 1")
    steps.run()
    steps.everywhere("ALTER TABLE t RENAME COLUMN `c{d}` TO e")
    steps.run()
    rows = read(steps.feed, f"{steps.schema}.t").spark(SparkSession(spark)).toArrow().to_pylist()
    found = sorted(tuple(row[n] for n in ("_shard", "id", "e", "v")) for row in rows)
    assert found == steps.source("t", "id", "e", "v")


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_columns_are_renamed(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=45, chunk_rows=6)
    trial.fill("orders", "extra2")
    extra = "ALTER TABLE orders ADD COLUMN extra INT DEFAULT 7"
    named = (
        "ALTER TABLE orders RENAME COLUMN extra TO extra1",
        "ALTER TABLE orders CHANGE extra1 extra2 BIGINT",
        "ALTER TABLE orders RENAME COLUMN extra2 TO extra3, ADD COLUMN mark VARCHAR(9) NOT NULL DEFAULT 'new'",
        "ALTER TABLE orders RENAME COLUMN extra3 TO extra2, RENAME COLUMN mark TO marked",
    )
    alters = [
        Alter(3 + 8 * number + late, shard, sql)  # behind a rest each: no name goes and comes in one epoch
        for number, sql in enumerate((extra, *named))
        for late, shard in enumerate(("-80", "80-") if number % 2 else ("80-", "-80"))
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale == 0
    assert verdict.plain > 10
    assert verdict.told > 10
