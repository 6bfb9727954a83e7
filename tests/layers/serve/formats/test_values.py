"""A value of each type in each format, as a chunk brings it and as the log does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import ColumnType, Kind
from catchment.serve.formats.debezium import DebeziumLines
from catchment.serve.formats.debezium_values import debezium_writer
from catchment.serve.formats.json_lines import JsonLines, json_writer
from catchment.serve.formats.table_lines import TableLines, text_writer
from catchment.serve.stream.events import Row
from tests.layers.serve.formats.told import is_row, lines_of, told


@dataclass(frozen=True)
class Case:
    """A column, SQL of a value, and what each format has of it; `debezium` only where it is not `json`."""

    declared: str
    sql: str
    json: Any
    text: str
    debezium: Any = ...


CASES = {
    "tiny": Case("TINYINT", "-128", -128, "-128"),
    "tiny_unsigned": Case("TINYINT UNSIGNED", "255", 255, "255"),
    "small": Case("SMALLINT", "-32768", -32768, "-32768"),
    "medium": Case("MEDIUMINT", "8388607", 8388607, "8388607"),
    "whole": Case("INT", "-7", -7, "-7"),
    "big": Case("BIGINT", "9007199254740993", 9007199254740993, "9007199254740993"),
    "big_unsigned": Case(
        "BIGINT UNSIGNED", "18446744073709551615", 18446744073709551615, "18446744073709551615"
    ),
    "dec": Case("DECIMAL(20,10)", "0", "0.0000000000", "0.0000000000"),
    "dec_38": Case(
        "DECIMAL(38,2)",
        "-123456789012345678901234567890123456.70",
        "-123456789012345678901234567890123456.70",
        "-123456789012345678901234567890123456.70",
    ),
    "dec_65": Case("DECIMAL(65,1)", "1.5", "1.5", "1.5"),
    "flt": Case("FLOAT", "0.1", 0.1, "0.1"),
    "dbl": Case("DOUBLE", "0.1", 0.1, "0.1"),
    "bit_1": Case("BIT(1)", "b'1'", 1, "1", True),
    "bit_12": Case("BIT(12)", "b'100000000011'", 2051, "2051", "Awg="),
    "bit_64": Case("BIT(64)", "b'1'", 1, "1", "AQAAAAAAAAA="),
    "yr": Case("YEAR", "2026", 2026, "2026"),
    "day": Case("DATE", "'2018-06-20'", "2018-06-20", "2018-06-20", 17702),
    "day_old": Case("DATE", "'1969-12-31'", "1969-12-31", "1969-12-31", -1),
    "tm": Case("TIME(6)", "'-01:02:03.000004'", -3723000004, "-01:02:03.000004"),
    "tm_long": Case("TIME", "'838:59:59'", 3020399000000, "838:59:59"),
    "dt": Case(
        "DATETIME", "'2018-06-20 06:37:03'", "2018-06-20T06:37:03", "2018-06-20 06:37:03", 1529476623000
    ),
    "dt_3": Case(
        "DATETIME(3)",
        "'2018-06-20 06:37:03.120'",
        "2018-06-20T06:37:03.120",
        "2018-06-20 06:37:03.120",
        1529476623120,
    ),
    "dt_6": Case(
        "DATETIME(6)",
        "'1969-12-31 23:59:59.999999'",
        "1969-12-31T23:59:59.999999",
        "1969-12-31 23:59:59.999999",
        -1,
    ),
    "ts": Case("TIMESTAMP NULL", "'2018-06-20 13:37:03'", "2018-06-20T13:37:03Z", "2018-06-20 13:37:03"),
    "ts_2": Case(
        "TIMESTAMP(2) NULL",
        "'2018-06-20 13:37:03.50'",
        "2018-06-20T13:37:03.50Z",
        "2018-06-20 13:37:03.50",
    ),
    "txt": Case("VARCHAR(20) CHARSET utf8mb4", "'é\"\\n\\\\'", 'é"\n\\', "'é\"\\n\\\\'"),
    "doc": Case("TEXT", "''", "", "''"),
    "bin": Case("BINARY(3)", "x'ff00'", "/wAA", "0xff0000"),
    "blb": Case("BLOB", "x'00ff'", "AP8=", "0x00ff"),
    "enm": Case("ENUM('a','b')", "'b'", "b", "'b'"),
    "st": Case("SET('a','b')", "'a,b'", "a,b", "'a,b'"),
    "nothing": Case("INT", "NULL", None, "NULL"),
    "zero_day": Case("DATE", "'0000-00-00'", None, "NULL"),
    "spot": Case(
        "POINT",
        "ST_GeomFromText('POINT(1 2)', 0)",
        "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==",
        "0x000000000101000000000000000000f03f0000000000000040",
        {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None},
    ),
    "globe": Case(
        "POINT",
        "ST_GeomFromText('POINT(1 2)', 4326)",
        "5hAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==",
        "0xe61000000101000000000000000000f03f0000000000000040",
        {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": 4326},
    ),
    "uid": Case(
        "UUID",
        "'123E4567-e89b-12d3-a456-426614174000'",
        "123e4567-e89b-12d3-a456-426614174000",
        "'123e4567-e89b-12d3-a456-426614174000'",
    ),
    "ip4": Case("INET4", "'10.0.0.1'", "10.0.0.1", "'10.0.0.1'"),
    "ip6": Case("INET6", "'::1'", "::1", "'::1'"),
}
# JSON is MySQL's alone; it is text in all formats.
SHOWN = set(Kind) - {Kind.JSON}


@pytest.mark.mariadb("UUID, INET4 and INET6 are its types")
def test_each_type(shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    schema = fresh_schema(shard)
    declared = ", ".join(f"`{name}` {case.declared}" for name, case in CASES.items())
    values = ", ".join(case.sql for case in CASES.values())
    insert = "INSERT INTO t VALUES ({}, " + values + ")"
    session = "SET SESSION sql_mode = '', time_zone = '+00:00'"
    shard.sql(session, f"CREATE TABLE t (id INT PRIMARY KEY, {declared})", insert.format(1), database=schema)
    events = told(shard, schema, session, insert.format(2), done=is_row(id=2))
    rows = [json.loads(line) for line in lines_of(JsonLines(), events)]
    messages = [json.loads(line) for line in lines_of(DebeziumLines(lambda: 0), events)]
    lines = lines_of(TableLines(), events)
    copied, logged = (row["after"] for row in rows if row["type"] == "row")
    enveloped = [message["value"]["after"] for message in messages]
    for one in (copied, logged):
        assert {name: one[name] for name in CASES} == {name: case.json for name, case in CASES.items()}
    debezium = {name: case.json if case.debezium is ... else case.debezium for name, case in CASES.items()}
    assert [{name: one[name] for name in CASES} for one in enveloped] == [debezium, debezium]
    assert isinstance(enveloped[0]["bit_1"], bool)
    shown = " ".join(f"{name}={case.text}" for name, case in CASES.items())
    assert [line.endswith(f"  {shown}") for line in lines] == [True, True], lines
    row = next(event for event in events if isinstance(event, Row))
    fields = [event for event in events if type(event).__name__ == "Field"]
    assert row.after is not None
    assert {column.type.kind for column in fields[0].columns} == SHOWN  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_has_a_writer(kind: Kind) -> None:
    """One that a later server brings stops here, and is not told as what it is not."""
    for writer_of in (json_writer, debezium_writer, text_writer):
        assert callable(writer_of(ColumnType(kind)))
