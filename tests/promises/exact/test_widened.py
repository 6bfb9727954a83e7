"""Columns that get another definition which leaves every value as it is: nothing is read from the source again."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.trial import SHARES, Alter, Trial
from tests.world.settled import settled

COLUMNS = ("id", "n", "v", "e", "d", "b")
BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARCHAR(5) CHARACTER SET utf8mb3, e ENUM('x','y') NOT NULL,"
    " d DECIMAL(6,2), b VARBINARY(4) NOT NULL) CHARACTER SET utf8mb4",
    "INSERT INTO t VALUES (1, 10, 'one', 'x', 1.5, 'a'), (2, 20, 'zwölf', 'y', -9999.99, 'bbbb'),"
    " (3, NULL, NULL, 'x', NULL, '')",
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    return begun(tmp_path, fresh_schema(*shards), monkeypatch, {"-80": shards[0], "80-": shards[1]})


def begun(
    directory: Path, schema: str, patch: pytest.MonkeyPatch, servers: dict[str, PrivateServer]
) -> Steps:
    run_here(patch)
    steps = Steps(directory, servers, schema)
    steps.everywhere(*BEGIN)
    steps.run()
    return steps


def never_stale(steps: Steps) -> bool:
    """Whether every epoch had all tables as of itself."""
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    return len(rows) > 1 and not any(row.manifest.stale for row in rows)


TEXT = "ALTER TABLE t MODIFY v VARCHAR(50) CHARACTER SET utf8mb4"
LABELS = "ALTER TABLE t MODIFY e ENUM('x','y','z') NOT NULL DEFAULT 'z'"
LONG = "('a longer text 😀')"
WIDE = "ALTER TABLE t MODIFY n BIGINT, CHANGE COLUMN d d DECIMAL(12,4)"
BIG = "n = 1234567890123456789, d = 12345678.1234"
ONE_EPOCH = {
    "alone": TEXT,
    "behind rows": f"UPDATE t SET v = 'abcde' WHERE id = 1; DELETE FROM t WHERE id = 2; {TEXT}",
    "before rows": f"{TEXT}; UPDATE t SET v = {LONG} WHERE id = 1; INSERT INTO t (id, v, b) VALUES (4, {LONG}, '')",
    "among rows": f"INSERT INTO t (id, v, b) VALUES (4, 'four', ''); {TEXT};"
    f"UPDATE t SET v = {LONG} WHERE id IN (3, 4)",
    "to a large text": "UPDATE t SET n = 5; ALTER TABLE t MODIFY v MEDIUMTEXT; UPDATE t SET v = REPEAT('é', 70000)",
    "twice": f"INSERT INTO t (id, v, b) VALUES (4, 'four', ''); {TEXT}; UPDATE t SET v = {LONG} WHERE id = 1;"
    "ALTER TABLE t MODIFY v TEXT CHARACTER SET utf8mb4 FIRST; UPDATE t SET v = REPEAT('x', 60) WHERE id = 2",
    "labels": f"UPDATE t SET e = 'y' WHERE id = 1; {LABELS}; UPDATE t SET e = 'z' WHERE id = 2",
    "bytes": "ALTER TABLE t MODIFY b VARBINARY(9) NOT NULL; UPDATE t SET b = 'nine byte' WHERE id = 2;"
    "ALTER TABLE t MODIFY b BLOB NOT NULL; UPDATE t SET b = REPEAT('z', 1000) WHERE id = 3",
    "NULL allowed": "ALTER TABLE t CHANGE b b VARBINARY(4) COMMENT 'now with none' AFTER id; UPDATE t SET b = NULL",
    "no more NULL": "UPDATE t SET n = 0 WHERE n IS NULL; ALTER TABLE t MODIFY n INT NOT NULL DEFAULT 7, ADD k INT",
    "wider": WIDE,
    "wider behind rows": f"UPDATE t SET n = 7, d = -1 WHERE id = 1; DELETE FROM t WHERE id = 2; {WIDE}",
    "wider before rows": f"{WIDE}; UPDATE t SET {BIG} WHERE id = 1; INSERT INTO t (id, n, b) VALUES (4, -4, '')",
    "wider among rows": f"INSERT INTO t (id, n, d, b) VALUES (4, 4, 4, ''), (5, NULL, NULL, ''); {WIDE};"
    f"UPDATE t SET {BIG} WHERE id IN (1, 3); DELETE FROM t WHERE id = 2",
    "wider twice": "ALTER TABLE t MODIFY d DECIMAL(8,3); UPDATE t SET d = 99999.999 WHERE id = 1;"
    f"ALTER TABLE t MODIFY d DECIMAL(9,3); UPDATE t SET d = 123456.5 WHERE id = 2; {WIDE}; UPDATE t SET {BIG}",
    "wider and dropped": f"{WIDE}; UPDATE t SET {BIG}; ALTER TABLE t DROP v, MODIFY n BIGINT FIRST;"
    "ALTER TABLE t ADD v INT",
    "and dropped": f"{TEXT}; UPDATE t SET v = {LONG}; ALTER TABLE t DROP v; ALTER TABLE t ADD v INT;"
    "UPDATE t SET v = 4",
}


# Two shards cannot drop and add one name in one epoch.
SHARDS = {
    f"{name} on {count}": (statements, count)
    for name, statements in ONE_EPOCH.items()
    for count in (1, 2)
    if count == 1 or "DROP v" not in statements
}


@pytest.mark.parametrize(
    ("statements", "count"),
    [
        pytest.param(*of, id=name, marks=pytest.mark.wide if "DROP v" not in of[0] and of[1] == 1 else ())
        for name, of in SHARDS.items()
    ],
)
def test_one_epoch(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: str,
    count: int,
) -> None:
    servers = dict(zip("ab", shards[:count], strict=False))
    steps = begun(tmp_path, fresh_schema(*shards), monkeypatch, servers)
    steps.everywhere(*statements.split(";"))
    steps.must_be_equal("t", *COLUMNS)
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id, b) VALUES (77, 'b')")
    steps.must_be_equal("t", *COLUMNS)
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
    steps = begun(tmp_path, fresh_schema(nameless), monkeypatch, {"a": nameless})
    steps.everywhere(*statements.split(";"))
    steps.must_be_equal("t", *COLUMNS)
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id, b) VALUES (77, 'b')")
    steps.must_be_equal("t", *COLUMNS)
    assert never_stale(steps)


@pytest.fixture(scope="module")
def nameless() -> Iterator[PrivateServer]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield server


WIDER = {
    "text": (TEXT, f"UPDATE t SET v = {LONG} WHERE id = 2"),
    "labels": (LABELS, "UPDATE t SET e = 'z' WHERE id = 2"),
    "integers": ("ALTER TABLE t MODIFY n BIGINT", "UPDATE t SET n = 1234567890123456789 WHERE id = 2"),
    "decimals": (WIDE, f"UPDATE t SET {BIG} WHERE id = 2"),
}


@pytest.mark.parametrize(("alter", "after"), WIDER.values(), ids=WIDER)
def test_one_shard_before_the_other(steps: Steps, alter: str, after: str) -> None:
    """A shard that has not altered still logs the former type."""
    steps.sql("-80", alter, after)
    steps.must_be_equal("t", *COLUMNS)
    steps.everywhere(
        "UPDATE t SET v = 'xyz', n = 5, d = 2.25 WHERE id = 3", "INSERT INTO t (id, b) VALUES (4, 'q')"
    )
    steps.must_be_equal("t", *COLUMNS)
    assert execute(["verify", str(steps.file)]) == 0
    steps.sql("80-", "UPDATE t SET v = 'back' WHERE id = 1", alter)
    steps.must_be_equal("t", *COLUMNS)
    steps.everywhere(after, "UPDATE t SET n = 7 WHERE id = 1")
    steps.must_be_equal("t", *COLUMNS)
    newest = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert newest is not None
    (shape,) = newest.manifest.shapes
    assert not any(one.shards for one in shape.widened)
    assert never_stale(steps)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t MODIFY v VARCHAR(50) CHARACTER SET latin1",
        "ALTER TABLE t MODIFY n SMALLINT",
        "ALTER TABLE t ADD m BIGINT, ADD k INT; INSERT INTO t (id, b, m) VALUES (9, '', 1); ALTER TABLE t MODIFY m INT",
        *(
            pytest.param(statement, marks=pytest.mark.wide)
            for statement in (
                "ALTER TABLE t MODIFY v VARCHAR(4) CHARACTER SET utf8mb4",
                "ALTER TABLE t MODIFY v CHAR(50) CHARACTER SET utf8mb4",
                "ALTER TABLE t MODIFY e ENUM('y','x') NOT NULL",
                "ALTER TABLE t MODIFY n INT UNSIGNED",
                "ALTER TABLE t MODIFY d DECIMAL(6,1)",
                "ALTER TABLE t MODIFY d DECIMAL(6,3)",
                "ALTER TABLE t MODIFY b BINARY(9) NOT NULL",
                "ALTER TABLE t MODIFY id BIGINT",
            )
        ),
    ],
)
def test_what_is_not_known_is_copied(steps: Steps, statement: str) -> None:
    steps.everywhere("SET sql_mode = ''", "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)")
    for server in steps.servers.values():
        server.sql(f"USE {steps.schema}", "SET sql_mode = ''", *statement.split(";"))
    steps.renew("INSERT INTO other VALUES (NULL)")
    steps.must_be_equal("t", *COLUMNS)
    assert not never_stale(steps)


@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_a_column_that_another_is_computed_from_is_copied(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """The server changes the other column, too, and logs neither."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.everywhere(
        f"CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(6,2), g VARCHAR(20) AS (CONCAT(d)) {kind})",
        "INSERT INTO t (id, d) VALUES (1, 1.5), (2, NULL)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
    )
    steps.run()
    steps.everywhere("ALTER TABLE t MODIFY d DECIMAL(9,3)")
    steps.renew("INSERT INTO other VALUES (NULL)")
    steps.must_be_equal("t", "id", "d", "g")
    assert not never_stale(steps)


