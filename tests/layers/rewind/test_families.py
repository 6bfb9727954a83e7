"""Children of foreign keys against a model of a server that logs nothing of what its engine does to them."""

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.model.foreign_key import ForeignKey, above
from catchment.model.table import TableId
from catchment.rewind.backward import doubtful
from catchment.rewind.cascades import cascades
from catchment.rewind.forward import forward, with_fates
from catchment.rewind.lives import Unfollowed
from catchment.rewind.parents import Side, sides_of
from catchment.rewind.states import rewound, states_at
from catchment.wire.keys import keys
from tests.layers.rewind.family_model import COLUMNS, KEYS, ROW_KEYS, FamilyModel

CHILDREN = {key.child.name: key.child for key in KEYS}
SEEDS = st.integers(0, 1 << 40)
# Of these no parent has parents itself: all that becomes of them follows from the log.
DIRECT = ("c", "n", "k")


def model(seed: int, *, moves: bool) -> FamilyModel:
    """Tables with rows, and a few transactions after them."""
    chance = random.Random(seed)
    family = FamilyModel(chance)
    family.begin(60)
    for _ in range(chance.randint(1, 6)):
        family.transact(moves=moves)
    return family


def sides(family: FamilyModel, *tables: str) -> dict[TableId, Side]:
    logs = {TableId("d", table): family.log(table) for table in tables}
    found = {table: images for table, images in logs.items() if images.num_rows}
    return sides_of(found, {table: ROW_KEYS[table.name] for table in found})


def rows_of(tables: dict[str, pa.Table]) -> Callable[[ForeignKey, pa.Table], pa.Table]:
    """The rows of some tables that have one of the values in the columns of a key."""

    def having(key: ForeignKey, values: pa.Table) -> pa.Table:
        rows = tables[key.child.name]
        valid = np.ones(rows.num_rows, bool)
        for name in key.columns:
            valid &= pc.is_valid(rows.column(name)).to_numpy()
        rows = rows.filter(pa.array(valid))
        wanted = keys.KeySet(keys.encode(values, key.columns))
        return rows.filter(pa.array(wanted.contains(keys.encode(rows, key.columns))))

    return having


def by_key(rows: pa.Table) -> list[tuple[int | None, ...]]:
    found = (tuple(row.values()) for row in rows.to_pylist())
    return sorted(found, key=lambda row: row[0] or 0)


def told(family: FamilyModel, table: str, rows: pa.Table, boundary: int) -> pa.Table:
    """SELECTed rows as the images of the table alone leave them in front of a group."""
    images = family.log(table)
    if not images.num_rows:
        return rows
    return rewound(rows, states_at(images, ROW_KEYS[table], boundary), ROW_KEYS[table])


def brought_forward(family: FamilyModel, table: str, moment: int) -> pa.Table:
    """A table that was SELECTed at a moment, at the end. Raises Unfollowed."""
    end, child = len(family.states) - 1, CHILDREN[table]
    reached = {child} | above(KEYS, frozenset({child}))
    mine = [key for key in KEYS if key.child in reached]
    tables = {name: family.rows(name, 0) for name in COLUMNS} | {table: family.rows(table, moment)}
    names = {key.parent.name for key in mine} | {key.child.name for key in mine}
    row_keys = {key.child: ROW_KEYS[key.child.name] for key in mine}
    fates = forward(mine, sides(family, *names), row_keys, rows_of(tables), {child}, {child: tables[table]})
    rows = told(family, table, tables[table], end)
    return with_fates(rows, fates[child]) if child in fates else rows


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.data())
def test_rows_that_were_read_at_an_unknown_moment_are_those_of_the_end(
    seed: int, moves: bool, data: st.DataObject
) -> None:
    family = model(seed, moves=moves)
    end = len(family.states) - 1
    for table in (*DIRECT, "g"):
        moment = data.draw(st.integers(0, end), label=table)
        try:
            found = brought_forward(family, table, moment)
        except Unfollowed:
            assert moves, "where no key changes, nothing is unknown"
            continue
        assert by_key(found) == by_key(family.rows(table, end)), table


def tree(seed: int) -> FamilyModel:
    """A table that is its own parent, of few keys: so they go and come again soon."""
    chance = random.Random(seed)
    family = FamilyModel(chance, values=6)
    family.begin(20, "t")
    for _ in range(7):
        family.transact(moves=seed % 2 == 1, tables="t")
    return family


@settings(max_examples=40)
@given(SEEDS)
def test_a_tree_that_was_read_at_one_moment_is_that_of_the_end_or_refused(seed: int) -> None:
    family = tree(seed)
    end = len(family.states) - 1
    for moment in range(end + 1):
        try:
            found = brought_forward(family, "t", moment)
        except Unfollowed:
            continue
        assert by_key(found) == by_key(family.rows("t", end)), moment


