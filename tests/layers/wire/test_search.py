"""Keys in order are searched as a list of Python would be; offsets that lie are told, and read nothing."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.wire.keys.keys import Keys, encode
from catchment.wire.keys.search import is_ordered, places_of
from tests.layers.wire.test_keys import SHORT

NUMBERS = st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1)
LISTS = (
    st.lists(NUMBERS, max_size=80)
    | st.lists(SHORT, max_size=80)
    | st.lists(st.tuples(NUMBERS, SHORT), max_size=80)
)
HOSTILE = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 40)


def keys_of(values: Sequence[object]) -> Keys:
    """Keys of numbers have one width; those of texts do not."""
    if not values:
        return encode(pa.table({"a": pa.array([], pa.int64())}), ["a"])
    parts = list(zip(*(value if isinstance(value, tuple) else (value,) for value in values), strict=True))
    table = pa.table({str(place): list(part) for place, part in enumerate(parts)})
    return encode(table, table.column_names)


def listed(keys: Keys) -> list[bytes]:
    return [keys[row] for row in range(len(keys))]


def with_offsets(keys: Keys) -> Keys:
    """The same keys, of which each has an offset."""
    return Keys.from_binary(keys.to_binary()) if len(keys) else keys


@given(LISTS, st.data())
def test_places_are_those_of_a_list(values: list[object], data: st.DataObject) -> None:
    held = keys_of(sorted(values))  # type: ignore[type-var]
    taken = data.draw(st.lists(st.sampled_from(values), max_size=20)) if values else []
    more = data.draw(LISTS) if data.draw(st.booleans()) else []
    wanted = [*listed(keys_of(taken)), *listed(keys_of(more))]
    if data.draw(st.booleans()):
        wanted.sort()
    expected = [place for key in wanted for place, other in enumerate(listed(held)) if other == key]
    asked = Keys.from_binary(pa.array(wanted, pa.large_binary()))
    for form in (held, with_offsets(held)):
        assert places_of(form, asked).tolist() == expected
        # Of keys that are not in order nothing is promised but that the rows are there.
        assert all(0 <= place < len(asked) for place in places_of(asked, form).tolist())


@given(LISTS)
def test_order_is_that_of_bytes(values: list[object]) -> None:
    for keys in (keys_of(values), with_offsets(keys_of(values))):
        assert is_ordered(keys) == (listed(keys) == sorted(listed(keys)))


@given(st.lists(HOSTILE, min_size=1, max_size=12), st.binary(max_size=30), st.lists(SHORT, max_size=6))
def test_offsets_that_lie_read_nothing(offsets: list[int], data: bytes, wanted: list[bytes]) -> None:
    """Under an address sanitizer (dev/sanitized) a byte beyond would end the process."""
    rows = len(offsets) - 1
    held = Keys(np.frombuffer(data, np.uint8).copy(), np.array(offsets, np.int64), 0, rows)
    asked = Keys.from_binary(pa.array(sorted(wanted), pa.large_binary()))
    is_ordered(held)
    try:
        places = places_of(held, asked)
    except ValueError:
        return
    assert all(0 <= place < rows for place in places.tolist())


def test_lengths_that_lie_are_refused() -> None:
    data, asked = np.zeros(16, np.uint8), keys_of([1])
    for offsets, width, rows in (
        (None, 8, 3),
        (None, 0, 1),
        (None, -8, 1),
        (None, 8, -1),
        (None, 2**40, 2**40),
    ):
        with pytest.raises(ValueError, match="keys of"):
            places_of(Keys(data, offsets, width, rows), asked)
    for rows in (0, 2, -1):
        with pytest.raises(ValueError, match="offsets"):
            places_of(Keys(data, np.array([0, 8], np.int64), 0, rows), asked)


def test_many_keys_against_numpy() -> None:
    rng = np.random.default_rng(3)
    values = np.sort(rng.integers(0, 300_000, 400_000))
    wanted = np.unique(rng.integers(-10, 300_010, 5_000))
    found = places_of(encode(pa.table({"a": values}), ["a"]), encode(pa.table({"a": wanted}), ["a"]))
    assert np.array_equal(found, np.flatnonzero(np.isin(values, wanted)))