@pytest.mark.parametrize("share", SHARES)
def test_every_epoch_is_exact_while_columns_become_wider(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, share: float
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=44, chunk_rows=6)
    wider = (
        "ALTER TABLE items MODIFY quantity BIGINT NOT NULL, MODIFY price DECIMAL(14,5)",
        "ALTER TABLE people MODIFY city VARCHAR(90), CHANGE balance balance DECIMAL(16,3) NOT NULL",
        "ALTER TABLE orders MODIFY status SMALLINT UNSIGNED NOT NULL, MODIFY note LONGTEXT, "
        "MODIFY discount DECIMAL(7,5)",
        "ALTER TABLE orders MODIFY status BIGINT UNSIGNED NOT NULL FIRST",
        "ALTER TABLE items MODIFY price DECIMAL(20,5) NULL, MODIFY label CHAR(20)",
    )
    alters = [
        Alter(3 + 6 * number + late, shard, sql)
        for number, sql in enumerate(wider)
        for late, shard in enumerate(("-80", "80-") if number % 2 else ("80-", "-80"))
    ]
    verdict = trial.run(epochs=40, rest_every=8, alters=alters, share=share)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= share * 40
    assert verdict.stale == 0
    assert verdict.plain > 10
    assert verdict.told > 10


def test_an_earlier_epoch_has_the_former_type(steps: Steps) -> None:
    wide = "ALTER TABLE t MODIFY n BIGINT"
    first = epochs(steps)[-1]
    steps.everywhere(wide)
    steps.run()
    settled(steps.feed)
    steps.everywhere("UPDATE t SET n = 1234567890123456789 WHERE id = 1")
    steps.must_be_equal("t", *COLUMNS)
    settled(steps.feed)
    then = read(steps.feed, f"{steps.schema}.t", epoch=first).arrow()
    assert then.schema.field("n").type == pa.int32()
    assert sorted(value or 0 for value in then["n"].to_pylist()) == [0, 0, 10, 10, 20, 20]
    assert read(steps.feed, f"{steps.schema}.t").arrow().schema.field("n").type == pa.int64()
    assert execute(["verify", str(steps.file)]) == 0


