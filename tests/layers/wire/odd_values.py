"""A table with odd values of all types, and what the server says of them in text, by other functions."""

import datetime as dt
from decimal import Decimal
from typing import Any

from catchment.model.table import INTEGERS, Column, ColumnType, Kind
from tests.layers.wire.answers import Session, columns_of, run

# Column type -> literals; rows take them in turn, and one row is all NULL.
ODD: dict[str, list[str]] = {
    "tinyint": ["-128", "127", "0", "-1"],
    "tinyint unsigned": ["0", "255", "128"],
    "smallint": ["-32768", "32767", "-1"],
    "smallint unsigned": ["65535", "32768", "0"],
    "mediumint": ["-8388608", "8388607", "-1"],
    "mediumint unsigned": ["16777215", "8388608"],
    "int": ["-2147483648", "2147483647", "-1"],
    "int(9) unsigned zerofill": ["4294967295", "2147483648", "7"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "-1"],
    "bigint unsigned": ["18446744073709551615", "9223372036854775808", "0"],
    "float": ["3.4028235e38", "-1.1754944e-38", "16777217", "0.1", "-0e0", "1e-45"],
    "double": ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "-0e0", "5e-324"],
    "decimal(1,0)": ["-9", "9", "0"],
    "decimal(10,2)": ["-99999999.99", "0.01", "-0.01", "12"],
    "decimal(38,38)": ["0." + "9" * 38, "-0." + "9" * 38, "0." + "0" * 37 + "1"],
    "decimal(38,0)": ["9" * 38, "-" + "9" * 38, "1" + "0" * 19],
    "decimal(20,5) unsigned zerofill": ["1.5", "999999999999999.99999"],
    "decimal(65,30)": ["9" * 35 + "." + "9" * 30, "-0." + "0" * 29 + "1", "0"],
    "decimal(40,2) unsigned zerofill": ["0.25", "12.5", "0"],
    "bit(1)": ["b'1'", "b'0'"],
    "bit(9)": ["b'111111111'", "b'100000000'"],
    "bit(63)": ["9223372036854775807", "1"],
    "bit(64)": ["18446744073709551615", "1"],
    "year": ["1901", "2155", "0", "2026"],
    "date": [
        "'0000-00-00'",
        "'2024-02-29'",
        "'0001-01-01'",
        "'9999-12-31'",
        "'2023-00-10'",
        "'2023-10-00'",
        "'2023-02-30'",
        "'1969-12-31'",
        "'0000-01-01'",
    ],
    "time": ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'24:00:00'"],
    "time(6)": ["'-838:59:59.999999'", "'-00:00:00.000001'", "'23:59:59.999999'", "'838:59:59.999999'"],
    "time(2)": ["'-01:02:03.45'", "'10:00:00'"],
    "datetime": [
        "'0000-00-00 00:00:00'",
        "'9999-12-31 23:59:59'",
        "'2000-02-29 00:00:00'",
        "'2023-04-31 01:00:00'",
    ],
    "datetime(6)": [
        "'1000-01-01 00:00:00.000001'",
        "'9999-12-31 23:59:59.999999'",
        "'2023-00-00 10:00:00.5'",
    ],
    "datetime(3)": ["'1969-12-31 23:59:59.999'", "'2024-02-29 12:00:00'"],
    "timestamp null": ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    "timestamp(6) null": [
        "'1970-01-01 00:00:01.000001'",
        "'2038-01-19 03:14:07.999999'",
        "'0000-00-00 00:00:00'",
    ],
    "char(8)": ["'a  '", "''", "'été😀'", "'x\\0y'"],
    "varchar(300)": ["'a  '", "''", "'😀'", "repeat('é', 300)", "repeat('z', 250)", "repeat('z', 251)"],
    "varchar(20) character set latin1": ["'été €'", "''", "char(129 using latin1)"],
    "varchar(20) character set utf8mb3": ["'été €'", "''"],
    "char(5) character set ascii": ["'abc'", "''"],
    "text": ["repeat('x', 65535)", "''", "'\\\\'"],
    "longtext character set latin1": ["repeat('é', 70000)", "''"],
    "json": ["'{\"a\": [1, null]}'", "'[]'"],
    "binary(4)": ["'ab'", "''", "x'00ff00ff'"],
    "varbinary(300)": ["x'00'", "''", "x'ff00'", "repeat(x'ff', 300)"],
    "blob": ["x'00fe00'", "''", "repeat('b', 65535)"],
    "mediumblob": ["repeat('b', 70000)", "''"],
    "varchar(30) compressed": ["'a'", "''", "repeat('é', 30)"],
    "varchar(63) compressed": ["repeat('z', 63)", "'b  '"],
    "text compressed": ["repeat('xy', 3000)", "''", "'é'"],
    "longtext compressed character set gbk": ["repeat('中a', 30000)", "''", "'\\0'"],
    "varbinary(300) compressed": ["repeat(x'00', 300)", "''", "x'00'", "x'89'"],
    "blob compressed": ["repeat('b', 65000)", "''"],
    "uuid": [
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'123e4567-e89b-12d3-a456-426614174000'",
        "'019b1234-5678-7abc-8def-012345678900'",
    ],
    "inet4": ["'0.0.0.0'", "'255.255.255.255'", "'10.0.0.0'", "'1.23.0.4'"],
    "inet6": ["'::'", "'::1'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", "'2001:db8::'", "'1:0:2:0:0:3:0:0'"],
    "geometry": ["ST_GeomFromText('POINT(1 -2)', 4326)", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"],
    "point": ["POINT(0, 0)", "POINT(1e308, -5e-324)"],
    "polygon": ["ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))', 4294967295)"],
    "char(30) character set sjis": ["'ソ表'", "'ｱ  '", "_sjis x'815c815f'"],
    "varchar(30) character set big5": ["_big5 x'a15aa1c3'", "_big5 x'f9d6'", "''"],
    "text character set eucjpms": ["_eucjpms x'8ff4d7adb58edf'", "'～'"],
    "char(9) character set ucs2": ["'é '", "'\uffff'", "''"],
    "varchar(9) character set utf16": ["'😀é'", "''"],
    "text character set utf16le": ["'😀é'", "'a'"],
    "char(255) character set utf32": ["'😀é'", "repeat('a', 255)"],
    "varchar(9) character set swe7": ["_swe7 x'5b5c5d'", "'abc'"],
    "enum('表','b') character set sjis": ["'表'", "2", "0"],
    "set('é','b') character set ucs2": ["'é,b'", "''"],
    "int as (id % 1000 + 7) virtual": ["default"],
    "varchar(20) as (concat(id % 1000, 'é')) stored": ["default"],
    "int invisible default 5": ["default", "-1"],
    "float(7,3) unsigned": ["1234.567", "0.001"],
    "double(20,5) zerofill": ["1.5", "99999999999.99999"],
    "enum('a','é','it''s','') ": ["'a'", "'é'", "'it''s'", "0", "''"],
    "set('x','ü','z') character set latin1": ["'x,z'", "''", "'ü'"],
}


