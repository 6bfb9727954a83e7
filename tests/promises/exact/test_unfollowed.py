"""Foreign keys that come and go, and those whose children cannot follow: these are stale, and never wrong."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from catchment.feed import runner, take_up
from catchment.model.errors import Unsupported
from catchment.source import first_cut
from catchment.source.foreign_keys import NO_KEYS
from tests.conftest import Shards
from tests.promises.exact.manifests import (
    ever_stale,
    manifests,
    must_be_equal,
    must_go_on,
    newest,
    outside,
    stale,
)
from tests.promises.exact.steps import Steps, run_here

PARENT = (
    "CREATE TABLE p_{t} (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, v INT)",
    "INSERT INTO p_{t} VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)",
)
CHILD = "CREATE TABLE {t} (id INT PRIMARY KEY, p INT, FOREIGN KEY f_{t} (p) REFERENCES p_{t} (id) ON DELETE CASCADE)"
CHILDREN = "INSERT INTO {t} (id, p) VALUES (1, 1), (2, 2), (3, 2), (4, 3)"
KEY = ("id", "p")
PROOF = ("INSERT INTO other VALUES (99)", "DELETE FROM other")
# Children that cannot follow when a parent goes, and why.
UNFOLLOWED = {
    "texts": (
        "CREATE TABLE {t} (id INT PRIMARY KEY, p VARCHAR(20), FOREIGN KEY f_{t} (p) REFERENCES p_{t} (name)"
        " ON DELETE CASCADE)",
        "INSERT INTO {t} VALUES (1, 'A'), (2, 'b'), (3, 'B')",
        "only the server can compare p with ",
    ),
    "twice": (
        "CREATE TABLE {t} (id INT PRIMARY KEY, p INT, FOREIGN KEY f_{t} (p) REFERENCES p_{t} (id) ON DELETE CASCADE,"
        " FOREIGN KEY g_{t} (p) REFERENCES p_{t} (id) ON DELETE SET NULL)",
        CHILDREN,
        " acts first is for the server to say",
    ),
    "generated": (
        "CREATE TABLE {t} (id INT PRIMARY KEY, p INT, w INT AS (p + 1) VIRTUAL,"
        " FOREIGN KEY f_{t} (p) REFERENCES p_{t} (id) ON DELETE SET NULL)",
        CHILDREN,
        " has generated columns",
    ),
}
OWN_KEY = (
    "CREATE TABLE own_key (p INT, n INT, PRIMARY KEY (p, n),"
    " FOREIGN KEY f_own_key (p) REFERENCES p_own_key (id) ON DELETE CASCADE ON UPDATE CASCADE)"
)
# Children that come, or whose keys come and go, while the feed runs.
LATER = ("comes", "came_without", "comes_and_goes")


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    found.everywhere("CREATE TABLE other (id INT PRIMARY KEY)")
    return found


def of(table: str, *statements: str) -> list[str]:
    return [sql.format(t=table) for sql in statements]


def reasons(steps: Steps) -> dict[str, str]:
    """Why tables were stale."""
    return {one.table.name: one.reason for manifest in manifests(steps) for one in manifest.stale}


def gone(steps: Steps, tables: Iterable[str], key: int = 2) -> None:
    """Have a parent of each go."""
    steps.everywhere(*(f"DELETE FROM p_{name} WHERE id = {key}" for name in tables))


@pytest.mark.promise("child tables that cannot follow their parents are copied again, and are never wrong")
def test_keys_that_are_not_followed_and_such_as_come_and_go(steps: Steps) -> None:
    tables = (*UNFOLLOWED, "own_key", *LATER)
    for name in tables:
        steps.everywhere(*of(name, *PARENT))
    for name, (child, children, _) in UNFOLLOWED.items():
        steps.everywhere(*of(name, child, children))
    steps.everywhere(OWN_KEY, "INSERT INTO own_key VALUES (1, 1), (1, 2), (2, 1), (3, 1)")
    steps.everywhere(*of("comes_and_goes", "CREATE TABLE {t} (id INT PRIMARY KEY, p INT)", CHILDREN))
    steps.run()
    columns = {**dict.fromkeys(UNFOLLOWED, KEY), "own_key": ("p", "n"), "comes_and_goes": KEY}
    steps.everywhere(
        *(f"UPDATE p_{name} SET v = 1" for name in tables),
        *(f"INSERT INTO p_{name} VALUES (9, 'z', 1)" for name in tables),
    )
    gone(steps, ["own_key"])
    steps.run()
    must_be_equal(steps, columns)
    assert not ever_stale(manifests(steps)), "no key of theirs was touched, or they follow"

    exact = newest(steps).epoch
    gone(steps, UNFOLLOWED)
    steps.everywhere(
        "UPDATE p_own_key SET id = 7 WHERE id = 1",
        *of("comes", CHILD, CHILDREN, "DELETE FROM p_{t} WHERE id = 1"),
        *of(
            "came_without",
            CHILD,
            CHILDREN,
            "DELETE FROM p_{t} WHERE id = 1",
            "ALTER TABLE {t} DROP FOREIGN KEY f_{t}",
        ),
        *of(
            "comes_and_goes",
            "ALTER TABLE {t} ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p_{t} (id) ON DELETE CASCADE",
        ),
        *of("z", "CREATE TABLE p_{t} (id INT PRIMARY KEY)", CHILD, "INSERT INTO p_{t} VALUES (1), (2)"),
        "INSERT INTO z VALUES (1, 1), (2, 2)",
    )
    for name in ("comes", "came_without", "z"):
        steps.enter(name, *PROOF)
    steps.renew(*PROOF)
    columns |= dict.fromkeys(("comes", "came_without", "z"), KEY)
    must_be_equal(steps, columns)
    must_go_on(
        steps,
        exact,
        {*UNFOLLOWED, "own_key", "comes_and_goes"},
        {f"p_{name}": ("id", "name", "v") for name in tables},
    )
    found = reasons(steps)
    assert found.keys() == {*UNFOLLOWED, "own_key", "comes_and_goes"}
    assert {name for name, (*_, why) in UNFOLLOWED.items() if why in found[name]} == {*UNFOLLOWED}
    assert "changed its primary key" in found["own_key"]

    # From now on they follow.
    exact = newest(steps).epoch
    gone(steps, ("comes", "comes_and_goes"))
    gone(steps, ("z",), 1)
    steps.run()
    must_be_equal(steps, columns)
    assert steps.lake("z", "id") == [("-80", 2), ("80-", 2)]
    assert not ever_stale([one for one in manifests(steps) if one.epoch > exact])
    steps.everywhere("ALTER TABLE comes_and_goes DROP FOREIGN KEY k")
    steps.renew(*PROOF)
    exact = newest(steps).epoch
    gone(steps, ("comes_and_goes",), 3)
    steps.run()
    must_be_equal(steps, columns)
    assert ("-80", 4, 3) in steps.lake("comes_and_goes", "id", "p")
    assert not ever_stale([one for one in manifests(steps) if one.epoch > exact])


def test_children_of_a_table_that_is_not_chosen_are_refused(steps: Steps) -> None:
    steps.everywhere(*of("c", *PARENT, CHILD, CHILDREN))
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.p_c"])
    with pytest.raises(
        Unsupported, match=rf"{steps.schema}\.c on .*{steps.schema}\.p_c is not among the tables"
    ):
        steps.run()
    steps.set(unusable="skip")
    steps.run()
    assert steps.lake("other", "id") == []
    assert outside(manifests(steps)[0]) == {"c"}


def test_a_feed_that_began_without_keys(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an earlier version began it. One parent is carried, the other is not chosen."""
    for name in ("carried", "alone"):
        steps.everywhere(*of(name, *PARENT, CHILD, CHILDREN))
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.p_alone"])
    with monkeypatch.context() as patch:
        patch.setattr(take_up, "with_keys", lambda standing, declared: standing)
        patch.setattr(first_cut, "declared_keys", lambda session, tables: NO_KEYS)
        steps.run()
    monkeypatch.setattr(runner, "_ENTERS_SECONDS", 0.2)  # for which a run waits for tables that are stale
    gone(steps, ("carried", "alone"))
    steps.everywhere("INSERT INTO other VALUES (1)")
    steps.run()
    must_be_equal(steps, {"carried": KEY})
    assert reasons(steps).keys() == {"alone"}
    assert f"{steps.schema}.p_alone is not among the tables" in reasons(steps)["alone"]
    steps.everywhere("INSERT INTO other VALUES (2)")
    steps.run()
    assert stale(newest(steps)) == {"alone"}
