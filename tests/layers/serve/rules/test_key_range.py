"""Keyspace ids as Vitess makes them: vectors of its own tests (go/vt/vtgate/vindexes), and ranges of them."""

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from catchment.serve.rules.key_range import (
    Numbers,
    ids_of_hash,
    ids_of_numeric,
    ids_of_reverse_bits,
    ids_of_xxhash,
    in_range,
    key_range,
)
from catchment.serve.rules.refused import Refused

_UNSIGNED = pa.decimal128(20, 0)


def _hexed(ids: Numbers) -> list[str]:
    return [f"{number:016x}" for number in ids.tolist()]


def test_hash() -> None:
    """hash_test.go, hash_auto_test.go; the last one is the published DES of ones under a key of zeros."""
    numbers = [1, 2, 3, 4, 5, 6, 0, 11, 0x100000000000000, 0x800000000000000, -1]
    assert _hexed(ids_of_hash(pa.array(numbers))) == [
        "166b40b44aba4bd6",
        "06e7ea22ce92708f",
        "4eb190c9a2fa169c",
        "d2fd8867d50d2dfe",
        "70bb023c810ca87a",
        "f098480ac4c4be71",
        "8ca64de9c1b123a7",
        "aefc44491cfe474c",
        "0d9f279ba5d87260",
        "20b9e767b2fb1456",
        "355550b2150e2451",
    ]
    assert _hexed(ids_of_hash(pa.array([Decimal(2**64 - 1)], _UNSIGNED))) == ["355550b2150e2451"]


def test_xxhash() -> None:
    """xxhash_test.go; the id of NULL is that of no bytes."""
    texts = pa.array(["test1", "test2", "testaverylongvaluetomakesurethisworks", None])
    assert _hexed(ids_of_xxhash(texts)) == [
        "d01ab7e4d6978f0b",
        "87eb11714c0a0e89",
        "81d8c38e0d850e6a",
        "99e9d85137db46ef",
    ]
    numbers = pa.array([1, -1, 2**63 - 1, -(2**63)])
    assert _hexed(ids_of_xxhash(numbers)) == [
        "d46405367612b4b7",
        "d8e2a6a7c8c7623d",
        "b37eb01f7bffafd8",
        "102c27ddb26a609e",
    ]
    assert _hexed(ids_of_xxhash(pa.array([Decimal(2**64 - 1)], _UNSIGNED))) == ["477cfa8d6d8f1f8d"]
    assert _hexed(ids_of_xxhash(texts.slice(1, 1))) == ["87eb11714c0a0e89"]


def test_numeric_and_reverse_bits() -> None:
    """numeric_test.go, reverse_bits_test.go."""
    numbers = pa.array([1, 2, 3, 4, 5, 6])
    assert ids_of_numeric(numbers).tolist() == [1, 2, 3, 4, 5, 6]
    assert _hexed(ids_of_reverse_bits(numbers)) == [f"{first}000000000000000" for first in "84c2a6"]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("-80", ["00", "7fffffffffffffff"], ["8000000000000000", "ff"]),
        ("80-", ["8000000000000000", "ff"], ["7fffffffffffffff"]),
        ("40-80", ["4000000000000000", "7f"], ["3fffffffffffffff", "8000000000000000"]),
        ("-", ["00", "ffffffffffffffff"], []),
        ("80-C0", ["80", "bfffffffffffffff"], ["c000000000000000"]),
        ("0001-0002", ["0001000000000000", "0001ffffffffffff"], ["0000ffffffffffff", "0002000000000000"]),
    ],
)
def test_ranges(text: str, inside: list[str], outside: list[str]) -> None:
    ids = [int(digits.ljust(16, "0"), 16) for digits in inside + outside]
    wanted = [True] * len(inside) + [False] * len(outside)
    numbers = pa.array([Decimal(one) for one in ids], _UNSIGNED)
    assert in_range("numeric", key_range(text), numbers).to_pylist() == wanted
    octets = pa.array([one.to_bytes(8, "big") for one in ids])
    assert in_range("binary", key_range(text), octets).to_pylist() == wanted


def test_null_has_an_id_by_xxhash_alone() -> None:
    nulls = pa.array([None], pa.int64())
    for name in ("hash", "numeric", "reverse_bits"):
        assert in_range(name, key_range("-"), nulls).to_pylist() == [False]
    assert in_range("binary", key_range("-"), nulls.cast(pa.string())).to_pylist() == [False]
    assert in_range("xxhash", key_range("80-"), nulls).to_pylist() == [True]


@pytest.mark.parametrize("text", ["8-", "80-80", "80-40", "-000000000000000000", "80", "x-"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(Refused):
        key_range(text)


@pytest.mark.parametrize("ids", [ids_of_hash, ids_of_numeric, ids_of_reverse_bits, ids_of_xxhash])
def test_no_rows(ids: Callable[..., Numbers]) -> None:
    assert ids(pa.array([], pa.int64())).tolist() == []
