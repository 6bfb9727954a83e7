"""DDL that a feed does not follow: the table is stale, for a reason that is told, and is copied again beside others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from catchment.api.read import read
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch, first_since, never_stale
from tests.promises.exact.ddl_cases import RENAME, RENAMED, WIDENED
from tests.promises.exact.steps import Steps, run_here

PROOF = "INSERT INTO other VALUES (NULL)"
OTHER = ("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)",)
COMPUTES = (
    "CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(6,2), v INT, g VARCHAR(20) AS (CONCAT(d)) {})",
    "INSERT INTO t (id, d, v) VALUES (1, 1.5, 1), (2, NULL, 2)",
)
STORED, VIRTUAL = (tuple(one.format(kind) for one in COMPUTES) for kind in ("STORED", "VIRTUAL"))
PARTS = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT) PARTITION BY RANGE (id)"
    " (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (9))",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
)


class Unfollowed(NamedTuple):
    """A statement, why the table is copied again for it, and what made the table."""

    statement: str
    why: str
    begin: Sequence[str] = WIDENED.begin


UNLOGGED = "a column with a non-NULL default was added, and the server does not log the rows that it fills"
NOT_KNOWN = "was given another definition that is not known to leave its values as they are"
REDEFINED = "a column was renamed or given another definition"
UNLISTED = "a statement changed it that Catchment does not follow"
COMPUTED = "may be one that another is computed from"
LOOSE = "SET sql_mode = ''; "
CASES = {
    # columns with a value
    "beyond_ascii": Unfollowed("ALTER TABLE t ADD COLUMN m VARCHAR(40) DEFAULT 'für'", UNLOGGED),
    "of_the_session": Unfollowed("ALTER TABLE t ADD COLUMN m DATETIME DEFAULT CURRENT_TIMESTAMP", UNLOGGED),
    "computed": Unfollowed("ALTER TABLE t ADD COLUMN m INT AS (n + 1)", UNLOGGED),
    "numbered": Unfollowed("ALTER TABLE t ADD COLUMN m INT AUTO_INCREMENT UNIQUE", UNLOGGED),
    "timestamp": Unfollowed("ALTER TABLE t ADD COLUMN m TIMESTAMP", UNLOGGED),
    # other definitions
    "another_charset": Unfollowed("ALTER TABLE t MODIFY v VARCHAR(50) CHARACTER SET latin1", NOT_KNOWN),
    "narrower": Unfollowed("ALTER TABLE t MODIFY n SMALLINT", NOT_KNOWN),
    "made_unsigned": Unfollowed("ALTER TABLE t MODIFY n INT UNSIGNED", NOT_KNOWN),
    "shorter": Unfollowed(LOOSE + "ALTER TABLE t MODIFY v VARCHAR(4) CHARACTER SET utf8mb4", NOT_KNOWN),
    "of_fixed_length": Unfollowed("ALTER TABLE t MODIFY v CHAR(50) CHARACTER SET utf8mb4", NOT_KNOWN),
    "bytes_of_fixed_length": Unfollowed("ALTER TABLE t MODIFY b BINARY(9) NOT NULL", NOT_KNOWN),
    "labels_swapped": Unfollowed("ALTER TABLE t MODIFY e ENUM('y','x') NOT NULL", NOT_KNOWN),
    "fewer_digits_behind": Unfollowed("ALTER TABLE t MODIFY d DECIMAL(6,1)", NOT_KNOWN),
    "fewer_digits_in_front": Unfollowed(LOOSE + "ALTER TABLE t MODIFY d DECIMAL(6,3)", NOT_KNOWN),
    "added_and_changed": Unfollowed(
        "ALTER TABLE t ADD m BIGINT, ADD k INT; INSERT INTO t (id, b, m) VALUES (9, '', 1); ALTER TABLE t MODIFY m INT",
        NOT_KNOWN,
    ),
    "zeros_of_NULL": Unfollowed(LOOSE + "ALTER TABLE t MODIFY n INT NOT NULL", REDEFINED),
    "of_the_key": Unfollowed("ALTER TABLE t MODIFY id BIGINT", "it is a part of the key"),
    "stored_from_it": Unfollowed("ALTER TABLE t MODIFY d DECIMAL(9,3)", COMPUTED, STORED),
    "virtual_from_it": Unfollowed("ALTER TABLE t MODIFY d DECIMAL(9,3)", COMPUTED, VIRTUAL),
    "converted": Unfollowed("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", UNLISTED),
    # other names
    "key_renamed": Unfollowed("ALTER TABLE t CHANGE id ident INT", "it is a part of the key", RENAMED.begin),
    "swapped": Unfollowed("ALTER TABLE t CHANGE a v INT, CHANGE v a VARCHAR(9)", REDEFINED, RENAMED.begin),
    "case_of_letters": Unfollowed("ALTER TABLE t CHANGE a A INT", REDEFINED, RENAMED.begin),
    "renamed_narrower": Unfollowed("ALTER TABLE t CHANGE a c SMALLINT", NOT_KNOWN, RENAMED.begin),
    "ruled": Unfollowed(RENAME, "it is one that the feed has a rule for", RENAMED.begin),
    "arranged": Unfollowed(RENAME, "it is one by which the lake's files are arranged", RENAMED.begin),
    "renamed_beside_stored": Unfollowed("ALTER TABLE t RENAME COLUMN v TO w", COMPUTED, STORED),
    "renamed_beside_virtual": Unfollowed("ALTER TABLE t RENAME COLUMN v TO w", COMPUTED, VIRTUAL),
    # and all else
    "another_key": Unfollowed(
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, e)", "its primary key was changed"
    ),
    "part_truncated": Unfollowed("ALTER TABLE t TRUNCATE PARTITION p0", UNLISTED, PARTS),
    "part_dropped": Unfollowed("ALTER TABLE t DROP PARTITION p0", UNLISTED, PARTS),
    "ordered": Unfollowed("ALTER TABLE t ORDER BY id", UNLISTED),
}


@pytest.mark.promise(
    "a table that DDL makes stale is read as of its last exact epoch until it is copied again"
)
def test_what_is_not_followed(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(
        columns=[{"match": "*.ruled.a", "rename": "shown"}],
        arrange=[{"match": "*.arranged", "cluster_by": ["a"]}],
    )
    made = {name: one.begin for name, one in CASES.items()}
    cases = Cases(steps, {**made, "followed": RENAMED.begin, "other": OTHER})
    cases.begin()
    names = [f"{steps.schema}.{name}" for name in (*CASES, "followed")]
    last = every_epoch(steps)[-1].manifest.epoch
    exact = [state.arrow() for state in read(steps.feed, names)]

    cases.write({name: one.statement for name, one in CASES.items()})
    cases.write({"followed": f"{RENAME}; UPDATE t SET c = 9 WHERE id = 1", "other": PROOF})
    steps.run()
    first = first_since(steps, last)
    stale = {one.table.name: one.reason for one in first.stale}
    assert {name: one.why for name, one in CASES.items() if one.why not in stale.pop(name, "")} == {}
    assert stale == {}
    *states, followed = read(steps.feed, names, epoch=first.epoch)
    for state, rows in zip(states, exact, strict=False):
        assert state.as_of == last, state.shape.table
        assert state.arrow().equals(rows), state.shape.table
    assert followed.as_of == first.epoch
    assert followed.arrow()["c"].to_pylist().count(9) == 2

    steps.set(arrange=[])
    steps.renew(PROOF)
    cases.settle()
    cases.must_be_followed(*CASES)


def test_a_column_of_a_foreign_key_gets_another_name(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server renames it in the key, too. Others of the same tables are followed."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(shards[0]))
    steps.everywhere(
        "CREATE TABLE p (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO c VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
    )
    steps.run()
    steps.everywhere("ALTER TABLE c RENAME COLUMN n TO m", "ALTER TABLE p RENAME COLUMN n TO m")
    steps.must_be_equal("c", "id", "p", "m")
    steps.everywhere("DELETE FROM p WHERE id = 1")
    steps.must_be_equal("c", "id", "p", "m")
    assert never_stale(steps)
    steps.everywhere("ALTER TABLE c RENAME COLUMN p TO parent", PROOF, "DELETE FROM p WHERE id = 2", PROOF)
    steps.run()
    reasons = {
        one.reason for row in every_epoch(steps) for one in row.manifest.stale if one.table.name == "c"
    }
    assert any("column p was renamed, and a foreign key is about it" in reason for reason in reasons), reasons
    steps.renew(PROOF)
    steps.must_be_equal("c", "id", "parent", "m")
    steps.everywhere("DELETE FROM p WHERE id = 3", PROOF)
    steps.must_be_equal("c", "id", "parent", "m")
