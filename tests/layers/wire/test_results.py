"""Result sets decoded, against what a server says of the same values in other ways."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import ServerSaid, SourceError
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.packets.results import ResultDecoder
from tests.layers.wire.answers import Session, columns_of, run, select, select_into


def test_a_refused_statement(session: Session) -> None:
    number = [Column("a", ColumnType(Kind.INT))]
    with pytest.raises(ServerSaid, match="no_such_table") as refused:
        select(session, "SELECT a FROM mysql.no_such_table", number)
    assert refused.value.code == 1146


def test_an_error_between_rows_is_no_end(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    run(
        session,
        f"CREATE TABLE {schema}.t (id int PRIMARY KEY)",
        f"INSERT INTO {schema}.t SELECT seq FROM {schema}.seq_1_to_20000",
    )
    # the subquery returns two rows for the last id only, when the rows before are on their way
    subquery = f"SELECT seq FROM {schema}.seq_1_to_2 WHERE t.id = 20000 OR seq = 1"
    sql = f"SELECT id, ({subquery}) b FROM {schema}.t ORDER BY id"
    columns = [Column("id", ColumnType(Kind.INT)), Column("b", ColumnType(Kind.BIGINT, unsigned=True))]
    decoder = ResultDecoder(columns)
    with pytest.raises(ServerSaid, match="more than 1 row") as failed:
        select_into(decoder, session, sql)
    assert failed.value.code == 1242
    assert decoder.rows == 19999
    assert not decoder.ended


OTHERS = [
    (["a int", "b varchar(9)"], "has 3 columns, expected 2"),
    (["a int", "b varchar(9)", "d blob"], "column 3 of the result set is 'c', expected 'd'"),
    (
        ["a bigint", "b varchar(9)", "c blob"],
        "column 1 of the result set, 'a', has type code 3, expected bigint",
    ),
    (["a int unsigned", "b varchar(9)", "c blob"], "'a', is signed, expected unsigned int"),
    (["a int", "b varbinary(9)", "c blob"], "'b', is text, expected blob"),
    (["a int", "b enum('x')", "c blob"], "'b', has type code 253, expected enum"),
    (["a int", "b varchar(9)", "c text"], "'c', comes in binary"),
]


def test_other_columns_than_expected(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], subtests: pytest.Subtests
) -> None:
    schema = fresh_schema(shard)
    run(session, f"CREATE TABLE {schema}.found (a int, b varchar(9), c blob)")
    for number, (expected, message) in enumerate(OTHERS):
        run(session, f"CREATE TABLE {schema}.wanted{number} ({', '.join(expected)})")
        with subtests.test(message), shard.connect() as other:
            columns = columns_of(other, schema, f"wanted{number}")
            with pytest.raises(SourceError, match=message):
                select(other, f"SELECT * FROM {schema}.found", columns)


def test_a_session_in_another_character_set(shard: PrivateServer) -> None:
    with shard.connect(charset="latin1") as other, pytest.raises(SourceError, match="comes in latin1"):
        select(other, "SELECT 'é' a", [Column("a", ColumnType(Kind.TEXT, charset="latin1"))])


def test_values_of_more_than_16_megabytes() -> None:
    part = 0xFFFFFF
    sizes = [part - 20, part - 5, part - 4, part - 3, part, 2 * part - 5, 40_000_000, 3]
    columns = [Column("n", ColumnType(Kind.BIGINT)), Column("b", ColumnType(Kind.BLOB))]
    with PrivateServer(settings={"max_allowed_packet": "64M"}) as server, server.connect() as session:
        for size in sizes:
            sql = "SELECT CAST(? AS SIGNED) n, REPEAT(x'fe', ?) b UNION ALL SELECT 1, ''"
            batch = select(session, sql, columns, [size, size])[0].take_batch()
            assert batch.column(0).to_pylist() == [size, 1]
            assert batch.column(1).cast(pa.large_binary()).to_pylist() == [b"\xfe" * size, b""]


def test_memory_of_a_feed_may_be_reused(session: Session) -> None:
    text = [Column("x", ColumnType(Kind.TEXT, charset="utf8mb4"))]
    decoder, answer = select(session, "SELECT REPEAT('ab', 3000) x UNION ALL SELECT 'c'", text)
    expected = decoder.take_batch()
    decoder = ResultDecoder(text)
    memory = bytearray(1000)
    for start in range(0, len(answer), len(memory)):
        piece = answer[start : start + len(memory)]
        memory[: len(piece)] = piece
        decoder.feed(memoryview(memory)[: len(piece)])
        memory[:] = b"\xff" * len(memory)
    assert decoder.ended
    assert decoder.take_batch().equals(expected)


def test_columns_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="not 0"):
        ResultDecoder([])