def test_rows_of_a_tree_are_refused_that_came_below_others_of_which_nothing_shows() -> None:
    """A row is moved below one without an image, and goes with that and with their root in front of the SELECTs."""
    family = FamilyModel(random.Random(0))
    family.tables["t"] = {(0,): (0, None, 5), (2,): (2, None, 3), (4,): (4, 0, 3)}
    family.run("t", (2, None, 3), (2, 4, 3))
    family.run("t", (0, None, 5), None)
    assert not family.states[2]["t"]
    assert not by_key(brought_forward(family, "t", 1)), "4 was shown"
    with pytest.raises(Unfollowed, match="came below others"):
        brought_forward(family, "t", 2)


def test_a_value_that_went_and_came_back_leaves_two_ends() -> None:
    """A child of 1 was read in front of both, and refers to 2 since then; or after both, as a child of 3 before."""
    family = FamilyModel(random.Random(0))
    family.tables["p"] = {(1,): (1, 11, 0), (3,): (3, 13, 0)}
    family.tables["c"] = {(7,): (7, 1, 0)}
    family.run("p", (1, 11, 0), (2, 11, 0))
    family.run("p", (3, 13, 0), (1, 13, 0))
    with pytest.raises(Unfollowed, match="went and came back"):
        brought_forward(family, "c", 0)
    assert by_key(brought_forward(family, "c", 1)) == [(7, 2, 0)], "2 has not come back"


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.data())
def test_rows_are_brought_back_over_what_foreign_keys_did(
    seed: int, moves: bool, data: st.DataObject
) -> None:
    """Whatever a SELECT showed between the epoch and the end, a lake that is right has no difference to it."""
    family = model(seed, moves=moves)
    end = len(family.states) - 1
    lake = {name: family.rows(name, 0) for name in COLUMNS}
    row_keys = {key.child: ROW_KEYS[key.child.name] for key in KEYS}
    doubts = doubtful(KEYS, sides(family, *COLUMNS), row_keys, rows_of(lake))
    for table, child in CHILDREN.items():
        moment = data.draw(st.integers(0, end), label=table)
        rows = told(family, table, family.rows(table, moment), 0)
        found = doubts[child].restored(rows) if child in doubts else rows
        assert by_key(found) == by_key(lake[table]), table


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.data())
def test_what_differs_otherwise_stays(seed: int, moves: bool, data: st.DataObject) -> None:
    """A column that no foreign key is about is compared all the same."""
    family = model(seed, moves=moves)
    end = len(family.states) - 1
    lake = {name: family.rows(name, 0) for name in COLUMNS}
    row_keys = {key.child: ROW_KEYS[key.child.name] for key in KEYS}
    doubts = doubtful(KEYS, sides(family, *COLUMNS), row_keys, rows_of(lake))
    moment = data.draw(st.integers(0, end))
    shown = family.rows("c", moment)
    images = family.log("c")
    touched = set(images.column("id").to_pylist()) if images.num_rows else set()
    rows = [row for row in shown.to_pylist() if row["id"] not in touched]
    if not rows:
        return
    damaged = data.draw(st.sampled_from(rows))
    other = [{**row, "v": row["v"] + 100} if row["id"] == damaged["id"] else row for row in shown.to_pylist()]
    child = CHILDREN["c"]
    read = told(family, "c", pa.Table.from_pylist(other, shown.schema), 0)
    found = doubts[child].restored(read) if child in doubts else read
    right = by_key(lake["c"])
    assert [row for row in by_key(found) if row not in right] == [
        (row[0], row[1], row[2] + 100) for row in right if row[0] == damaged["id"] and row[2] is not None
    ]


@settings(max_examples=40)
@given(SEEDS, st.booleans())
def test_the_log_and_the_rows_of_the_beginning_give_those_of_the_end(seed: int, moves: bool) -> None:
    """As the segments of a log follow children."""
    family = model(seed, moves=moves)
    end = len(family.states) - 1
    lake = {name: family.rows(name, 0) for name in COLUMNS}
    row_keys = {key.child: ROW_KEYS[key.child.name] for key in KEYS}
    fates = cascades(KEYS, sides(family, *COLUMNS), row_keys, rows_of(lake)).fates()
    for table, child in CHILDREN.items():
        rows = told(family, table, lake[table], end)
        found = with_fates(rows, fates[child]) if child in fates else rows
        assert by_key(found) == by_key(family.rows(table, end)), table
