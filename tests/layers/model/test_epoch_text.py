"""The one spelling of an epoch: a bijection with its number that sorts as the numbers do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.epoch_number import epoch_number, epoch_text, gci_of, micro_gci_of, parse_epoch

NUMBERS = st.builds(
    epoch_number,
    st.integers(0, 2**32 - 1),
    st.one_of(
        st.integers(0, 2**32 - 1), st.integers(0, 10), st.builds(lambda n: 10**n - 1, st.integers(4, 9))
    ),
)


def test_it_reads_as_a_time() -> None:
    assert epoch_text(epoch_number(1795320012, 7)) == "2026-11-22T04:00:12Z.0007"
    assert epoch_text(0) == "1970-01-01T00:00:00Z.0000"
    assert epoch_text(2**64 - 1) == "2106-02-07T06:28:15Z.f4294967295"


@given(NUMBERS)
def test_it_is_taken_back(number: int) -> None:
    assert parse_epoch(epoch_text(number)) == number == epoch_number(gci_of(number), micro_gci_of(number))
    assert parse_epoch(str(number)) == number


@given(NUMBERS, NUMBERS)
def test_it_sorts_as_the_numbers_do(one: int, other: int) -> None:
    assert (epoch_text(one) < epoch_text(other)) is (one < other)


@given(st.integers(0, 2**31), st.integers(0, 2**32 - 1), st.integers(0, 11_000))
def test_ticks_of_one_second_sort_too(gci: int, one: int, other: int) -> None:
    texts = [epoch_text(epoch_number(gci, micro)) for micro in (one, other)]
    assert (texts[0] < texts[1]) is (one < other)


@given(st.text(alphabet="0123456789-:TZ.abcdef ٣_+", max_size=36))
def test_no_other_text_is_the_same_epoch(text: str) -> None:
    try:
        number = parse_epoch(text)
    except ValueError:
        return
    assert text in (epoch_text(number), str(number))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-1",
        "007",
        "1_0",
        "9" * 5000,
        "1795319396.8",
        "2026-11-22T04:00:12Z.7",
        "2026-11-22T04:00:12Z.00007",
        "2026-11-22T04:00:12Z.a00007",
        "2026-11-22T04:00:12Z.b12345",
        "2026-02-30T04:00:12Z.0007",
        "2106-02-07T06:28:16Z.0000",
        "1969-12-31T23:59:59Z.0000",
        "2106-02-07T06:28:15Z.f4294967296",
        str(2**64),
    ],
)
def test_what_is_no_epoch(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not an epoch: "):
        parse_epoch(text)
    assert parse_epoch("2026-11-22T04:00:12Z.a12345") == epoch_number(1795320012, 12345)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_no_text_for_what_is_no_number(number: int) -> None:
    with pytest.raises(ValueError, match="not an epoch's number"):
        epoch_text(number)
