"""What a column is in Avro: the types of the lake, each exact, with a logical type where Avro has one that is."""

from dataclasses import dataclass
from typing import Any, Final

from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, ColumnType, Kind

# Names of ours have four parts. Those of tables have two or three, so that they never meet.
NAMESPACE: Final = "io.catchment.tail"
_UNSIGNED_DIGITS: Final = 20
_BITS_MAX: Final = 63


@dataclass(frozen=True, slots=True)
class AvroType:
    """`digits` and `scale` are those of a decimal. `zoned`: a moment, whatever the zone of a session."""

    plain: str
    logical: str = ""
    digits: int = 0
    scale: int = 0
    zoned: bool = False

    @property
    def name(self) -> str:
        """Of a decimal, whose type has a name."""
        return f"{NAMESPACE}.Decimal_{self.digits}_{self.scale}" if self.digits else ""

    @property
    def size(self) -> int:
        """The bytes of a decimal: as many as hold the greatest one with its sign."""
        return decimal_bytes(self.digits)

    def schema(self) -> str | dict[str, Any]:
        """As JSON."""
        if self.digits:
            named = {"type": "fixed", "name": self.name, "size": self.size}
            return {**named, "logicalType": "decimal", "precision": self.digits, "scale": self.scale}
        if not self.logical:
            return self.plain
        # Iceberg's word, by which DuckDB tells a moment from a local time.
        zone = {"adjust-to-utc": True} if self.zoned else {}
        return {"type": self.plain, "logicalType": self.logical, **zone}


def decimal_bytes(digits: int) -> int:
    """How many bytes hold each number of so many digits, with its sign."""
    greatest: int = 10**digits - 1
    return (greatest.bit_length() + 8) // 8


def avro_type(column: ColumnType) -> AvroType:
    """Of the values of a column; NULL is a type of its own."""
    if column.kind in INTEGERS:
        return _integer(column)
    if column.kind is Kind.DECIMAL:
        # Spark refuses a whole file for one longer decimal. The stream has such a value as text.
        long = column.length > DECIMAL_DIGITS_MAX
        return _TEXT if long else _decimal(column.length, column.scale)
    if column.kind is Kind.BIT:
        return _LONG if column.length <= _BITS_MAX else _decimal(_UNSIGNED_DIGITS)
    return _OTHERS[column.kind]


def _integer(column: ColumnType) -> AvroType:
    if column.kind is Kind.BIGINT:
        return _decimal(_UNSIGNED_DIGITS) if column.unsigned else _LONG
    return _LONG if column.kind is Kind.INT and column.unsigned else _INT


def _decimal(digits: int, scale: int = 0) -> AvroType:
    return AvroType("fixed", "decimal", digits, scale)


_INT, _LONG, _TEXT, _BYTES = AvroType("int"), AvroType("long"), AvroType("string"), AvroType("bytes")
_OTHERS: Final[dict[Kind, AvroType]] = {
    Kind.FLOAT: AvroType("float"),
    Kind.DOUBLE: AvroType("double"),
    Kind.YEAR: _INT,
    Kind.DATE: AvroType("int", "date"),
    # Avro's time of day ends at midnight. A TIME goes on for 838 hours, and has a sign.
    Kind.TIME: _LONG,
    Kind.DATETIME: AvroType("long", "local-timestamp-micros"),
    Kind.TIMESTAMP: AvroType("long", "timestamp-micros", zoned=True),
    Kind.UUID: AvroType("string", "uuid"),
    # Symbols of Avro's enum are names, which labels are not.
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON, Kind.INET4, Kind.INET6), _TEXT),
    **dict.fromkeys((Kind.BINARY, Kind.BLOB, Kind.GEOMETRY), _BYTES),
}
