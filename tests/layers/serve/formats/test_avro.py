"""Container files: what stands in them, read back by the library that wrote them and by one that shares no code."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.model.table import ColumnType, Kind
from catchment.serve.formats.avro import SINCE, AvroFile
from catchment.serve.formats.avro_names import avro_name
from catchment.serve.formats.avro_types import avro_type, decimal_bytes
from catchment.serve.stream.vgtid import written
from tests.layers.serve.formats.containers import (
    NOW_MS,
    JavaJudge,
    Record,
    afters,
    records,
    schema_of,
    told_as_avro,
    turns_of,
)
from tests.layers.serve.formats.told import SHARD
from tests.promises.stream.sources import source_of

UNZONED = "SET SESSION sql_mode = '', time_zone = '+00:00'"


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.wide)], ids=["Python", "Java"]
)
def java(request: pytest.FixtureRequest) -> Iterator[JavaJudge | None]:
    """The library that shares no code, in the wide part."""
    if not request.param:
        yield None
        return
    judge = JavaJudge()
    yield judge
    judge.close()


@dataclass(frozen=True)
class Case:
    """A column, SQL of a value, what Python has of it, and what Java has where that is not the same."""

    declared: str
    sql: str
    python: Any
    java: Any = ...


VALUES: dict[str, Case] = {
    "tiny": Case("TINYINT", "-128", -128),
    "tiny_unsigned": Case("TINYINT UNSIGNED", "255", 255),
    "small": Case("SMALLINT", "-32768", -32768),
    "medium": Case("MEDIUMINT", "8388607", 8388607),
    "whole": Case("INT", "-2147483648", -(2**31)),
    "whole_unsigned": Case("INT UNSIGNED", "4294967295", 2**32 - 1),
    "big": Case("BIGINT", "-9223372036854775808", -(2**63)),
    "big_unsigned": Case("BIGINT UNSIGNED", "18446744073709551615", Decimal(2**64 - 1)),
    "dec": Case("DECIMAL(20,10)", "-0.0000000001", Decimal("-0.0000000001")),
    "dec_same": Case("DECIMAL(20,10)", "1", Decimal("1.0000000000")),
    "dec_1": Case("DECIMAL(1,0)", "-9", Decimal(-9)),
    "dec_38": Case("DECIMAL(38,2)", "-" + "9" * 36 + ".99", Decimal("-" + "9" * 36 + ".99")),
    "dec_65": Case("DECIMAL(65,1)", "1.5", "1.5"),
    "flt": Case("FLOAT", "0.1", 0.10000000149011612, 0.1),
    "dbl": Case("DOUBLE", "0.1", 0.1),
    "bit_1": Case("BIT(1)", "b'1'", 1),
    "bit_12": Case("BIT(12)", "b'100000000011'", 2051),
    "bit_64": Case("BIT(64)", "0xFFFFFFFFFFFFFFFF", Decimal(2**64 - 1)),
    "yr": Case("YEAR", "2026", 2026),
    "day": Case("DATE", "'2018-06-20'", date(2018, 6, 20)),
    "day_first": Case("DATE", "'0001-01-01'", date(1, 1, 1)),
    "day_last": Case("DATE", "'9999-12-31'", date(9999, 12, 31)),
    "tm": Case("TIME(6)", "'-01:02:03.000004'", -3723000004),
    "tm_long": Case("TIME", "'838:59:59'", 3020399000000),
    "dt": Case("DATETIME", "'2018-06-20 06:37:03'", datetime(2018, 6, 20, 6, 37, 3), "2018-06-20T06:37:03"),
    "dt_first": Case("DATETIME(6)", "'0001-01-01'", datetime(1, 1, 1), "0001-01-01T00:00"),
    "dt_6": Case(
        "DATETIME(6)",
        "'9999-12-31 23:59:59.999999'",
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        "9999-12-31T23:59:59.999999",
    ),
    "ts": Case(
        "TIMESTAMP(2) NULL",
        "'2018-06-20 13:37:03.50'",
        datetime(2018, 6, 20, 13, 37, 3, 500000, UTC),
        "2018-06-20T13:37:03.500Z",
    ),
    "txt": Case("VARCHAR(20) CHARSET utf8mb4", "'é\"\\n\\\\😀'", 'é"\n\\😀'),
    "doc": Case("TEXT", "''", ""),
    "bin": Case("BINARY(3)", "x'ff00'", b"\xff\0\0"),
    "blb": Case("BLOB", "x'00ff'", b"\0\xff"),
    "enm": Case("ENUM('a','b-c')", "'b-c'", "b-c"),
    "st": Case("SET('a','b')", "'a,b'", "a,b"),
    "nothing": Case("INT", "NULL", None),
    "zero_day": Case("DATE", "'0000-00-00'", None),
    "zero_moment": Case("DATETIME", "'2026-02-30 00:00:00'", None),
    "spot": Case(
        "POINT",
        "ST_GeomFromText('POINT(1 2)', 3857)",
        bytes.fromhex("110f00000101000000000000000000f03f0000000000000040"),
    ),
    "js": Case("JSON", "'{\"a\": 1}'", '{"a": 1}'),
}
MARIADB_VALUES: dict[str, Case] = {
    "uid": Case(
        "UUID",
        "'123e4567-e89b-12d3-a456-426614174000'",
        UUID("123e4567-e89b-12d3-a456-426614174000"),
    ),
    "ip4": Case("INET4", "'10.0.0.1'", "10.0.0.1"),
    "ip6": Case("INET6", "'::1'", "::1"),
}


def test_each_type(
    shard: PrivateServer, fresh_schema: Callable[..., str], java: JavaJudge | None, tmp_path: Path
) -> None:
    are_carried(VALUES, shard, fresh_schema(shard), java, tmp_path / "file.avro")


@pytest.mark.mariadb("they are its types")
def test_each_type_of_mariadb(
    shard: PrivateServer, fresh_schema: Callable[..., str], java: JavaJudge | None, tmp_path: Path
) -> None:
    are_carried(MARIADB_VALUES, shard, fresh_schema(shard), java, tmp_path / "file.avro")


def are_carried(
    cases: dict[str, Case], shard: PrivateServer, schema: str, java: JavaJudge | None, path: Path
) -> None:
    """A value and NULL of each, as a chunk brings it and as the log does, for both readers."""
    columns = ", ".join(f"`{name}` {case.declared}" for name, case in cases.items())
    inserted = ", ".join(case.sql for case in cases.values())
    shard.sql(
        UNZONED,
        f"CREATE TABLE t (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO t VALUES (1, {inserted})",
        "INSERT INTO t (id) VALUES (2)",
        database=schema,
    )
    more = [UNZONED, f"INSERT INTO t VALUES (3, {inserted})", "INSERT INTO t (id) VALUES (4)"]
    path.write_bytes(told_as_avro(shard, schema, *more, until=has_come(4)))
    full, empty = {name: case.python for name, case in cases.items()}, dict.fromkeys(cases)
    assert afters(path.read_bytes()) == [
        {"id": number} | row for number, row in enumerate([full, empty, full, empty], 1)
    ]
    if java is None:
        return
    full = {name: as_java(case) for name, case in cases.items()}
    assert java.afters(path) == [
        {"id": number} | row for number, row in enumerate([full, empty, full, empty], 1)
    ]


def as_java(case: Case) -> Any:
    """Days, times and UUIDs as Java's text."""
    if case.java is not ...:
        return case.java
    return str(case.python) if isinstance(case.python, date | UUID) else case.python


