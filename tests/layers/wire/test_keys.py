"""Encoded keys against plain Python: tuple order, dicts, sets."""

import datetime as dt
import struct
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.model.errors import Unsupported
from catchment.wire.keys.keys import (
    Keys,
    KeySet,
    at_or_below,
    bucket,
    encode,
    first_of_each,
    hash_rows,
    last_of_each,
)

# Each draws tables of several types.
FEWER = settings(max_examples=50)
SHORT = st.binary(max_size=3) | st.sampled_from(
    [b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"a\0b", b"long" * 9]
)
TEXT = st.text("ab\0é€\uffff😀", max_size=3) | st.just("x" * 40)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0])
FLOATS32 = st.floats(allow_nan=False, width=32)
DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
TIMES = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | st.integers(-3, 3)


TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), whole(8)),
    (pa.int16(), whole(16)),
    (pa.int32(), whole(32)),
    (pa.int64(), whole(64)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS32),
    (pa.bool_(), st.booleans()),
    (pa.date32(), DAYS),
    (pa.timestamp("us"), TIMES),
    (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.binary(), SHORT),
    (pa.large_binary(), SHORT),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.dictionary(pa.int8(), pa.string()), TEXT),
    (pa.binary_view(), SHORT),
]
INT, STRING, BINARY = TYPES[3], TYPES[11], TYPES[13]


def batch_of(rows: list[tuple[Any, ...]], types: list[pa.DataType]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(types))])


@st.composite
def tables(draw: st.DrawFn, max_size: int = 12) -> tuple[list[tuple[Any, ...]], pa.Table]:
    """Rows as tuples and the same rows as a table in several chunks, some of them slices."""
    chosen = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(values for _, values in chosen)), max_size=max_size))
    batch = batch_of(rows, [kind for kind, _ in chosen])
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    ends = [0, *cuts, len(rows)]
    pieces = [batch.slice(a, b - a) for a, b in pairwise(ends)]
    return rows, pa.Table.from_batches(pieces, batch.schema)


def key_of(table: pa.Table) -> Keys:
    return encode(table, table.schema.names)


@FEWER
@given(tables())
def test_bytes_order_like_tuples(drawn: tuple[list[tuple[Any, ...]], pa.Table]) -> None:
    rows, table = drawn
    keys = key_of(table)
    encoded = [keys[i] for i in range(len(rows))]
    for a, left in zip(rows, encoded, strict=True):
        for b, right in zip(rows, encoded, strict=True):
            assert (a < b) == (left < right)
            assert (a == b) == (left == right)


@FEWER
@given(tables())
def test_first_and_last_of_each(drawn: tuple[list[tuple[Any, ...]], pa.Table]) -> None:
    rows, table = drawn
    keys = key_of(table)
    newest = {row: i for i, row in enumerate(rows)}
    oldest = {row: i for i, row in reversed(list(enumerate(rows)))}
    assert last_of_each(keys).tolist() == sorted(newest.values())
    assert first_of_each(keys).tolist() == sorted(oldest.values())


@given(st.lists(st.tuples(st.integers(0, 9), SHORT)), st.lists(st.tuples(st.integers(0, 9), SHORT)))
def test_key_set_finds_what_a_dict_finds(
    held: list[tuple[int, bytes]], asked: list[tuple[int, bytes]]
) -> None:
    known = KeySet(encode(batch_of(held, [pa.int64(), pa.binary()]), ["c0", "c1"]))
    keys = encode(batch_of(asked, [pa.int32(), pa.large_binary()]), ["c0", "c1"])
    rows = {key: i for i, key in enumerate(held)}
    assert len(known) == len(rows)
    assert known.find(keys).tolist() == [rows.get(key, -1) for key in asked]
    assert known.contains(keys).tolist() == [key in rows for key in asked]


@FEWER
@given(tables(), st.data())
def test_bounds_compare_their_columns_only(
    drawn: tuple[list[tuple[Any, ...]], pa.Table], data: st.DataObject
) -> None:
    rows, table = drawn
    if not rows:
        return
    chosen = data.draw(st.integers(0, len(rows) - 1))
    columns = data.draw(st.integers(1, table.num_columns))
    bound = encode(table.slice(chosen, 1), table.schema.names[:columns])[0]
    expected = [row[:columns] <= rows[chosen][:columns] for row in rows]
    assert at_or_below(key_of(table), bound).tolist() == expected


def test_empty_bound_has_all_keys_at_or_below() -> None:
    assert at_or_below(encode(pa.table({"a": [1, -1]}), ["a"]), b"").all()


@FEWER
@given(tables())
def test_keys_survive_as_an_arrow_array(drawn: tuple[list[tuple[Any, ...]], pa.Table]) -> None:
    _, table = drawn
    keys = key_of(table)
    array = keys.to_binary()
    array.validate(full=True)
    assert array.to_pylist() == [keys[i] for i in range(len(keys))]
    chunked = pa.chunked_array([array[:2], array[2:]], pa.large_binary())
    for form in (array, chunked, array.cast(pa.binary())):
        again = Keys.from_binary(form)
        assert [again[i] for i in range(len(again))] == array.to_pylist()
        assert KeySet(again).contains(keys).all()
    assert Keys.from_binary(array[1:]).to_binary().to_pylist() == array.to_pylist()[1:]


def canonical(value: Any) -> Any:
    """Equal exactly where hash_rows promises equal hashes."""
    return struct.pack("<d", value) if isinstance(value, float) else value


