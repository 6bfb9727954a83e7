"""Values of keys as people give them: each has the type of its column, or an error that does not repeat it."""

import datetime as dt
import uuid
from decimal import Decimal

import pytest

from catchment.model.errors import ConfigError
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.cells.given import keys_of
from catchment.wire.cells.types import arrow_type

UNSIGNED = ColumnType(Kind.BIGINT, unsigned=True)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
UTC = dt.UTC
RIGHT = [
    (ColumnType(Kind.INT), ("17", 17, "-17"), (17, 17, -17)),
    (UNSIGNED, (2**64 - 1, str(2**64 - 1)), (Decimal(2**64 - 1),) * 2),
    (ColumnType(Kind.YEAR), ("2026",), (2026,)),
    (
        ColumnType(Kind.DECIMAL, length=8, scale=2),
        ("1.5", 2, Decimal("3.25")),
        map(Decimal, ("1.50", "2.00", "3.25")),
    ),
    (ColumnType(Kind.DOUBLE), ("1.5", Decimal("2.5"), 3), (1.5, 2.5, 3.0)),
    (
        ColumnType(Kind.DATE),
        ("2026-11-23", dt.date(2026, 1, 2)),
        (dt.date(2026, 11, 23), dt.date(2026, 1, 2)),
    ),
    (
        ColumnType(Kind.DATETIME, scale=6),
        ("2026-11-23 01:02:03.5",),
        (dt.datetime(2026, 11, 23, 1, 2, 3, 500_000),),
    ),
    (
        ColumnType(Kind.TIMESTAMP),
        ("2026-11-23 01:02:03", "2026-11-23T03:02:03+02:00"),
        (dt.datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC),) * 2,
    ),
    (ColumnType(Kind.TIME, scale=3), ("-01:00:00.5", dt.timedelta(seconds=1)), (-3_600_500_000, 1_000_000)),
    (TEXT, (" as it is ", ""), (" as it is ", "")),
    (ColumnType(Kind.BINARY, length=4), ("00ff", b"\x00\xff"), (b"\x00\xff\x00\x00",) * 2),
    (ColumnType(Kind.BLOB), ("00ff",), (b"\x00\xff",)),
    (ColumnType(Kind.UUID), ("0FC97EE0-0000-11f0-8000-000000000001", uuid.UUID(int=1)), None),
    (ColumnType(Kind.INET4), ("127.0.0.1",), ("127.0.0.1",)),
]
WRONG = [
    (ColumnType(Kind.INT), ("secret", "1.5", 1.5, True, None, 2**40, b"1")),
    (ColumnType(Kind.DECIMAL, length=4, scale=1), ("1.25", 12345, "secret", 1.5)),
    (ColumnType(Kind.DATE), ("2026-02-30", 20260101, dt.datetime(2026, 1, 1))),
    (ColumnType(Kind.DATETIME), ("yesterday", dt.datetime(2026, 1, 1, tzinfo=UTC))),
    (ColumnType(Kind.TIME), ("noon",)),
    (TEXT, (17, b"secret")),
    (ColumnType(Kind.BLOB), ("secret", 17)),
    (ColumnType(Kind.UUID), ("secret",)),
    (ColumnType(Kind.INET4), ("256.0.0.1",)),
    (ColumnType(Kind.GEOMETRY), (b"",)),
]


@pytest.mark.parametrize(("kind", "given", "wanted"), RIGHT, ids=[kind.kind.value for kind, *_ in RIGHT])
def test_values_get_the_types_of_rows(kind: ColumnType, given: tuple[object, ...], wanted: object) -> None:
    found = keys_of([Column("k", kind)], given)
    assert found.schema.field("k").type == arrow_type(kind)
    expected = list(wanted) if wanted is not None else [str(given[0]).lower(), str(given[1])]  # type: ignore[call-overload]
    assert found["k"].to_pylist() == expected


@pytest.mark.parametrize(("kind", "given"), WRONG, ids=[kind.kind.value for kind, _ in WRONG])
def test_errors_name_the_key_by_its_place(kind: ColumnType, given: tuple[object, ...]) -> None:
    for value in given:
        with pytest.raises(
            ConfigError, match=rf"^key (3: its value for|column) k is (no )?{kind.kind.value}[;:]"
        ) as caught:
            keys_of(
                [Column("n", UNSIGNED), Column("k", kind)], [[1, _good(kind)], [2, _good(kind)], [3, value]]
            )
        assert "secret" not in str(caught.value)


def _good(kind: ColumnType) -> object:
    """A value of a type."""
    return next((given[0] for right, given, _ in RIGHT if right.kind is kind.kind), b"")


def test_a_key_has_a_value_for_each_column() -> None:
    columns = [Column("country", TEXT), Column("no", UNSIGNED)]
    assert keys_of(columns, [["de", 1], ("at", "2")]).to_pylist() == [
        {"country": "de", "no": Decimal(1)},
        {"country": "at", "no": Decimal(2)},
    ]
    for key in ("de", ["de"], ["de", 1, 2]):
        with pytest.raises(ConfigError, match=r"key 2 has . values, and the table's key has 2: country, no"):
            keys_of(columns, [["de", 1], key])