def has_come(number: int) -> Callable[[Record], bool]:
    return lambda record: record["after"] is not None and record["after"].get("id") == number


def test_each_kind_has_a_type() -> None:
    """One that a later server brings stops here."""
    for kind in Kind:
        assert avro_type(ColumnType(kind, length=5)).plain, kind


def test_a_decimal_has_as_many_bytes_as_it_needs() -> None:
    for digits in range(1, 39):
        size = decimal_bytes(digits)
        most = 10**digits - 1
        assert int.from_bytes((-most).to_bytes(size, "big", signed=True), "big", signed=True) == -most
        with pytest.raises(OverflowError):
            most.to_bytes(size - 1, "big", signed=True)


def test_the_envelope(shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    """It is Debezium's; the last row of each state has its vgtid."""
    schema = fresh_schema(shard)
    shard.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)", database=schema
    )
    changes = [
        "INSERT INTO t VALUES (3, 3)",
        "UPDATE t SET v = 4 WHERE id = 3",
        "UPDATE t SET id = 5 WHERE id = 3",
        "DELETE FROM t WHERE id = 5",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (9, 9)",
    ]
    file = told_as_avro(shard, schema, *changes, until=has_come(9))
    found = records(file)
    three, four, five = {"id": 3, "v": 3}, {"id": 3, "v": 4}, {"id": 5, "v": 4}
    assert [(one["op"], one["before"], one["after"]) for one in found] == [
        ("r", None, {"id": 1, "v": 1}),
        ("r", None, {"id": 2, "v": 2}),
        ("c", None, three),
        ("u", three, four),
        ("d", four, None),
        ("c", None, five),
        ("d", five, None),
        ("t", None, None),
        ("c", None, {"id": 9, "v": 9}),
    ]
    assert [one["source"]["snapshot"] for one in found[:3]] == ["true", "last", "false"]
    assert {(one["source"]["name"], one["source"]["db"], one["source"]["table"]) for one in found} == {
        ("ks.-80", schema, "t")
    }
    assert found[0]["vgtid"] is None
    assert all(found[at]["vgtid"] for at in (1, -1))
    assert {one["ts_ms"] for one in found} == {NOW_MS}
    (row,) = schema_of(file)["fields"][0]["type"][1:]
    assert (row["name"], row["key"], row["source.table"]) == (f"{schema}.t", ["id"], "t")


