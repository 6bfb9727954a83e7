"""What foreign keys did to children, as images: with those of the log they lead from each transaction to the next."""

import random
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from catchment.model.image import GROUP, SEQ, SIDE
from catchment.model.table import TableId
from catchment.rewind.lives import Unfollowed
from catchment.rewind.parents import sides_of
from catchment.rewind.silent import must_be_clear, silent
from catchment.rewind.states import AFTER
from tests.layers.rewind.family_model import COLUMNS, KEYS, ROW_KEYS, FamilyModel, Row, Rows
from tests.layers.rewind.test_families import SEEDS, rows_of

CHILDREN = {key.child: ROW_KEYS[key.child.name] for key in KEYS}
WHOLE = {table: COLUMNS[table.name] for table in CHILDREN}


def log_of(family: FamilyModel, since: int, until: int) -> dict[TableId, pa.Table]:
    """The images of the groups from one to another, that one not among them."""
    logs = {TableId("d", table): family.log(table, since) for table in COLUMNS}
    found = {table: images.filter(pc.less(images.column(GROUP), until)) for table, images in logs.items()}
    return {table: images for table, images in found.items() if images.num_rows}


def told_by(family: FamilyModel, floor: int, moment: int, place: int) -> dict[str, pa.Table] | None:
    """The images of children by keys alone, of the groups from `place` on; None where the view is of no use."""
    view = rows_of({table: family.rows(table, moment) for table in COLUMNS})
    row_keys = {TableId("d", table): ROW_KEYS[table] for table in COLUMNS}
    until = len(family.states)
    try:
        must_be_clear(KEYS, sides_of(log_of(family, floor, place), row_keys), CHILDREN, view)
        found = silent(KEYS, sides_of(log_of(family, floor, until), row_keys), CHILDREN, view, WHOLE, place)
    except Unfollowed:
        return None
    return {
        table.name: images.filter(pc.greater_equal(images.column(GROUP), place))
        for table, images in found.images.items()
    }


def replayed(family: FamilyModel, more: Mapping[str, pa.Table], place: int) -> list[dict[str, Rows]]:
    """The tables behind each transaction from `place` on, by the log and by more images."""
    states = []
    now = {table: dict(rows) for table, rows in family.states[place].items()}
    for group in range(place, len(family.states) - 1):
        for table, rows in now.items():
            images = [(one[SEQ], 1, one) for one in family.log(table).to_pylist() if one[GROUP] == group]
            given = more[table].to_pylist() if table in more else []
            images += [(one[SEQ], 0, one) for one in given if one[GROUP] == group]
            for _, _, image in sorted(images, key=lambda one: one[:2]):
                row: Row = tuple(image[name] for name in COLUMNS[table])
                key = row[: len(ROW_KEYS[table])]
                if image[SIDE] == AFTER:
                    rows[key] = row
                else:
                    assert rows.get(key) == row, f"{table} {key} was {rows.get(key)}, not {row}"
                    del rows[key]
        states.append({table: dict(rows) for table, rows in now.items()})
    return states


@pytest.mark.parametrize("moves", [False, True])
def test_each_transaction_leads_to_the_next(moves: bool) -> None:
    useless, told = 0, 0

    @settings(max_examples=150, deadline=None)
    @given(SEEDS, st.integers(0, 3), st.integers(0, 3))
    @example(20, 1, 1)  # an event of before the view meets a row whose first image the view already shows
    def judge(seed: int, before: int, behind: int) -> None:
        nonlocal useless, told
        family = FamilyModel(random.Random(seed))
        family.begin(60)
        for _ in range(before + behind + 3):
            family.transact(moves=moves)
        place = before + behind
        images = told_by(family, 0, before, place)
        if images is None:
            useless += 1
            return
        told += sum(one.num_rows for one in images.values())
        assert replayed(family, images, place) == family.states[place + 1 :]

    judge()
    assert told
    assert useless < 100 if moves else useless < 30, f"{useless} of 150 views were of no use"