def fill(session: Session, schema: str) -> tuple[Column, ...]:
    """A table with one column per type, one row per literal of the longest list and a row of NULLs."""
    definitions = ", ".join(f"c{i} {kind}" for i, kind in enumerate(ODD))
    names = ", ".join(f"c{i}" for i in range(len(ODD)))
    run(session, f"CREATE TABLE {schema}.odd (id int PRIMARY KEY, {definitions})")
    for row in range(max(map(len, ODD.values()))):
        values = ", ".join(literals[row % len(literals)] for literals in ODD.values())
        run(session, f"INSERT INTO {schema}.odd (id, {names}) VALUES ({row}, {values})")
    run(session, f"INSERT INTO {schema}.odd (id) VALUES (100)")
    return columns_of(session, schema, "odd")


def moment(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:  # zero or no such day
        return None


def microseconds(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    total = (int(hours) * 60 + int(minutes)) * 60 * 10**6 + int(minutes) * 0 + int(Decimal(seconds) * 10**6)
    return -total if text.startswith("-") else total


def said(session: Session, schema: str, column: Column) -> list[Any]:
    """The column's values as the server tells them in text, by other functions."""
    kind, name = column.type.kind, column.name
    as_text: dict[Kind, str] = {
        Kind.BIT: f"{name} + 0",
        Kind.FLOAT: f"HEX(WEIGHT_STRING({name}))",
        **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET), f"HEX(CONVERT({name} USING utf8mb4))"),
        **dict.fromkeys((Kind.BINARY, Kind.BLOB, Kind.GEOMETRY), f"HEX({name})"),
    }
    rows = run(session, f"SELECT {as_text.get(kind, f'CAST({name} AS CHAR)')} FROM {schema}.odd ORDER BY id")
    texts = [None if row[0] is None else str(row[0]) for row in rows]
    return [None if text is None else value_of(column.type, text) for text in texts]


def value_of(column: ColumnType, text: str) -> Any:  # noqa: PLR0911
    kind = column.kind
    if kind in (Kind.TEXT, Kind.ENUM, Kind.SET):
        return bytes.fromhex(text).decode()
    if kind in (Kind.UUID, Kind.INET4, Kind.INET6):
        return text
    if kind in (Kind.BINARY, Kind.BLOB, Kind.GEOMETRY):
        return bytes.fromhex(text)
    if kind is Kind.DECIMAL and column.length > 38:
        return (text.lstrip("0") or "0") if text.lstrip("0")[:1] != "." else "0" + text.lstrip("0")
    if kind is Kind.DECIMAL or (kind in (Kind.BIGINT, Kind.BIT) and (column.unsigned or column.length == 64)):
        return Decimal(text)
    if kind in INTEGERS or kind in (Kind.YEAR, Kind.BIT):
        return int(text)
    if kind is Kind.TIME:
        return microseconds(text)
    found = moment(text)
    if kind is Kind.DATE:
        return found and found.date()
    return found.replace(tzinfo=dt.UTC) if found and kind is Kind.TIMESTAMP else found
