"""Messages of the protobuf: each value of each type exact, sizes bounded, long rows alone and named."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server import values
from catchment.serve.server.events import event_of, serialized
from catchment.serve.server.rows import EVENT_BYTES, SerializedRow, SerializedRows, SerializedRun
from catchment.serve.server.telling import MESSAGE_BYTES, Message, ProtoTelling, Told
from catchment.serve.server.values import sides_of
from catchment.serve.stream.events import (
    Begin,
    Commit,
    CopyCompleted,
    Ddl,
    Event,
    Field,
    Gap,
    Heartbeat,
    LastPk,
    Restart,
    Row,
    VGtid,
)
from catchment.serve.stream.source import ShardName
from catchment.wire.cells.types import arrow_type
from tests.world.streamed import Reading

KS, SHARD = "ks", "-80"
NAME = ShardName(KS, SHARD)
T = TableId("shop", "orders")
PLACE = (NAME, T)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
INT = ColumnType(Kind.INT)
COLUMNS = Field(*NAME, T, (Column("id", INT), Column("v", TEXT)), ("id",))

_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.MEDIUMINT: 24, Kind.INT: 32, Kind.BIGINT: 64}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def types() -> st.SearchStrategy[ColumnType]:
    """Any type of a column."""
    whole = st.builds(ColumnType, st.sampled_from(list(_BITS)), st.booleans())
    decimals = st.tuples(st.integers(1, 65), st.integers(0, 30)).map(
        lambda digits: ColumnType(Kind.DECIMAL, length=digits[0], scale=min(digits))
    )
    bits = st.builds(ColumnType, st.just(Kind.BIT), length=st.integers(1, 64))
    others = st.sampled_from([kind for kind in Kind if kind not in (*_BITS, Kind.DECIMAL, Kind.BIT)])
    labelled = st.builds(
        ColumnType,
        st.sampled_from([Kind.ENUM, Kind.SET]),
        charset=st.just("utf8mb4"),
        labels=st.tuples(_TEXT),
    )
    return st.one_of(whole, decimals, bits, others.map(ColumnType), labelled)


def values_of(column: ColumnType) -> st.SearchStrategy[Any]:
    """Any value of a column, as a stream has it; none among them."""
    return st.none() | _present(column)


def _present(column: ColumnType) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    match column.kind:
        case kind if kind in _BITS:
            bits = _BITS[kind]
            low, high = (0, 2**bits) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
            numbers = st.integers(low, high - 1)
            return numbers.map(Decimal) if column.unsigned and bits == 64 else numbers
        case Kind.BIT:
            numbers = st.integers(0, 2**column.length - 1)
            return numbers.map(Decimal) if column.length == 64 else numbers
        case Kind.DECIMAL:
            most = 10**column.length - 1
            exact = st.integers(-most, most).map(lambda n: _scaled(n, column.scale))
            return exact if column.length > 38 else exact.map(Decimal)
        case Kind.FLOAT:
            return st.floats(width=32, allow_nan=False)
        case Kind.DOUBLE:
            return st.floats(allow_nan=False)
        case Kind.YEAR:
            return st.integers(0, 2155)
        case Kind.DATE:
            return st.dates()
        case Kind.TIME:
            return st.integers(-3_020_399_999_999, 3_020_399_999_999)
        case Kind.DATETIME | Kind.TIMESTAMP:
            return st.datetimes()
        case Kind.BINARY | Kind.BLOB | Kind.GEOMETRY:
            return st.binary(max_size=20)
    return _TEXT


def _scaled(number: int, scale: int) -> str:
    """With all digits behind the point, as a server writes it."""
    digits = str(abs(number)).rjust(scale + 1, "0")
    whole = digits[: len(digits) - scale] + ("." + digits[-scale:] if scale else "")
    return ("-" if number < 0 else "") + whole


def read(messages: Sequence[Message]) -> list[Event]:
    reading = Reading()
    return [event for one in messages for event in reading.events(pb.EventBatch.FromString(one.data))]


def told(field: Field, *rows: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> list[Told]:
    """A Field and rows behind it, as a teller has them."""
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in field.columns])
    values = [side for row in rows for side in row if side is not None]
    sides = iter(sides_of(field.columns, pa.Table.from_pylist(values, schema)))
    told: list[Told] = [field]
    for row in rows:
        before, after = (None if side is None else next(sides) for side in row)
        told.append(SerializedRow(PLACE, before, after))
    return told


def events(field: Field, *rows: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> list[Event]:
    """What a client reads of that."""
    return [field, *(Row(*NAME, T, before, after) for before, after in rows)]


@given(st.data(), st.lists(types(), min_size=1, max_size=6), st.integers(0, 5))
def test_values_come_back_as_they_were(data: st.DataObject, columns: list[ColumnType], count: int) -> None:
    named = [Column(f"c{number}", column) for number, column in enumerate(columns)]
    arrays = [
        pa.array([data.draw(values_of(one.type)) for _ in range(count)], arrow_type(one.type))
        for one in named
    ]
    rows = pa.table(arrays, names=[one.name for one in named])
    sides = sides_of(named, rows)
    field = Field(*NAME, T, tuple(named), ())
    served: list[Told] = [field, *(SerializedRow(PLACE, None, side) for side in sides)]
    expected: list[Event] = [field, *(Row(*NAME, T, None, values) for values in rows.to_pylist())]
    assert read(list(ProtoTelling().encoded(iter(served)))) == expected
    # And byte by byte what generated code writes.
    assert [pb.Side.FromString(side).SerializeToString() for side in sides] == sides


def test_sides_of_rows() -> None:
    rows = (
        (None, {"id": 1, "v": "a"}),
        ({"id": 1, "v": "a"}, {"id": 1, "v": None}),
        ({"id": 1, "v": None}, None),
    )
    assert read(list(ProtoTelling().encoded(iter(told(COLUMNS, *rows))))) == events(COLUMNS, *rows)


def test_many_large_rows_are_written_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": pa.array(range(100), pa.int32()), "v": ["x" * number for number in range(100)]})
    whole = sides_of(COLUMNS.columns, rows)
    monkeypatch.setattr(values, "_BYTES_MAX", 64)
    assert sides_of(COLUMNS.columns, rows) == whole


def test_every_kind_is_in_the_protobuf() -> None:
    names = [name.removeprefix("KIND_") for name, _ in pb.Kind.items()]
    assert sorted(names) == sorted(["UNSPECIFIED", *(kind.name for kind in Kind)])


def test_all_other_events_come_back() -> None:
    added = {
        "none": None,
        "n": -1,
        "big": 2**64 - 1,
        "d": Decimal("1.50"),
        "f": 0.5,
        "t": "é",
        "b": b"\0",
        "day": date(2026, 11, 25),
        "at": datetime(2026, 11, 25, 1, 2, 3, 4),
    }
    others: list[Event] = [
        Begin(KS, SHARD, "0-1-2", 1795617704),
        Begin(KS, SHARD, copied=True),
        LastPk(KS, SHARD, T, (-1, "ab", 2**64 - 1)),
        LastPk(KS, SHARD, T, None),
        Commit(KS, SHARD, "0-1-2", 1795617704),
        Ddl(KS, SHARD, T, "ALTER TABLE é", added, ("x", "y"), {"a": "b"}, False),
        Ddl(KS, SHARD, T, "TRUNCATE", {}, emptied=True),
        Restart(KS, SHARD, T, "why", gone=True),
        CopyCompleted(KS, SHARD, T),
        CopyCompleted(),
        VGtid('{"cut": 1}', 5),
        Heartbeat(7),
        Gap("a", "b"),
    ]
    assert read(list(ProtoTelling().encoded(iter(others)))) == others


_AROUND = (_TEXT, _TEXT, _TEXT, st.integers(0, 1 << 40))


@given(st.one_of(st.builds(Begin, *_AROUND, st.booleans()), st.builds(Commit, *_AROUND)))
def test_what_is_around_transactions_is_what_generated_code_writes(event: Begin | Commit) -> None:
    assert serialized(event) == event_of(event).SerializeToString()


def test_rows_that_are_copied_come_in_runs_and_long_ones_alone() -> None:
    lengths = [*([10] * 1000), EVENT_BYTES - 50, 10, EVENT_BYTES + 1, *([30_000] * 5)]
    rows = pa.table(
        {"id": pa.array(range(len(lengths)), pa.int32()), "v": ["x" * length for length in lengths]}
    )
    runs = list(SerializedRows().came(NAME, Table(T, COLUMNS.columns, ("id",)), rows))
    expected = [COLUMNS, *(Row(*NAME, T, None, side) for side in rows.to_pylist())]
    assert read(list(ProtoTelling().encoded(iter([COLUMNS, *runs])))) == expected
    assert [type(one) for one in runs] == [SerializedRun] * 2 + [SerializedRow] + [SerializedRun] * 3
    for one in runs:
        if isinstance(one, SerializedRun):
            assert sum(map(len, one.sides)) <= EVENT_BYTES
            assert pb.Event.FromString(one.serialized()).SerializeToString() == one.serialized()


def test_messages_are_about_one_mebibyte() -> None:
    rows = [(None, {"id": number, "v": "x" * 300}) for number in range(8_000)]
    messages = list(ProtoTelling().encoded(iter(told(COLUMNS, *rows))))
    sizes = [len(one.data) for one in messages]
    assert max(sizes) <= MESSAGE_BYTES + 10_000
    assert min(sizes[:-1]) > MESSAGE_BYTES - 100_000
    assert {one.holds for one in messages} == {""}
    assert read(messages) == events(COLUMNS, *rows)


@pytest.mark.parametrize(("length", "alone"), [(30_000, False), (2_000_000, True)])
def test_a_long_row_stands_alone_and_is_named(length: int, alone: bool) -> None:
    rows = [(None, {"id": 1, "v": "a"}), ({"id": 2, "v": "b"}, None)]
    rows += [({"id": 3, "v": "c"}, {"id": 4, "v": "x" * length}), (None, {"id": 5, "v": "d"})]
    messages = list(ProtoTelling().encoded(iter(told(COLUMNS, *rows))))
    assert read(messages) == events(COLUMNS, *rows)
    assert [one.holds for one in messages if one.holds] == [
        "a row of shop.orders on shard ks/-80, id=4"
    ] * alone
    if alone:
        first, long, last = messages
        assert len(read([first])) == 3
        assert len(last.data) < 100
        assert long.holds


def test_a_long_vgtid_is_named() -> None:
    (message,) = ProtoTelling().encoded(iter([VGtid("x" * 2_000_000, 1)]))
    assert message.holds == "a VGtid"


def test_who_joins_a_shared_reader_hears_of_columns_that_were_told_there() -> None:
    table, other = Table(T, COLUMNS.columns, ("id",)), TableId("shop", "items")
    shared = {(f"{KS}/{SHARD}", T): table, (f"{KS}/{SHARD}", other): Table(other, COLUMNS.columns, ())}
    mine = ProtoTelling()
    assert len(read(list(mine.catch_up({(f"{KS}/{SHARD}", T): table})))) == 1
    assert read(list(mine.catch_up(shared))) == [Field(KS, SHARD, other, COLUMNS.columns, ())]
    assert list(mine.catch_up(shared)) == []
    assert mine.known == shared
