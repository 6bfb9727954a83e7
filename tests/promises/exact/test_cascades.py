"""Foreign keys that cascade: servers log no row of it, and every epoch has what they did all the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Shards
from tests.promises.exact.cases import never_stale
from tests.promises.exact.steps import Rows, Steps, run_here
from tests.world.settled import settled

FOLLOW = "ON DELETE CASCADE ON UPDATE CASCADE"
FORGET = "ON DELETE SET NULL ON UPDATE SET NULL"
TABLES = (
    "CREATE TABLE p (id INT PRIMARY KEY, code INT UNIQUE, v INT)",
    "CREATE TABLE q (a INT, b BIGINT, v INT, PRIMARY KEY (a, b))",
    f"CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY fc (p) REFERENCES p (id) {FOLLOW})",
    f"CREATE TABLE n (id INT PRIMARY KEY, p INT, code INT, v VARCHAR(20),"
    f" FOREIGN KEY fn (p) REFERENCES p (id) {FORGET}, FOREIGN KEY fm (code) REFERENCES p (code) {FOLLOW})",
    f"CREATE TABLE g (id INT PRIMARY KEY, c INT, p INT, FOREIGN KEY fg (c) REFERENCES c (id) {FOLLOW},"
    f" FOREIGN KEY fh (p) REFERENCES p (id) {FORGET})",
    "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY ft (up) REFERENCES t (id) ON DELETE CASCADE)",
    f"CREATE TABLE k (id INT PRIMARY KEY, a INT, b BIGINT, FOREIGN KEY fk (a, b) REFERENCES q (a, b) {FOLLOW})",
)
COLUMNS = {
    "p": ("id", "code", "v"),
    "q": ("a", "b", "v"),
    "c": ("id", "p", "v"),
    "n": ("id", "p", "code", "v"),
    "g": ("id", "c", "p"),
    "t": ("id", "up"),
    "k": ("id", "a", "b"),
}
ROWS = (
    "INSERT INTO p SELECT seq, seq + 100, 0 FROM seq_1_to_9",
    "INSERT INTO q SELECT seq, 100 + seq, 0 FROM seq_1_to_9",
    "INSERT INTO c SELECT seq, 1 + seq % 9, 0 FROM seq_1_to_40",
    "INSERT INTO n SELECT seq, 1 + seq % 9, 101 + seq % 7, 'x' FROM seq_1_to_40",
    "INSERT INTO g SELECT seq, 1 + seq % 40, 1 + seq % 9 FROM seq_1_to_80",
    "INSERT INTO t SELECT seq, NULLIF(seq DIV 2, 0) FROM seq_1_to_8",
    "INSERT INTO k SELECT seq, 1 + seq % 9, 101 + seq % 9 FROM seq_1_to_30",
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of a family of tables on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.everywhere(*TABLES, *ROWS)
    begun.run()
    return begun


def must_be_right(steps: Steps) -> None:
    """Every table is the source's, before a settle and behind it, and none was copied again."""
    steps.run()
    for _ in range(2):
        for table, columns in COLUMNS.items():
            assert lake(steps, table) == by_text(steps.source(table, *columns)), table
        settled(steps.feed)
    assert never_stale(steps)


def lake(steps: Steps, table: str) -> list[str]:
    return by_text(steps.lake(table, *COLUMNS[table]))


def by_text(rows: Rows) -> list[str]:
    return sorted(map(str, rows))


ONE_EPOCH = {
    "a parent goes": "DELETE FROM p WHERE id = 3",
    "many go": "DELETE FROM p WHERE id > 4",
    "all go": "DELETE FROM p; DELETE FROM q; DELETE FROM t ORDER BY id DESC",
    "a key changes": "UPDATE p SET id = 30 WHERE id = 3",
    "keys change one behind another": "UPDATE p SET id = id + 1 ORDER BY id DESC",
    "another key": "UPDATE p SET code = 500 WHERE id = 1; UPDATE p SET code = 501 WHERE code = 500",
    "a key becomes NULL": "UPDATE p SET code = NULL WHERE id = 2",
    "a composite one": "UPDATE q SET b = 900 WHERE a = 4; DELETE FROM q WHERE a = 5",
    "no key of a parent": "UPDATE p SET v = 7; UPDATE q SET v = 9",
    "replaced": "REPLACE INTO p VALUES (3, 103, 9)",
    "comes back": "DELETE FROM p WHERE id = 3; INSERT INTO p VALUES (3, 103, 1); INSERT INTO c VALUES (90, 3, 1),"
    "(2, 3, 1)",
    "children that were written before": "INSERT INTO c VALUES (90, 3, 1); INSERT INTO g VALUES (90, 90, 4);"
    "UPDATE c SET p = 3 WHERE id = 1; UPDATE c SET p = 4 WHERE id = 2; DELETE FROM p WHERE id = 3",
    "children that went before": "DELETE FROM c WHERE p = 3; DELETE FROM p WHERE id = 3",
    "another life of a child": "INSERT INTO c VALUES (90, 3, 1); INSERT INTO g VALUES (90, 90, NULL);"
    "DELETE FROM p WHERE id = 3; INSERT INTO p VALUES (3, 103, 1); INSERT INTO c VALUES (90, 3, 2)",
    "a tree": "DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2, 3), (40, 2)",
    "a tree twice": "DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (2, 3), (40, 2); DELETE FROM t WHERE id = 3",
    "without checks": "SET foreign_key_checks = 0; DELETE FROM p WHERE id = 3; UPDATE p SET id = 40 WHERE id = 4",
    "undone": "START TRANSACTION; DELETE FROM p WHERE id = 3; ROLLBACK; START TRANSACTION;"
    "UPDATE p SET v = 1 WHERE id = 1; SAVEPOINT s; DELETE FROM p WHERE id = 4; ROLLBACK TO SAVEPOINT s; COMMIT",
    "in one transaction": "START TRANSACTION; INSERT INTO c VALUES (90, 3, 1); DELETE FROM p WHERE id = 3;"
    "INSERT INTO p VALUES (3, 103, 1); UPDATE p SET id = 33 WHERE id = 3; INSERT INTO c VALUES (91, 33, 1); COMMIT",
    "in XA": "XA START 'x'; DELETE FROM p WHERE id = 3; INSERT INTO p VALUES (3, 103, 1); XA END 'x';"
    "XA PREPARE 'x'; XA COMMIT 'x'",
}
# One of each kind; the others are in the wide part.
QUICK = ("a parent goes", "a key changes", "a tree", "undone")


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(statements, id=name, marks=() if name in QUICK else pytest.mark.wide)
        for name, statements in ONE_EPOCH.items()
    ],
)
def test_one_epoch(steps: Steps, statements: str) -> None:
    steps.everywhere(*statements.split(";"))
    must_be_right(steps)
