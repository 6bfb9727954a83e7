"""Columns as a feed keeps them; the standard library and plain Python are the judges."""

import datetime as dt
import hmac
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.column_rule import ColumnRule, Masking, MaskKey, rule_of
from catchment.model.errors import Unsupported
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.cells.masks import ColumnMasks, kept_type

KEY = "0123456789abcdef"
VALUES = {
    pa.string(): st.text(),
    pa.binary(): st.binary(),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.int16(): st.integers(-(1 << 15), (1 << 15) - 1),
}


def rule(masking: Masking | None = None, **options: Any) -> ColumnRule:
    return ColumnRule("v", masking=masking, **options)


def applied(values: pa.Array, made: ColumnRule) -> list[Any]:
    """The masked values of a column beside another one: as a table of chunks, as a batch, and of a slice."""
    masks = ColumnMasks([made], MaskKey(KEY))
    other = pa.array(range(len(values)))
    batch = pa.RecordBatch.from_arrays([other, values], names=["id", "v"])
    found = masks.applied(batch)
    assert found.column("id") == other
    half = len(values) // 2
    table = masks.applied(pa.Table.from_batches([batch.slice(0, half), batch.slice(half)], batch.schema))
    assert table["v"].to_pylist() == found.column("v").to_pylist()
    assert masks.applied(batch.slice(half)).column("v").to_pylist() == found.column("v").to_pylist()[half:]
    return list(found.column("v").to_pylist())


ODD: dict[pa.DataType, list[Any]] = {
    pa.string(): ["", " a ", "a\0", "é", "e\u0301", None],
    pa.binary(): [b"", b"\0", b"a\0", b"a ", None],
    pa.int64(): [0, -1, 1 << 62, None],
}


def test_an_hmac_of_odd_values() -> None:
    for kind, values in ODD.items():
        must_be_what_anybody_computes(kind, values)


@given(kind=st.sampled_from(list(VALUES)), data=st.data())
def test_an_hmac_is_what_anybody_computes(kind: pa.DataType, data: st.DataObject) -> None:
    must_be_what_anybody_computes(kind, data.draw(st.lists(st.none() | VALUES[kind], max_size=20)))


def must_be_what_anybody_computes(kind: pa.DataType, values: list[Any]) -> None:
    wanted = [
        None
        if value is None
        else hmac.new(
            KEY.encode(), value if isinstance(value, bytes) else str(value).encode(), "sha256"
        ).hexdigest()
        for value in values
    ]
    assert applied(pa.array(values, kind), rule(Masking.HMAC)) == wanted


@given(values=st.lists(st.none() | st.text(max_size=9), max_size=20), shown=st.integers(0, 9))
def test_the_last_characters(values: list[str | None], shown: int) -> None:
    wanted = [
        None if value is None else "****" + (value[-shown:] if 0 < shown < len(value) else "")
        for value in values
    ]
    assert applied(pa.array(values, pa.string()), rule(Masking.PARTIAL, shown=shown)) == wanted


def test_nulls_of_the_same_type() -> None:
    kinds = {
        "a": pa.string(),
        b"a": pa.binary(),
        1: pa.int64(),
        2: pa.int16(),
        1.5: pa.float64(),
        Decimal("1.25"): pa.decimal128(9, 2),
        dt.datetime(2026, 1, 1): pa.timestamp("us"),
    }
    for value, kind in kinds.items():
        table = pa.table({"id": [1, 2], "v": pa.array([value, None], kind)})
        found = ColumnMasks([rule(Masking.NULLS)], None).applied(table)
        assert (found["v"].null_count, found["v"].type) == (2, kind)


def test_excluded_and_first_of_several() -> None:
    rules = [ColumnRule("PASS*", excluded=True), ColumnRule("p*", masking=Masking.NULLS), ColumnRule("*ort")]
    masks = ColumnMasks(rules, None)
    found = masks.applied(pa.table({"Password": ["a"], "port": [1], "id": [2]}))
    assert found.to_pylist() == [{"port": None, "id": 2}]
    assert rule_of(rules, "port") == rules[1]
    assert rule_of(rules, "id") is None
    columns = tuple(Column(name, ColumnType(Kind.INT)) for name in ("id", "passport", "port"))
    assert [c.name for c in masks.kept(columns)] == ["id", "port"]


def test_what_is_kept_has_the_type_that_is_told(subtests: pytest.Subtests) -> None:
    """Of every type, or it is refused before there is a row."""
    for kind in Kind:
        for made in (rule(), rule(excluded=True), *(rule(masking) for masking in Masking)):
            with subtests.test(kind.value, rule=made):
                must_keep_the_told_type(kind, made)


def must_keep_the_told_type(kind: Kind, made: ColumnRule) -> None:
    column = Column("v", ColumnType(kind, length=8 if kind in (Kind.DECIMAL, Kind.BIT, Kind.BINARY) else 0))
    plain = kept_type([], column)
    assert plain is not None
    masks = ColumnMasks([made], MaskKey(KEY))
    rows = pa.table({"id": [1], "v": pa.nulls(1, plain)})
    try:
        told = kept_type([made], column)
    except Unsupported:
        with pytest.raises(Unsupported):
            masks.applied(rows)
        return
    found = masks.applied(rows)
    assert (found.schema.field("v").type if told is not None else found.schema.names) == (told or ["id"])


def test_a_key_is_told_apart_and_never_shown() -> None:
    assert MaskKey(KEY).mark == MaskKey(KEY).mark != MaskKey(KEY + "!").mark
    assert KEY not in repr(MaskKey(KEY)) + str(MaskKey(KEY)) + MaskKey(KEY).mark
    assert pickle.loads(pickle.dumps(MaskKey(KEY))).mark == MaskKey(KEY).mark


def test_without_its_key_nothing_passes() -> None:
    with pytest.raises(Unsupported):
        ColumnMasks([rule(Masking.HMAC)], None).applied(pa.table({"v": ["a"]}))
