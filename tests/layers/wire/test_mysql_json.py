"""JSON of MySQL: the log's binary form becomes the text that SELECT gives, character by character."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.image import SEQ
from catchment.wire.log import facts
from tests.layers.wire.answers import Session
from tests.layers.wire.documents import as_json, document
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.world.servers.launch import PrivateMySQL

# Values of SQL types inside documents; doubles at the borders of plain and scientific notation.
OPAQUE = (
    "CAST(1.50 AS JSON)",
    "CAST(-0.00000000000000000000000000001 AS JSON)",
    "CAST(.5 AS JSON)",
    "CAST(12345678901234567890123456789012345.123456789012345678901234567890 AS JSON)",
    "CAST(DATE'2020-01-02' AS JSON)",
    "CAST(DATE'0001-01-01' AS JSON)",
    "CAST(TIMESTAMP'2020-01-02 03:04:05.6' AS JSON)",
    "CAST(TIME'-12:34:58.5' AS JSON)",
    "CAST(TIME'12:00:00' AS JSON)",
    "JSON_ARRAY(b'101', x'00ff', 18446744073709551615, -9223372036854775808, 65536, -40000, -32768, 65535)",
    *(
        f"JSON_OBJECT('k', REPEAT(x'01ff', {half}), 'l', REPEAT(x'7f', {half}))"
        for half in (0, 28, 29, 57, 58, 114, 500)
    ),
    "CAST(ST_GeomFromText('POINT(1 2.5)') AS JSON)",
    "JSON_ARRAY(CAST('x' AS BINARY(3)), CAST('ä' AS CHAR CHARACTER SET latin1))",
    "JSON_OBJECT('t', NOW(3), 'c', CURTIME(), 'u', UNIX_TIMESTAMP(NOW(6)))",
    "JSON_ARRAY(REPEAT('x', 70000), 1, 2147483648, JSON_OBJECT('a', REPEAT('y', 20000)))",
    "CAST(CONCAT('[', REPEAT('\"v\", ', 30000), '1]') AS JSON)",
    "CAST(CONCAT(REPEAT('[', 100), REPEAT(']', 100)) AS JSON)",
    "CAST(CONCAT(REPEAT('{\"k\": ', 99), 'null', REPEAT('}', 99)) AS JSON)",
    "JSON_ARRAY(JSON_ARRAY(), JSON_OBJECT(), NULL, TRUE, FALSE)",
    "'null'",
    "'true'",
    "'\"x\"'",
    "'70000'",
    "'-70000'",
    "JSON_OBJECT('', 1, 'a\"b', 2, 'bb', 3, 'b', 4, REPEAT('k', 65535), 5)",
    "CAST(CONCAT('\"', REPEAT('z', 127), '\"') AS JSON)",
    "CAST(CONCAT('\"', REPEAT('z', 128), '\"') AS JSON)",
    "CAST(CONCAT('\"', REPEAT('z', 16384), '\"') AS JSON)",
    *(f"CAST({text} AS JSON)" for text in ("1e0", "-0e0", "1e14", "1e15", "1e16", "1e-14", "1e-15", "1e-16")),
    *(
        f"CAST({text} AS JSON)"
        for text in ("5e-324", "1.7976931348623157e308", "123456789.125e0", "1e15 + .5")
    ),
)


@pytest.fixture
def table(mysql: PrivateMySQL, fresh_schema: Callable[[PrivateServer], str]) -> str:
    name = f"{fresh_schema(mysql)}.j"
    mysql.sql(f"CREATE TABLE {name} (id int PRIMARY KEY AUTO_INCREMENT, a json, b int, c json)")
    return name


def logged(mysql: PrivateMySQL, start: Any, **options: Any) -> list[dict[str, Any]]:
    """The images of all rows since `start`, in order."""
    decoder = decoded(read_dump(mysql, start), start, **options)
    assert not [f for f in decoder.facts if isinstance(f, facts.PartialImage | facts.Statement)]
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    return sorted(rows, key=lambda row: int(row[SEQ]))


def told(session: Session, table: str) -> dict[int, tuple[Any, ...]]:
    """What SELECT gives."""
    with session.cursor() as cursor:
        cursor.execute(f"SELECT id, a, c FROM {table}")
        return {row[0]: row[1:] for row in cursor.fetchall()}


def test_values_of_sql_types(mysql: PrivateMySQL, table: str) -> None:
    start = end_of_log(mysql)
    with mysql.connect() as session:
        with session.cursor() as cursor:
            for expression in OPAQUE:
                cursor.execute(f"INSERT INTO {table} (a, c) VALUES ({expression}, JSON_ARRAY({expression}))"
                               if "REPEAT('[" not in expression and "REPEAT('{" not in expression
                               else f"INSERT INTO {table} (a) VALUES ({expression})")  # fmt: skip
        expected = told(session, table)
    assert {row["id"]: (row["a"], row["c"]) for row in logged(mysql, start)} == expected
    assert len(expected) == len(OPAQUE)


def check_documents(mysql: PrivateMySQL, table: str, seed: int, count: int) -> None:
    rng = random.Random(seed)
    start = end_of_log(mysql)
    with mysql.connect() as session:
        with session.cursor() as cursor:
            rows = [(as_json(document(rng)),) for _ in range(count)]
            cursor.executemany(f"INSERT INTO {table} (a) VALUES (%s)", rows)
        expected = told(session, table)
    found = {row["id"]: (row["a"], row["c"]) for row in logged(mysql, start)}
    assert len(found) == count
    for number, texts in expected.items():
        assert found[number] == texts, (seed, number)


@pytest.mark.parametrize("count", [500, pytest.param(3000, marks=pytest.mark.wide)])
def test_random_documents(mysql: PrivateMySQL, table: str, count: int) -> None:
    check_documents(mysql, table, seed=1, count=count)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_random_documents(mysql: PrivateMySQL, table: str, seed: int) -> None:
    check_documents(mysql, table, seed, count=25_000)