def epochs(steps: Steps) -> list[int]:
    return [row.manifest.epoch for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()]


@pytest.mark.parametrize("mode", ["append", "soft_delete", "history"])
def test_modes(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """A table whose mode keeps the past could not be copied anew without losing it."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(modes=[{"match": f"{steps.schema}.*", "mode": mode}])
    steps.everywhere(*BEGIN)
    steps.run()
    for number, statements in enumerate(
        (["UPDATE t SET n = 4"], [WIDE, TEXT], [f"UPDATE t SET {BIG}, v = {LONG}"])
    ):
        for shard in steps.servers:
            steps.sql(shard, *statements)
            steps.must_be_equal("t", *COLUMNS)
        if number % 2 == 0:
            settled(steps.feed)
            assert steps.lake("t", *COLUMNS) == steps.source("t", *COLUMNS)
    assert never_stale(steps)


def test_masked_columns(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An integer has the HMAC of its digits, whatever its type."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(shards[0]))
    rules: list[tuple[str, dict[str, Any]]] = [
        ("n", {"mask": "hmac"}),
        ("d", {"mask": "nulls"}),
        ("v", {"mask": "partial", "show": 2}),
    ]
    steps.set(
        mask_key="a key of thirty and some characters",
        columns=[{"match": f"{steps.schema}.t.{name}", **rule} for name, rule in rules],
    )
    steps.everywhere(*BEGIN)
    steps.run()
    before = steps.lake("t", *COLUMNS)
    steps.everywhere("INSERT INTO t (id, n, v, b) VALUES (4, 10, 'one', '')", WIDE, TEXT)
    steps.everywhere(
        "UPDATE t SET b = 'x' WHERE id = 1", "INSERT INTO t (id, n, v, b) VALUES (5, 10, 'one', '')"
    )
    steps.run()
    after = steps.lake("t", *COLUMNS)
    assert [row[:4] for row in after[:3]] == [row[:4] for row in before]
    assert after[0][2] == after[3][2] == after[4][2] != "10"
    assert {row[5] for row in after} == {None}
    assert after[3][3] == after[4][3] == before[0][3]
    assert never_stale(steps)


@pytest.mark.parametrize("fault", [Fault.AFTER_PLAN, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY])
def test_a_run_that_dies_anywhere_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.sql("-80", WIDE, TEXT, f"UPDATE t SET {BIG}, v = {LONG} WHERE id = 1")
    steps.die_again_and_again(fault, 4)
    steps.everywhere("UPDATE t SET n = 3 WHERE id = 3")
    steps.must_be_equal("t", *COLUMNS)
    steps.sql("80-", "UPDATE t SET v = 'xyz' WHERE id = 1", WIDE, TEXT)
    steps.die_again_and_again(fault, 4)
    steps.must_be_equal("t", *COLUMNS)
    assert never_stale(steps)
