"""What makes the rows of a lake those of the source: it names no key twice."""

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.image import DELETED
from catchment.rewind.compare import compared

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.int32())])
Row = tuple[int, int | None]
KEYS = st.integers(0, 6)
VALUES = st.one_of(st.none(), st.integers(0, 2))


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value} for key, value in rows], SCHEMA)


@given(st.dictionaries(KEYS, VALUES), st.lists(st.tuples(KEYS, VALUES)))
def test_any_lake_is_mended(source: dict[int, int | None], lake: list[Row]) -> None:
    both = compared(table([*source.items()]), table(lake), ("id",))
    changes = both.mending().to_pylist()
    keys = [row["id"] for row in changes]
    assert len(keys) == len(set(keys))
    kept = [row for row in lake if row[0] not in keys]
    kept += [(row["id"], row["v"]) for row in changes if not row[DELETED]]
    assert sorted(kept, key=repr) == sorted(source.items(), key=repr)
    assert (both.differences.total == 0) is (not changes)
    assert (both.differences.total == 0) is (sorted(lake, key=repr) == sorted(source.items(), key=repr))
