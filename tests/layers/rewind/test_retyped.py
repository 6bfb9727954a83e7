"""Images under the names and types of their table's last definition: no value is lost on the way."""

import pyarrow as pa
import pytest

from catchment.model.image import DELETED
from catchment.rewind.retyped import Retyped, together

TYPES = {"id": pa.int64(), "n": pa.int32()}


def images(**columns: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array([1, 2]), **columns, DELETED: pa.array([False, False])})


def test_a_column_that_its_table_does_not_have_may_hold_no_value() -> None:
    empty = images(n=pa.array([1, None], pa.int32()), gone=pa.nulls(2, pa.int32()))
    assert together(empty, TYPES).schema.names == ["id", "n", DELETED]
    held = images(n=pa.array([1, None], pa.int32()), gone=pa.array([None, 7], pa.int32()))
    with pytest.raises(
        ValueError, match="column gone has values of type int32, and its table does not have it"
    ):
        together(held, TYPES)


def test_a_column_of_two_types_has_values_of_the_last_one() -> None:
    retyped = Retyped(["id"])
    retyped.apart(images(n=pa.array(["x", "y"])))
    later = retyped.apart(images(n=pa.array([1, 2], pa.int32())))
    both = later.append_column("n", pa.nulls(2, pa.string()))
    assert together(both, TYPES).column("n").to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="column n has values of type string, and of type int32"):
        together(later.append_column("n", pa.array(["x", None])), TYPES)
