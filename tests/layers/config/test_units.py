"""Quantities with units: read, refused, and written back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.units import (
    parse_duration,
    parse_size,
    write_duration,
    write_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("100ms", 0.1), ("1s", 1), ("1.5 s", 1.5), ("10min", 600), ("1h", 3600), ("2d", 172800)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "5", "5 years", "-1s", "1,5s", "s", 5, 0.5, True, None, ["1s"]])
def test_what_is_no_quantity(value: object) -> None:
    for parse in (parse_duration, parse_size):
        with pytest.raises(ValueError, match="with its unit"):
            parse(value)


@given(st.integers(0, 10**9))
def test_durations_written_are_read_back(milliseconds: int) -> None:
    assert parse_duration(write_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000, rel=1e-5)


@given(st.integers(0, 1 << 50))
def test_sizes_written_are_read_back(size: int) -> None:
    assert parse_size(write_size(size)) == size