@FEWER
@given(tables(), st.data())
def test_row_hashes_depend_on_values_only(
    drawn: tuple[list[tuple[Any, ...]], pa.Table], data: st.DataObject
) -> None:
    rows, table = drawn
    hashes = hash_rows(table, table.schema.names).tolist()
    if rows:
        at = data.draw(st.integers(0, len(rows) - 1))
        assert hash_rows(table.slice(at, 1), table.schema.names).tolist() == [hashes[at]]
    values = [tuple(map(canonical, row)) for row in rows]
    for a, left in zip(values, hashes, strict=True):
        for b, right in zip(values, hashes, strict=True):
            assert (a == b) == (left == right)


@given(st.sampled_from(TYPES), st.data())
def test_null_hashes_like_no_value(
    of: tuple[pa.DataType, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    kind, values = of
    drawn = data.draw(st.lists(st.none() | values, max_size=20))
    table = pa.table({"a": pa.array(drawn, kind), "b": pa.array(range(len(drawn)), pa.int8())})
    hashes = hash_rows(table, ["a"]).tolist()
    by_hash = {(canonical(value), hashed) for value, hashed in zip(drawn, hashes, strict=True)}
    assert len(by_hash) == len({canonical(value) for value in drawn}) == len(set(hashes))
    assert len(set(hash_rows(table, ["a", "b"]).tolist())) == len(drawn)


def test_row_hashes_of_other_types() -> None:
    nothing = pa.table({"a": pa.nulls(2), "b": pa.array([None, 1], pa.uint64()), "c": pa.array([None, b""])})
    assert len({int(hash_rows(nothing, [name])[0]) for name in "abc"}) == 1
    assert hash_rows(nothing, ["c"])[1] != hash_rows(nothing, ["c"])[0]
    assert hash_rows(nothing, ["b"])[1] == hash_rows(pa.table({"b": pa.array([1], pa.int8())}), ["b"])[0]
    time = pa.table({"t": pa.array([5], pa.time64("us")), "i": pa.array([5], pa.int64())})
    assert hash_rows(time, ["t"]) == hash_rows(time, ["i"])
    assert hash_rows(time, ["t", "i"]) != hash_rows(time, ["t"])
    names = pa.table({"u": pa.array([b"0123456789abcdef"], pa.uuid()), "s": ["0123456789abcdef"]})
    assert hash_rows(names, ["u"]) == hash_rows(names, ["s"])
    pairs = pa.table({"x": ["ab", "a"], "y": ["c", "bc"]})
    assert len(set(hash_rows(pairs, ["x", "y"]).tolist())) == 2


def test_row_hashes_do_not_collide_in_bulk() -> None:
    rows = 1 << 18
    table = pa.table({"id": np.arange(rows), "s": pa.array(np.arange(rows) % 7).cast(pa.string())})
    hashes = hash_rows(table, ["s", "id"])
    assert len(np.unique(hashes)) == rows
    assert abs(np.bitwise_count(hashes).mean() - 32) < 0.1


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_buckets_follow_the_key(ids: list[int], buckets: int, seed: int) -> None:
    chosen = bucket(encode(pa.table({"a": pa.array(ids, pa.int64())}), ["a"]), buckets, seed)
    assert chosen.dtype == np.uint16
    assert int(chosen.max()) < buckets
    assert len(set(zip(ids, chosen.tolist(), strict=True))) == len(set(ids))


def test_buckets_are_even_and_depend_on_the_seed() -> None:
    keys = encode(pa.table({"a": np.arange(100_000)}), ["a"])
    one, two = bucket(keys, 64, 1), bucket(keys, 64, 2)
    assert np.bincount(one, minlength=64).min() > 1300
    assert 0.9 < (one != two).mean() < 1
    inside = Keys.from_binary(keys.to_binary().filter(pa.array(one == 0)))
    assert len(last_of_each(inside)) == len(inside)
    with pytest.raises(ValueError, match="65536 buckets, not 0"):
        bucket(keys, 0)


def test_large_scale_against_numpy() -> None:
    ids = np.random.default_rng(7).integers(0, 60_000, 200_000)
    keys = encode(pa.table({"a": ids}), ["a"])
    _, first = np.unique(ids, return_index=True)
    assert np.array_equal(first_of_each(keys), np.sort(first))
    _, last = np.unique(ids[::-1], return_index=True)
    assert np.array_equal(last_of_each(keys), np.sort(len(ids) - 1 - last))


def test_empty_tables() -> None:
    table = pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    for names in (["a"], ["a", "s"]):
        keys = encode(table, names)
        assert (
            len(keys) == len(last_of_each(keys)) == len(keys.to_binary()) == len(hash_rows(table, names)) == 0
        )
        assert KeySet(keys).find(encode(pa.table({"a": [1], "s": ["x"]}), names)).tolist() == [-1]
    none = pa.table({"a": pa.chunked_array([], pa.int64())})
    assert len(encode(none, ["a"])) == len(Keys.from_binary(pa.chunked_array([], pa.large_binary()))) == 0


def test_keys_that_cannot_be_encoded() -> None:
    table = pa.table(
        {"n": pa.chunked_array([[1, 2], [3, None]]), "l": [[1]] * 4, "u": pa.array([1] * 4, pa.uint64())}
    )
    with pytest.raises(Unsupported, match="'n' holds a NULL in row 3"):
        encode(table, ["n"])
    with pytest.raises(ValueError, match="list"):
        encode(table, ["l"])
    with pytest.raises(ValueError, match="uint64"):
        encode(table, ["u"])
    with pytest.raises(ValueError, match="no column 'x'"):
        hash_rows(table, ["x"])
    with pytest.raises(ValueError, match="at least one column"):
        encode(table, [])
    with pytest.raises(ValueError, match="must not hold a null"):
        Keys.from_binary(pa.array([b"", None]))
    with pytest.raises(IndexError):
        encode(table.slice(0, 2), ["n"])[2]
