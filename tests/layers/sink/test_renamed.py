"""Renamed columns: older rows have in one what they have in another, for every reader and behind every settle."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace
from pyspark.sql import SparkSession

from catchment.model.arrangement import Arrangement
from catchment.model.epoch import Part, TableShape
from catchment.model.fill import Fill
from catchment.model.treatment import Mode
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.reading.lake import state
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, TEXT, delta, shape, write
from tests.layers.sink.test_settle import by_delta_rs
from tests.world.settled import carry_out

Held = TypeVar("Held")
SHARDS = ("s/0", "s/1")
WHOLE = shape("orders", {"id": INT, "a": TEXT, "b": TEXT, "c": TEXT}, ("id",))
ID, A, B, C = WHOLE.columns
OF_A = (
    Fill("b", ("s/0",), 3, source="a"),
    Fill("b", ("s/1",), 5, source="a"),
)
OF_B = Fill("c", SHARDS, 7, source="b")
# By the epoch with which they came.
STEPS: dict[int, TableShape] = {
    1: replace(WHOLE, columns=(ID, A)),
    3: replace(
        WHOLE,
        columns=(ID, replace(A, torn=True, missing=("s/0",)), replace(B, missing=("s/1",))),
        fills=OF_A[:1],
    ),
    5: replace(WHOLE, columns=(ID, replace(A, live=False, missing=SHARDS), B), fills=OF_A),
    7: replace(
        WHOLE,
        columns=(ID, replace(A, live=False, missing=SHARDS), replace(B, live=False, missing=SHARDS), C),
        fills=(OF_B, *OF_A),
    ),
}
# Of each epoch the rows that come: shard, key, value in the column that the shard has; a delete without one.
Changes = tuple[tuple[str, int, str | None], ...]
ROWS: dict[int, Changes] = {
    1: tuple((shard, key, f"{shard} {key}") for shard in SHARDS for key in range(1, 7)),
    2: (("s/0", 2, "two"), ("s/1", 2, None)),
    3: (("s/0", 3, "three"), ("s/1", 3, "three")),
    4: (("s/0", 4, None), ("s/1", 4, None)),
    5: (("s/1", 5, "five"),),
    6: (("s/0", 5, "six"),),
    7: (("s/0", 6, "seven"),),
    8: (("s/1", 7, "eight"), ("s/1", 6, None)),
}
NAMES = {"s/0": {1: "a", 3: "b", 7: "c"}, "s/1": {1: "a", 5: "b", 7: "c"}}


def of_epoch(found: Mapping[int, Held], epoch: int) -> Held:
    return found[max(one for one in found if one <= epoch)]


def put(feeder: Feeder, arrangement: Arrangement, mode: Mode) -> TableShape:
    """One epoch; its shape."""
    feeder.epoch += 1
    epoch = feeder.epoch
    table = replace(of_epoch(STEPS, epoch), arrangement=arrangement, mode=mode)
    physical = [column.physical for column in table.columns[1:]]
    tagged = []
    for shard, key, value in ROWS[epoch]:
        name = of_epoch(NAMES[shard], epoch)
        values = [value if one == name else None for one in physical]
        tagged.append((shard, epoch, value is None, (key, *values)))
    part = Part.BASE if epoch == 1 else Part.CHANGES
    feeder.commit((table,), delta(table, write(feeder.root, table, part, f"{epoch}-a-0", tagged)))
    return table


def expected(until: int) -> dict[tuple[str, int], tuple[str, str]]:
    """Of each row that is there its column and value."""
    rows: dict[tuple[str, int], tuple[str, str]] = {}
    for epoch in range(1, until + 1):
        for shard, key, value in ROWS[epoch]:
            rows.pop((shard, key), None)
            if value is not None:
                rows[shard, key] = (of_epoch(NAMES[shard], until), value)
    return {of: (of_epoch(NAMES[of[0]], until), value) for of, (_, value) in rows.items()}


def told(rows: pa.Table) -> dict[tuple[str, int], tuple[str, str]]:
    """The same of rows that are there, none of which may have values in two columns."""
    found = {}
    for row in rows.to_pylist():
        if row.get("_deleted"):
            continue
        ((name, value),) = [(name, row[name]) for name in "abc" if row.get(name) is not None]
        assert (row["_shard"], row["id"]) not in found
        found[row["_shard"], row["id"]] = (name, value)
    return found


# Behind which epochs the table is settled, and in what form.
COURSES = [
    ((2, 8), Form()),
    ((3, 6, 8), Form()),
    *(
        pytest.param(settles, form, marks=pytest.mark.wide)
        for settles, form in [
            *((settles, Form()) for settles in [(8,), (3, 8), tuple(ROWS), (6, 7, 8)]),
            *(
                (settles, form)
                for settles in [(8,), (3, 6, 8)]
                for form in [Form(vectors=False), Form(changes=True)]
            ),
        ]
    ),
]
ARRANGEMENTS = [Arrangement(), pytest.param(Arrangement(("id",)), marks=pytest.mark.wide)]


@pytest.mark.parametrize(("settles", "form"), COURSES)
@pytest.mark.parametrize("arrangement", ARRANGEMENTS, ids=["plain", "clustered"])
def test_rows_keep_what_they_had(
    tmp_path: Path, form: Form, settles: tuple[int, ...], arrangement: Arrangement
) -> None:
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    for epoch in ROWS:
        table = put(feeder, arrangement, Mode.MIRROR)
        row = EpochsTable(tmp_path, FEED).newest()
        assert row is not None
        assert told(state(tmp_path, row, table.table, origin=True).arrow()) == expected(epoch)
        if epoch in settles:
            carry_out(order)
            plain = table_dir(tmp_path, table.table)
            assert told(by_delta_rs(plain, DeltaTable(plain).version())) == expected(epoch)
            assert told(state(tmp_path, row, table.table, origin=True).arrow()) == expected(epoch)
            newest = DeltaTable(plain).version()
            carry_out(order)
            assert DeltaTable(plain).version() == newest


@pytest.mark.wide
@pytest.mark.parametrize("settles", [(8,), (4, 8)])
def test_by_spark(tmp_path: Path, spark: SparkSession, settles: tuple[int, ...]) -> None:
    feeder = Feeder(tmp_path)
    for epoch in ROWS:
        table = put(feeder, Arrangement(), Mode.MIRROR)
        row = EpochsTable(tmp_path, FEED).newest()
        assert row is not None
        if epoch in (4, 8):
            rows = state(tmp_path, row, table.table, origin=True).spark(spark).toArrow()
            assert told(rows) == expected(epoch)
        if epoch in settles:
            carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))


@pytest.mark.parametrize(("settles", "form"), COURSES)
def test_rows_that_are_gone_keep_what_they_had(tmp_path: Path, form: Form, settles: tuple[int, ...]) -> None:
    """Their epochs are those of the deletes."""
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    for epoch in ROWS:
        table = put(feeder, Arrangement(), Mode.SOFT_DELETE)
        if epoch in settles:
            carry_out(order)
    plain = table_dir(tmp_path, table.table)
    rows = by_delta_rs(plain, DeltaTable(plain).version())
    gone = {row["c"] for row in rows.to_pylist() if row["_deleted"]}
    assert gone == {"s/1 2", "s/0 4", "s/1 4", "s/1 6"}
    assert told(rows) == expected(8)


@pytest.mark.parametrize(("settles", "form"), COURSES)
def test_versions_keep_what_they_had(tmp_path: Path, form: Form, settles: tuple[int, ...]) -> None:
    feeder, order = Feeder(tmp_path), UpkeepOrder(str(tmp_path), FEED, 1, 3600.0, form=form)
    for epoch in ROWS:
        table = put(feeder, Arrangement(), Mode.HISTORY)
        if epoch in settles:
            carry_out(order)
    plain = table_dir(tmp_path, table.table)
    rows = by_delta_rs(plain, DeltaTable(plain).version()).to_pylist()
    versions = sorted((row["_shard"], row["id"], row["_epoch"], row["c"]) for row in rows)
    assert versions == sorted(
        (shard, key, epoch, value)
        for epoch, told in ROWS.items()
        for shard, key, value in told
        if value is not None
    )


def test_older_epochs_have_the_former_columns(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    for epoch in ROWS:
        table = put(feeder, Arrangement(), Mode.MIRROR)
        if epoch % 3 == 0:
            carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))
    for epoch in ROWS:
        row = EpochsTable(tmp_path, FEED).at(epoch)
        assert row is not None
        assert told(state(tmp_path, row, table.table, origin=True).arrow()) == expected(epoch)
