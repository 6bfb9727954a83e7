"""Splices and sorted keys against plain Python lists."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.wire.keys.keys import encode
from catchment.wire.keys.order import last_in_order
from catchment.wire.keys.splice import splice

TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=4)),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(20, 2), st.decimals(-1000, 1000, places=2)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.datetimes(dt.datetime(1970, 1, 1), timezones=st.just(dt.UTC))),
    (pa.list_(pa.int32()), st.lists(st.integers(0, 9), max_size=2)),
]


@st.composite
def splices(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, list[tuple[int, int, int]], list[list[Any]]]:
    """Two tables of the same columns, places, and the rows that must come out."""
    chosen = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    names = [f"c{n}" for n in range(len(chosen))]
    schema = pa.schema(list(zip(names, [kind for kind, _ in chosen], strict=True)))
    value = st.tuples(*[st.none() | values for _, values in chosen])
    rows, others = draw(st.lists(value, max_size=12)), draw(st.lists(value, max_size=5))

    def table(held: list[tuple[Any, ...]], before: int) -> pa.Table:
        # Slices: the arrays begin somewhere in their buffers.
        padded = [held[0] if held else tuple(None for _ in names)] * before + held
        columns = [pa.array([row[n] for row in padded], kind) for n, (kind, _) in enumerate(chosen)]
        return pa.table(columns, schema=schema).slice(before)

    steps, wanted = [], []
    for at in range(len(rows) + 1):
        puts = st.integers(0, len(others) - 1) if others else st.nothing()
        for put in draw(st.lists(puts, max_size=2)) if others else []:
            steps.append((at, 0, put))
            wanted.append(others[put])
        if at == len(rows):
            break
        change = draw(st.sampled_from(["stays", "stays", "goes", "replaced", "nothing"]))
        if change == "replaced" and others:
            put = draw(puts)
            steps.append((at, 1, put))
            wanted.append(others[put])
        elif change == "goes":
            steps.append((at, 1, -1))
        else:
            steps += [(at, 0, -1)] if change == "nothing" else []
            wanted.append(rows[at])
    columns = [[row[n] for row in wanted] for n in range(len(names))]
    return table(rows, draw(st.integers(0, 9))), table(others, draw(st.integers(0, 9))), steps, columns


def arrays(steps: list[tuple[int, int, int]]) -> list[Any]:
    return [np.array([step[n] for step in steps], np.int64) for n in range(3)]


@given(splices())
@settings(max_examples=400, deadline=None)
def test_a_splice_is_what_lists_give(
    drawn: tuple[pa.Table, pa.Table, list[tuple[int, int, int]], list[list[Any]]],
) -> None:
    rows, others, steps, wanted = drawn
    made = splice(rows, others, *arrays(steps))
    made.validate(full=True)
    assert made.schema == rows.schema
    expected = pa.table(
        [pa.array(c, f.type) for c, f in zip(wanted, rows.schema, strict=True)], schema=rows.schema
    )
    assert made.equals(expected)


@pytest.mark.parametrize(
    "steps",
    [
        [(-1, 0, 0)],
        [(4, 0, 0)],
        [(3, 1, -1)],
        [(2, 1, -1), (2, 0, 0)],
        [(2, 0, 0), (1, 0, 0)],
        [(0, 2, 0)],
        [(0, 0, 9)],
    ],
)
def test_places_outside_of_the_rows_are_refused(steps: list[tuple[int, int, int]]) -> None:
    rows = pa.table({"a": [1, 2, 3]})
    with pytest.raises(ValueError, match="splice"):
        splice(rows, rows, *arrays(steps))


@given(st.lists(st.tuples(st.sampled_from(["", "a", "aaaaaaaaaaaa"]), st.text("ab\0", max_size=12))))
@settings(max_examples=300, deadline=None)
def test_the_last_row_of_each_key_in_order(values: list[tuple[str, str]]) -> None:
    table = pa.table(
        {
            "a": pa.array([a for a, _ in values], pa.string()),
            "b": pa.array([b for _, b in values], pa.string()),
        }
    )
    last = {value: row for row, value in enumerate(values)}
    wanted = [last[value] for value in sorted(last, key=lambda v: (v[0].encode(), v[1].encode()))]
    assert last_in_order(encode(table, ["a", "b"])).tolist() == wanted


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)))
def test_the_last_row_of_each_number_in_order(values: list[int]) -> None:
    last = {value: row for row, value in enumerate(values)}
    keys = encode(pa.table({"a": pa.array(values, pa.int64())}), ["a"])
    assert last_in_order(keys).tolist() == [last[value] for value in sorted(last)]