def test_hostile_names(
    shard: PrivateServer, fresh_schema: Callable[..., str], java: JavaJudge | None, tmp_path: Path
) -> None:
    """Tables whose names would be one without a code, and columns that Avro could not name."""
    schema = fresh_schema(shard)
    tables = ["a b", "a.b", "a_b", "a_x0020_b", "1", "ü", "Envelope", 'q"']
    columns = ["c d", "c.d", "c_d", "c_x0020_d", "2", "ö", "-type", "name", "null"]
    for number, table in enumerate(tables):
        declared = ", ".join(f"`{column}` INT DEFAULT {number}" for column in columns)
        shard.sql(f"CREATE TABLE `{table}` (id INT, {declared}, PRIMARY KEY (id, `c d`))", database=schema)
        shard.sql(f"INSERT INTO `{table}` (id) VALUES ({number})", database=schema)
    change = 'UPDATE `q"` SET id = id + 100'
    file = told_as_avro(shard, schema, change, until=has_come(100 + len(tables) - 1))
    named = {avro_name(column) for column in columns}
    assert len(named) == len(columns)
    values = {row["id"]: row for row in afters(file)}
    assert values == {
        number: {"id": number} | dict.fromkeys(named, number % 100)
        for number in [*range(len(tables)), 100 + len(tables) - 1]
    } | {107: {"id": 107} | dict.fromkeys(named, 7)}
    rows = schema_of(file)["fields"][0]["type"][1:]
    assert {row["source.table"] for row in rows} == set(tables)
    assert {row["name"] for row in rows} == {f"{schema}.{avro_name(table)}" for table in tables}
    assert {field["source.column"] for row in rows for field in row["fields"]} == {"id", *columns}
    (tmp_path / "file.avro").write_bytes(file)
    if java is not None:
        assert len(java.afters(tmp_path / "file.avro")) == len(tables) + 1


def test_ddl_and_a_new_table_need_another_file(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    """It begins behind the last vgtid, has a record for each version, and nothing comes twice or is missed."""
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", database=schema)

    def next_file(since: str | None, last: int, *then: str) -> tuple[bytes, str]:
        """The file from a vgtid on. Once a row has come, statements are said, and it goes on until it cannot."""
        whole, vgtid, left = b"", "", list(then)
        with catchment.stream(source_of({SHARD: shard}), rules=[f"{schema}.*"], vgtid=since) as stream:
            file = AvroFile(stream.tables, lambda: NOW_MS)
            for turn in turns_of(stream):
                if file.lacking(turn):
                    assert not left
                    return whole, vgtid
                whole += b"".join(file.blocks(turn))
                vgtid = written(turn.stands)
                if any(has_come(last)(one) for one in records(whole)):
                    if not then:
                        return whole, vgtid
                    if left:
                        shard.sql(*left, database=schema)
                    left = []
        raise AssertionError("a stream has no end")

    first, behind_first = next_file(None, 1)
    altering = ["INSERT INTO t VALUES (2, 2)", "ALTER TABLE t ADD w INT", "INSERT INTO t VALUES (3, 3, 3)"]
    shard.sql(*altering, database=schema)
    create = "CREATE TABLE u (id INT PRIMARY KEY)"
    second, behind_second = next_file(behind_first, 3, create, "INSERT INTO u VALUES (4)")
    third, _ = next_file(behind_second, 4)
    files = [first, second, third]
    assert [[(row["id"], *row) for row in afters(file)] for file in files] == [
        [(1, "id", "v")],
        [(2, "id", "v"), (3, "id", "v", "w")],
        [(4, "id")],
    ]
    names = [[row["name"] for row in schema_of(file)["fields"][0]["type"][1:]] for file in files]
    assert names == [[f"{schema}.t"], [f"{schema}.t", f"{schema}.v2.t_v2"], [f"{schema}.t", f"{schema}.u"]]
    begun = [fastavro.reader(io.BytesIO(file)).metadata[SINCE] for file in files[1:]]
    assert begun == [behind_first, behind_second]
    assert records(first)[-1]["vgtid"] == behind_first
