"""Foreign keys that come and go, and those whose children cannot follow: these are stale, and never wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.feed import take_up, unusable
from catchment.model.errors import Unsupported
from catchment.sink.delta.epochs.table import EpochsTable
from tests.conftest import Shards
from tests.promises.exact.cases import never_stale
from tests.promises.exact.steps import Steps, run_here

PARENT = ("CREATE TABLE p (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, v INT)",)
PARENTS = ("INSERT INTO p VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)",)
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY f (p) REFERENCES p (id) ON DELETE CASCADE)"
CHILDREN = "INSERT INTO c VALUES (1, 1), (2, 2), (3, 2), (4, 3)"
OTHER = "CREATE TABLE other (id INT PRIMARY KEY)"


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    found.everywhere(*PARENT, *PARENTS, OTHER)
    return found


def proof(number: int) -> str:
    return f"INSERT INTO other VALUES ({number})"


def reasons(steps: Steps) -> set[str]:
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    return {one.reason for row in rows for one in row.manifest.stale}


def must_follow(steps: Steps, columns: tuple[str, ...] = ("id", "p")) -> None:
    """Take parents, and see that no table is stale for it."""
    before = reasons(steps)
    steps.everywhere("DELETE FROM p WHERE id = 2", proof(90))
    steps.must_be_equal("c", *columns)
    assert reasons(steps) == before


KEYS = {
    "of text": (
        "CREATE TABLE c (id INT PRIMARY KEY, p VARCHAR(20), FOREIGN KEY f (p) REFERENCES p (name) ON DELETE CASCADE)",
        "INSERT INTO c VALUES (1, 'A'), (2, 'b'), (3, 'B')",
        "only the server can compare p with ",
    ),
    "twice of one column": (
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY f (p) REFERENCES p (id) ON DELETE CASCADE,"
        " FOREIGN KEY g (p) REFERENCES p (id) ON DELETE SET NULL)",
        CHILDREN,
        " acts first is for the server to say",
    ),
    "with generated columns": (
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, w INT AS (p + 1) VIRTUAL,"
        " FOREIGN KEY f (p) REFERENCES p (id) ON DELETE SET NULL)",
        "INSERT INTO c (id, p) VALUES (1, 1), (2, 2), (3, 2)",
        " has generated columns",
    ),
}


@pytest.mark.parametrize(("child", "children", "why"), KEYS.values(), ids=KEYS)
def test_children_that_cannot_follow_are_stale(steps: Steps, child: str, children: str, why: str) -> None:
    steps.everywhere(child, children)
    steps.run()
    steps.everywhere("UPDATE p SET v = 1", "INSERT INTO p VALUES (9, 'z', 1)")
    steps.must_be_equal("c", "id", "p")
    assert never_stale(steps)
    steps.everywhere("DELETE FROM p WHERE id = 2", proof(1))
    steps.run()
    steps.everywhere(proof(4))
    steps.must_be_equal("c", "id", "p")
    assert any(why in reason for reason in reasons(steps))


def test_a_key_that_changes_the_childs_own(steps: Steps) -> None:
    steps.everywhere(
        "CREATE TABLE c (p INT, n INT, PRIMARY KEY (p, n),"
        " FOREIGN KEY f (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO c VALUES (1, 1), (1, 2), (2, 1), (3, 1)",
    )
    steps.run()
    must_follow(steps, ("p", "n"))
    steps.everywhere("UPDATE p SET id = 7 WHERE id = 1", proof(1))
    steps.run()
    steps.everywhere(proof(2))
    steps.must_be_equal("c", "p", "n")
    assert any("changed its primary key" in reason for reason in reasons(steps))


def test_children_that_come_while_the_feed_runs(steps: Steps) -> None:
    steps.run()
    steps.everywhere(CHILD, CHILDREN, "DELETE FROM p WHERE id = 1", proof(1))
    steps.run()
    steps.everywhere(proof(2))
    steps.must_be_equal("c", "id", "p")
    must_follow(steps)


def test_a_key_that_went_before_its_child_entered(steps: Steps) -> None:
    steps.run()
    steps.everywhere(
        CHILD, CHILDREN, "DELETE FROM p WHERE id = 1", "ALTER TABLE c DROP FOREIGN KEY f", proof(1)
    )
    steps.run()
    steps.everywhere(proof(2))
    steps.must_be_equal("c", "id", "p")


def test_a_family_that_comes_while_the_feed_runs(steps: Steps) -> None:
    steps.run()
    steps.everywhere(
        "CREATE TABLE z (id INT PRIMARY KEY)",
        "CREATE TABLE a (id INT PRIMARY KEY, z INT, FOREIGN KEY f (z) REFERENCES z (id) ON DELETE CASCADE)",
        "INSERT INTO z VALUES (1), (2)",
        "INSERT INTO a VALUES (1, 1), (2, 2)",
        proof(1),
    )
    steps.run()
    steps.everywhere("DELETE FROM z WHERE id = 1", proof(2))
    steps.must_be_equal("a", "id", "z")
    assert steps.lake("a", "id") == [("-80", 2), ("80-", 2)]
    assert never_stale(steps)


def test_keys_that_come_and_go(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE c (id INT PRIMARY KEY, p INT)", CHILDREN)
    steps.run()
    steps.everywhere(
        "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE", proof(1)
    )
    steps.run()
    steps.everywhere(proof(2))
    must_follow(steps)
    steps.everywhere("ALTER TABLE c DROP FOREIGN KEY k", proof(3))
    steps.run()
    before = reasons(steps)
    steps.everywhere("DELETE FROM p WHERE id = 3", proof(4))
    steps.must_be_equal("c", "id", "p")
    assert ("-80", 4, 3) in steps.lake("c", "id", "p")
    assert reasons(steps) == before


def test_children_of_a_table_that_is_not_chosen_are_refused(steps: Steps) -> None:
    steps.everywhere(CHILD, CHILDREN)
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.p"])
    with pytest.raises(Unsupported, match=rf"{steps.schema}\.c on .*does not carry {steps.schema}\.p"):
        steps.run()
    steps.set(unusable="skip")
    steps.run()
    assert steps.lake("other", "id") == []
    (row, *_) = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    assert [str(one.table) for one in row.manifest.outside] == [f"{steps.schema}.c"]


@pytest.mark.parametrize("carried", [True, False])
def test_a_feed_that_began_without_keys(steps: Steps, monkeypatch: pytest.MonkeyPatch, carried: bool) -> None:
    steps.everywhere(CHILD, CHILDREN)
    if not carried:
        steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.p"])
    with monkeypatch.context() as patch:
        patch.setattr(take_up, "with_keys", lambda standing, endpoints: standing)
        patch.setattr(unusable, "uncarried", lambda session, tables: {})
        steps.run()
    steps.everywhere("DELETE FROM p WHERE id = 2", proof(1))
    steps.run()
    if carried:
        assert never_stale(steps)
        assert steps.lake("c", "id", "p") == steps.source("c", "id", "p")
    else:
        assert any(f"does not carry {steps.schema}.p" in reason for reason in reasons(steps))
        steps.everywhere(proof(2))
        steps.run()
        row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
        assert row is not None
        assert [one.table.name for one in row.manifest.stale] == ["c"]
