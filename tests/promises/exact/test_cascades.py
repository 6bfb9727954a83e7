"""Foreign keys that cascade: servers log no row of it, and every epoch has what they did all the same."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Shards
from tests.promises.exact.manifests import by_text, ever_stale, lake, manifests, source
from tests.promises.exact.steps import Steps, caught_up
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
# The keys of a case: `#3` is the third of its thousand.
MINE = "BETWEEN #0 AND #999"
ROWS = (
    "INSERT INTO p SELECT #0 + seq, #100 + seq, 0 FROM seq_1_to_9",
    "INSERT INTO q SELECT #0 + seq, #100 + seq, 0 FROM seq_1_to_9",
    "INSERT INTO c SELECT #0 + seq, #1 + seq % 9, 0 FROM seq_1_to_40",
    "INSERT INTO n SELECT #0 + seq, #1 + seq % 9, #101 + seq % 7, 'x' FROM seq_1_to_40",
    "INSERT INTO g SELECT #0 + seq, #1 + seq % 40, #1 + seq % 9 FROM seq_1_to_80",
    "INSERT INTO t SELECT #0 + seq, IF(seq = 1, NULL, #0 + seq DIV 2) FROM seq_1_to_8",
    "INSERT INTO k SELECT #0 + seq, #1 + seq % 9, #101 + seq % 9 FROM seq_1_to_30",
)
CASES = {
    "no key of a parent": f"UPDATE p SET v = 7 WHERE id {MINE}; UPDATE q SET v = 9 WHERE a {MINE}",
    "a parent goes": "DELETE FROM p WHERE id = #3",
    "many go": "DELETE FROM p WHERE id BETWEEN #5 AND #999",
    "all go": f"DELETE FROM p WHERE id {MINE}; DELETE FROM q WHERE a {MINE};"
    f"DELETE FROM t WHERE id {MINE} ORDER BY id DESC",
    "a key changes": "UPDATE p SET id = #30 WHERE id = #3",
    "keys change one behind another": f"UPDATE p SET id = id + 1 WHERE id {MINE} ORDER BY id DESC",
    "another key": "UPDATE p SET code = #500 WHERE id = #1; UPDATE p SET code = #501 WHERE code = #500",
    "a key becomes NULL": "UPDATE p SET code = NULL WHERE id = #2",
    "a composite one": "UPDATE q SET b = #900 WHERE a = #4; DELETE FROM q WHERE a = #5",
    "replaced": "REPLACE INTO p VALUES (#3, #103, 9)",
    "comes back": "DELETE FROM p WHERE id = #3; INSERT INTO p VALUES (#3, #103, 1);"
    "INSERT INTO c VALUES (#90, #3, 1), (#2, #3, 1)",
    "children that were written before": "INSERT INTO c VALUES (#90, #3, 1); INSERT INTO g VALUES (#90, #90, #4);"
    "UPDATE c SET p = #3 WHERE id = #1; UPDATE c SET p = #4 WHERE id = #2; DELETE FROM p WHERE id = #3",
    "children that went before": "DELETE FROM c WHERE p = #3; DELETE FROM p WHERE id = #3",
    "another life of a child": "INSERT INTO c VALUES (#90, #3, 1); INSERT INTO g VALUES (#90, #90, NULL);"
    "DELETE FROM p WHERE id = #3; INSERT INTO p VALUES (#3, #103, 1); INSERT INTO c VALUES (#90, #3, 2)",
    "a tree": "DELETE FROM t WHERE id = #2; INSERT INTO t VALUES (#2, #3), (#40, #2)",
    "a tree twice": "DELETE FROM t WHERE id = #2; INSERT INTO t VALUES (#2, #3), (#40, #2);"
    "DELETE FROM t WHERE id = #3",
    "without checks": "SET foreign_key_checks = 0; DELETE FROM p WHERE id = #3; UPDATE p SET id = #40 WHERE id = #4",
    "undone": "START TRANSACTION; DELETE FROM p WHERE id = #3; ROLLBACK; START TRANSACTION;"
    "UPDATE p SET v = 1 WHERE id = #1; SAVEPOINT s; DELETE FROM p WHERE id = #4; ROLLBACK TO SAVEPOINT s; COMMIT",
    "in one transaction": "START TRANSACTION; INSERT INTO c VALUES (#90, #3, 1); DELETE FROM p WHERE id = #3;"
    "INSERT INTO p VALUES (#3, #103, 1); UPDATE p SET id = #33 WHERE id = #3;"
    "INSERT INTO c VALUES (#91, #33, 1); COMMIT",
    "in XA": "XA START 'x'; DELETE FROM p WHERE id = #3; INSERT INTO p VALUES (#3, #103, 1); XA END 'x';"
    "XA PREPARE 'x'; XA COMMIT 'x'",
}
NUMBERS = {name: 1000 * number for number, name in enumerate(CASES, 1)}
# Each of these has an epoch of its own, and all others are in one: the first takes no parent.
ALONE = ("no key of a parent", "a parent goes", "a tree", "undone")


def of(name: str, *statements: str) -> list[str]:
    """Statements with the keys of a case."""
    return [re.sub(r"#(\d+)", lambda key: str(NUMBERS[name] + int(key[1])), sql) for sql in statements]


@pytest.mark.promise(
    "rows that cascading foreign keys change follow from their parents, though no log has them"
)
def test_children_follow_their_parents(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [sql for name in CASES for sql in of(name, *ROWS)]
    servers = {"-80": shards[0], "80-": shards[1]}
    steps = caught_up(monkeypatch, tmp_path, servers, fresh_schema(*shards), *TABLES, *rows)
    for name in ALONE:
        steps.everywhere(*of(name, *CASES[name].split(";")))
        steps.run()
        must_be_right(steps)
    for name, statements in CASES.items():
        if name not in ALONE:
            steps.everywhere(*of(name, *statements.split(";")))
    steps.run()
    must_be_right(steps)
    settled(steps.feed)
    must_be_right(steps)
    assert not ever_stale(manifests(steps)), "none was copied again"


def must_be_right(steps: Steps) -> None:
    """The tables are the source's; the cases are named whose rows are not."""
    found, wanted = lake(steps, COLUMNS), source(steps, COLUMNS)
    wrong = {
        f"{name}, {table}": by_text({*found[table]} ^ {*wanted[table]})[:5]
        for name, number in NUMBERS.items()
        for table in COLUMNS
        if [row for row in found[table] if number <= row[1] < number + 1000]
        != [row for row in wanted[table] if number <= row[1] < number + 1000]
    }
    assert not wrong, wrong
    assert found == wanted
