"""Rows in order of key, the last of each: as a dict and a sort of Python's have them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.wire.keys import order
from catchment.wire.keys.order import last_in_order
from tests.layers.wire.test_search import LISTS, keys_of, listed, with_offsets


@given(LISTS, st.sampled_from([1, 3, 20, 80]), st.booleans())
def test_the_last_of_each_in_order(values: list[object], runs: int, offsets: bool) -> None:
    # Changes come in runs that are in order each, many or few.
    step = -(-len(values) // runs) or 1
    drawn = [v for at in range(0, len(values), step) for v in sorted(values[at : at + step])]  # type: ignore[type-var]
    keys = with_offsets(keys_of(drawn)) if offsets else keys_of(drawn)
    assert last_in_order(keys).tolist() == _expected(listed(keys))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["", "\0", "a", "b" * 9, "b" * 9 + "c"])), max_size=200
    )
)
def test_keys_that_are_alike_in_front(values: list[object]) -> None:
    keys = keys_of(values)
    assert last_in_order(keys).tolist() == _expected(listed(keys))


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_either_sort(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_RUNS_MAX", most)
    keys = keys_of([(row * 7919 % 50, str(row % 3)) for row in range(1000)])
    assert last_in_order(keys).tolist() == _expected(listed(keys))


def _expected(keys: Sequence[bytes]) -> list[int]:
    last = {key: row for row, key in enumerate(keys)}
    return [last[key] for key in sorted(last)]
