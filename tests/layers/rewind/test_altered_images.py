"""What ALTERs of a stretch of log make of the images in front of them, which servers do not log."""

import pyarrow as pa

from catchment.model.image import GROUP
from catchment.rewind.retyped import apart_name
from catchment.rewind.states import with_name, with_value, without_values

# Rows of four groups; the statement stands in front of the third one.
INT, TEXT, STATEMENT = pa.int32(), pa.string(), 3


def images(**columns: pa.Array) -> pa.Table:
    return pa.table({"id": [1, 2, 3, 4], GROUP: pa.array([1, 2, 3, 4], pa.int64()), **columns})


def told(found: pa.Table) -> dict[str, list[object]]:
    return {name: found[name].to_pylist() for name in found.column_names if name not in ("id", GROUP)}


def test_a_column_that_comes_with_a_value_has_it_in_the_rows_in_front() -> None:
    later = pa.array([None, None, 8, None], INT)
    assert told(with_value(images(m=later), "m", pa.scalar(4, INT), STATEMENT)) == {"m": [4, 4, 8, None]}
    assert told(with_value(images(M=later), "m", pa.scalar(4, INT), STATEMENT)) == {"M": [4, 4, 8, None]}
    assert told(with_value(images(), "m", pa.scalar(4, INT), STATEMENT)) == {"m": [4, 4, None, None]}
    former = pa.array(["x", None, None, None])
    found = with_value(images(m=former), "m", pa.scalar(4, INT), STATEMENT)
    assert told(found) == {"m": former.to_pylist(), apart_name("m", INT): [4, 4, None, None]}


def test_a_column_that_is_dropped_has_no_value_in_the_rows_in_front() -> None:
    values = pa.array([1, 2, 3, 4], INT)
    assert told(without_values(images(n=values, m=values), ("N",), STATEMENT)) == {
        "n": [None, None, 3, 4],
        "m": [1, 2, 3, 4],
    }
    assert told(without_values(images(n=values), ("n",), 9)) == {}


def test_a_column_that_is_renamed_has_the_values_of_the_rows_in_front() -> None:
    former, later = pa.array([1, 2, None, None], INT), pa.array([None, None, 3, 4], INT)
    assert told(with_name(images(a=former, c=later), "A", "c", STATEMENT)) == {"c": [1, 2, 3, 4]}
    assert told(with_name(images(a=former), "a", "c", STATEMENT)) == {"c": [1, 2, None, None]}
    assert told(with_name(images(c=later), "a", "c", STATEMENT)) == {"c": [None, None, 3, 4]}
    another = pa.array([None, None, "y", None])
    assert told(with_name(images(a=former, c=another), "a", "c", STATEMENT)) == {
        "c": another.to_pylist(),
        apart_name("c", INT): [1, 2, None, None],
    }


def test_a_name_that_is_given_to_another_column_has_the_values_of_the_rows_behind() -> None:
    """`a` becomes `c`, and another column is `a` from then on."""
    both = pa.array([1, 2, 30, 40], INT)
    assert told(with_name(images(a=both), "a", "c", STATEMENT)) == {
        "a": [None, None, 30, 40],
        "c": [1, 2, None, None],
    }
