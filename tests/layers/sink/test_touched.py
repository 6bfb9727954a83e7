"""Rows that hold a key which changed are found, in files in order and in others, of one shard and of several."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.sink.delta.layout import DELETED, EPOCH, SHARD
from catchment.sink.delta.plain.touched import Changed, holding

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
# As AUTO_INCREMENT gives them.
NO_GAP = st.tuples(st.integers(-6, 3), st.integers(0, 9)).map(lambda of: list(range(of[0], of[0] + of[1])))


@given(st.lists(INTEGERS) | NO_GAP, st.sets(INTEGERS), st.booleans())
def test_places_of_the_wanted(values: list[int], wanted: set[int], ordered: bool) -> None:
    values = sorted(values) if ordered else values
    found = holding(np.array(values, np.int64), np.array(sorted(wanted), np.int64))
    assert sorted(found.tolist()) == [place for place, value in enumerate(values) if value in wanted]


ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(-4, 4), st.sampled_from("xyz")))


def _table(rows: list[tuple[str, int, str]], kind: pa.DataType) -> pa.Table:
    shards, numbers, texts = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            SHARD: pa.array(shards, pa.string()),
            EPOCH: pa.array([1] * len(rows), pa.int64()),
            DELETED: pa.array([False] * len(rows)),
            "n": pa.array(numbers, pa.int64()).cast(kind),
            "t": pa.array(texts, pa.string()),
        }
    )


@pytest.mark.parametrize("key", [("n",), ("n", "t"), ("t", "n")])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int8()])
@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS, st.booleans(), st.integers(1, 9))
def test_rows_of_a_file(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    kind: pa.DataType,
    held: list[tuple[str, int, str]],
    changed: list[tuple[str, int, str]],
    ordered: bool,
    group_rows: int,
) -> None:
    path: Path = tmp_path_factory.mktemp("touched") / "f.parquet"
    held = sorted(held) if ordered else held
    pq.write_table(_table(held, kind), path, row_group_size=group_rows)
    net = _table(changed, kind)
    identity = (SHARD, *key)
    found = Changed(net.select(list(identity))).rows(path)
    places = {"n": 1, "t": 2}
    wanted = {(row[0], *(row[places[name]] for name in key)) for row in changed}
    assert list(found) == [
        number for number, row in enumerate(held) if (row[0], *(row[places[name]] for name in key)) in wanted
    ]
