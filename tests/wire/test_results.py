"""The decoder of result sets against what a server says of the same values in other ways."""

import datetime as dt
import random
import resource
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptResult, ServerSaid, SourceError, Unsupported
from catchment.model.table import INTEGERS, Column, ColumnType, Kind
from catchment.wire.results import ResultDecoder
from catchment.wire.statements import execute_packet
from tests.wire.answers import Session, columns_of, decode, perform, select, select_into

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
    "enum('a','é','it''s','') ": ["'a'", "'é'", "'it''s'", "0", "''"],
    "set('x','ü','z') character set latin1": ["'x,z'", "''", "'ü'"],
}


@pytest.fixture(scope="module")
def session(shard: PrivateServer) -> Iterator[Session]:
    connection = shard.connect(
        conv={}, init_command="SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"
    )
    yield connection
    connection.close()


def run(session: Session, *statements: str) -> list[tuple[Any, ...]]:
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def fill(session: Session, schema: str) -> tuple[Column, ...]:
    """A table with one column per type, one row per literal of the longest list and a row of NULLs."""
    definitions = ", ".join(f"c{i} {kind}" for i, kind in enumerate(ODD))
    run(session, f"CREATE TABLE {schema}.odd (id int PRIMARY KEY, {definitions})")
    for row in range(max(map(len, ODD.values()))):
        values = ", ".join(literals[row % len(literals)] for literals in ODD.values())
        run(session, f"INSERT INTO {schema}.odd VALUES ({row}, {values})")
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
        **dict.fromkeys((Kind.BINARY, Kind.BLOB), f"HEX({name})"),
    }
    rows = run(session, f"SELECT {as_text.get(kind, f'CAST({name} AS CHAR)')} FROM {schema}.odd ORDER BY id")
    texts = [None if row[0] is None else str(row[0]) for row in rows]
    return [None if text is None else value_of(column.type, text) for text in texts]


def value_of(column: ColumnType, text: str) -> Any:  # noqa: PLR0911
    kind = column.kind
    if kind in (Kind.TEXT, Kind.ENUM, Kind.SET):
        return bytes.fromhex(text).decode()
    if kind in (Kind.BINARY, Kind.BLOB):
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


def bits(values: list[Any], form: str) -> list[Any]:
    return [None if value is None else struct.pack(form, value) for value in values]


def test_odd_values_of_all_types(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    columns = fill(session, schema)
    decoder, _ = select(session, f"SELECT * FROM {schema}.odd ORDER BY id", columns)
    assert (decoder.rows, decoder.warning_count) == (10, 0)
    assert decoder.status & 0x0002  # SERVER_STATUS_AUTOCOMMIT
    batch = decoder.take_batch()
    batch.validate(full=True)
    for column in columns:
        values = batch.column(column.name).to_pylist()
        if column.type.kind in (Kind.FLOAT, Kind.DOUBLE):
            form = "<f" if column.type.kind is Kind.FLOAT else "<d"
            literals = list(ODD.values())[int(column.name[1:])]
            inserted = [
                float(literals[row % len(literals)]) + 0.0 for row in range(9)
            ]  # -0.0 is stored as 0.0
            assert bits(values, form) == bits([*inserted, None], form), column
        else:
            assert values == said(session, schema, column), column


NOW = dt.datetime(2026, 11, 20, 1, 2, 3, 456789)


@pytest.mark.parametrize(
    "row",
    [
        (-(2**63), 2**64 - 1, "", b"", Decimal("-0.0000000001"), NOW, dt.date(1, 1, 1)),
        (2**63 - 1, 2**63, "a'\\?😀\0", bytes(range(256)), Decimal(10) ** 27, dt.datetime(1, 1, 1), None),
        (0, 0, "é" * 40_000, b"\0" * 300, Decimal("0.5"), NOW, dt.date(2024, 2, 29)),
        (None, None, None, None, None, None, None),
        (-1, 5, "y" * 251, b"z" * 70_000, Decimal("1E3"), NOW, dt.date(9999, 12, 31)),
    ],
    ids=["least", "most", "long", "null", "longer"],
)
def test_parameters_arrive_as_they_are(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], row: tuple[Any, ...]
) -> None:
    schema = fresh_schema(shard)
    run(
        session,
        f"CREATE TABLE {schema}.p (i bigint, u bigint unsigned, t longtext, b longblob,"
        " d decimal(38,10), m datetime(6), e date)",
    )
    perform(session, f"INSERT INTO {schema}.p VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    names = [name for name, value in zip("iutbdme", row, strict=True) if value is not None]
    where = " AND ".join(f"{name} = ?" for name in names) or "i IS NULL"
    columns = columns_of(session, schema, "p")
    decoder, _ = select(
        session, f"SELECT * FROM {schema}.p WHERE {where}", columns, [v for v in row if v is not None]
    )
    assert [tuple(found.values()) for found in decoder.take_batch().to_pylist()] == [row]


@pytest.mark.parametrize(
    "wrong", [2**64, -(2**63) - 1, 1.5, Decimal("NaN"), NOW.replace(tzinfo=dt.UTC)], ids=repr
)
def test_parameters_that_cannot_be_sent(wrong: Any) -> None:
    with pytest.raises(ValueError, match="a statement takes"):
        execute_packet(1, [wrong])


def test_a_refused_statement(session: Session) -> None:
    number = [Column("a", ColumnType(Kind.INT))]
    with pytest.raises(ServerSaid, match="no_such_table") as refused:
        select(session, "SELECT a FROM mysql.no_such_table", number)
    assert refused.value.code == 1146


@pytest.fixture(scope="module")
def small(session: Session) -> tuple[tuple[Column, ...], bytes, pa.RecordBatch]:
    """Columns of several kinds, the server's answer for a few rows, and the rows."""
    run(
        session,
        "CREATE OR REPLACE DATABASE wire_results",
        "CREATE TABLE wire_results.s (a int, b varchar(300), c decimal(9,3), d datetime(6), e time(6),"
        " f bit(9), g blob, h date, i bigint unsigned, j double, k enum('x','y'))",
        "INSERT INTO wire_results.s VALUES (1, 'été', -1.5, '2024-02-29 01:02:03.000004', '-10:00:00.5',"
        " b'101', repeat('g', 300), '2024-02-29', 18446744073709551615, 0.1, 'y')",
        "INSERT INTO wire_results.s VALUES (NULL, '', 0, '2024-02-29', '00:00:00', 0, '',"
        " '0000-00-00', 0, 1, 'x')",
        "INSERT INTO wire_results.s (a) VALUES (3)",
    )
    columns = columns_of(session, "wire_results", "s")
    decoder, answer = select(session, "SELECT * FROM wire_results.s", columns)
    return columns, answer, decoder.take_batch()


Small = tuple[tuple[Column, ...], bytes, pa.RecordBatch]


def test_every_cut_gives_the_same_rows(small: Small) -> None:
    columns, answer, batch = small
    assert batch.num_rows == 3
    for cut in range(len(answer) + 1):
        assert decode(columns, [answer[:cut], answer[cut:]]).equals(batch)
    assert decode(columns, [bytes([byte]) for byte in answer]).equals(batch)


def test_no_part_of_an_answer_is_an_end(small: Small) -> None:
    columns, answer, _ = small
    for size in range(len(answer)):
        decoder = ResultDecoder(columns)
        decoder.feed(answer[:size])
        assert not decoder.ended


def test_bytes_after_the_end(small: Small) -> None:
    columns, answer, _ = small
    for tail in (b"\0", b"\x01\0\0\x10\0", answer):
        decoder = ResultDecoder(columns)
        with pytest.raises(CorruptResult):
            decoder.feed(answer + tail)
        assert not decoder.ended
        with pytest.raises(CorruptResult, match="broke off before"):
            decoder.feed(b"\0")


def packets_of(answer: bytes) -> list[bytes]:
    payloads = []
    while answer:
        size = int.from_bytes(answer[:3], "little")
        payloads.append(answer[4 : 4 + size])
        answer = answer[4 + size :]
    return payloads


def answer_of(payloads: list[bytes]) -> bytes:
    return b"".join(
        len(payload).to_bytes(3, "little") + bytes([(number + 1) & 0xFF]) + payload
        for number, payload in enumerate(payloads)
    )


def test_without_eof_packets(small: Small) -> None:
    columns, answer, batch = small
    eof = b"\xfe\0\0\2\0"
    ok = b"\xfe\0\0\2\0\7\0"
    plain = [payload for payload in packets_of(answer) if payload[:1] != b"\xfe"]
    defined = len(columns) + 1
    decoder = ResultDecoder(columns)
    decoder.feed(answer_of([*plain, ok]))
    assert (decoder.ended, decoder.status, decoder.warning_count) == (True, 2, 7)
    assert decoder.take_batch().equals(batch)
    assert decode(columns, [answer_of([*plain[:defined], ok])]).num_rows == 0
    assert decode(columns, [answer_of([*plain[:defined], eof, eof])]).num_rows == 0
    for mixed in ([*plain, eof], [*plain[:defined], eof, ok], [*plain, b"\xfe\0\0\x0a\0\0\0"]):
        with pytest.raises(CorruptResult):
            decode(columns, [answer_of(mixed)])


def test_lost_bytes_are_noticed(small: Small) -> None:
    columns, answer, _ = small
    payloads = packets_of(answer)
    whole = answer_of(payloads)
    row = answer_of(payloads[:-2])
    without = row + whole[len(answer_of(payloads[:-1])) :]
    with pytest.raises(CorruptResult, match="bytes were lost"):
        decode(columns, [without])


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


@pytest.mark.parametrize(
    ("expected", "message"),
    [
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
    ],
)
def test_other_columns_than_expected(
    session: Session,
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    expected: list[str],
    message: str,
) -> None:
    schema = fresh_schema(shard)
    run(session, f"CREATE TABLE {schema}.found (a int, b varchar(9), c blob)")
    run(session, f"CREATE TABLE {schema}.wanted ({', '.join(expected)})")
    with shard.connect() as other, pytest.raises(SourceError, match=message):
        select(other, f"SELECT * FROM {schema}.found", columns_of(other, schema, "wanted"))


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


HUGE = b"\xfe" + (2**62).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        (ColumnType(Kind.BLOB), HUGE, "too early"),
        (ColumnType(Kind.BLOB), b"\xfb", "too early"),
        (ColumnType(Kind.BLOB), b"\x01ab", "1 bytes follow"),
        (ColumnType(Kind.BIGINT), b"1234567", "too early"),
        (ColumnType(Kind.DATE), b"\x04\xe8\x07\x0d\x01", "no such date or time"),
        (ColumnType(Kind.DATE), b"\x07\xe8\x07\x01\x01\0\0\0", "a length"),
        (ColumnType(Kind.DATETIME), b"\x07\xe8\x07\x01\x01\x18\0\0", "no such date or time"),
        (ColumnType(Kind.DATETIME), b"\x03\xe8\x07\x01", "a length"),
        (ColumnType(Kind.TIME), b"\x08\0\x23\0\0\0\0\0\0", "no such date or time"),
        (ColumnType(Kind.TIME), b"\x05\0\0\0\0\0", "a length"),
        (ColumnType(Kind.BIT, length=9), b"\x01\0", "a length"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\x06100.00", "not a number"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\x03100", "not a number"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\x051.234", "not a number"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\x031e1", "not a number"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\0", "not a number"),
        (ColumnType(Kind.DECIMAL, length=4, scale=2), b"\x01-", "not a number"),
    ],
)
def test_cells_that_no_server_sends(kind: ColumnType, row: bytes, message: str) -> None:
    codes = {Kind.BLOB: 252, Kind.BIGINT: 8, Kind.TEXT: 253, Kind.DATE: 10, Kind.DATETIME: 12, Kind.TIME: 11}
    code = {**codes, Kind.BIT: 16, Kind.DECIMAL: 246}[kind.kind]
    collation = 45 if kind.kind is Kind.TEXT else 63
    declared = b"\x03def\0\0\0\x01x\0\x0c" + struct.pack("<HIBHBH", collation, 0, code, 0, 0, 0)
    eof = b"\xfe\0\0\2\0"
    decoder = ResultDecoder([Column("x", kind)])
    with pytest.raises(CorruptResult, match=message):
        decoder.feed(answer_of([b"\x01", declared, eof, b"\0\x04", b"\0\0" + row, eof]))
    assert decoder.take_batch().to_pylist() == [{"x": None}]


def test_text_that_is_not_utf8(session: Session) -> None:
    text = Column("x", ColumnType(Kind.TEXT, charset="utf8mb4"))
    answer = select(session, "SELECT 'été' x UNION ALL SELECT 'abc'", [text])[1]
    with pytest.raises(Unsupported, match="row 2, column 'x': a value is not valid UTF-8"):
        decode([text], [answer.replace(b"abc", b"\xed\xa0\x80")])


def mutated(answer: bytes, chance: random.Random) -> bytes:
    """The answer with some bytes changed, left out, doubled or moved."""
    changed = bytearray(answer)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        at, size = chance.randrange(len(changed)), chance.choice([1, 1, 2, 4, 50])
        how = chance.randrange(5)
        if how <= 1:
            changed[at] = chance.choice([0, 1, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, chance.randrange(256)])
        elif how == 2:
            del changed[at : at + size]
        elif how == 3:
            changed[at:at] = chance.randbytes(size)
        else:
            changed[at:at] = changed[at : at + size]
        if not changed:
            return b"\0"
    return bytes(changed)


def test_hostile_bytes(small: Small) -> None:
    columns, answer, _ = small
    payloads = packets_of(answer)
    rows_from = len(columns) + 2
    chance = random.Random(20261120)
    outcomes = dict.fromkeys(
        ("ended", "open", "CorruptResult", "ServerSaid", "SourceError", "Unsupported"), 0
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(10_000):
        if number % 2:  # sound framing and definitions, damaged rows
            damaged = [mutated(payload, chance) for payload in payloads[rows_from:-1]]
            data = answer_of([*payloads[:rows_from], *damaged, payloads[-1]])
        else:
            data = mutated(answer, chance)
        decoder = ResultDecoder(columns)
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(4)))
        try:
            for start, end in pairwise([0, *cuts, len(data)]):
                decoder.feed(data[start:end])
            outcomes["ended" if decoder.ended else "open"] += 1
        except (CorruptResult, SourceError) as error:
            outcomes[type(error).__name__] += 1
        assert decoder.pending_bytes <= 40 * len(data)
        decoder.take_batch().validate(full=True)
    assert min(outcomes.values()) > 10, outcomes
    assert outcomes["CorruptResult"] > 5000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_batches_between_feeds(small: Small) -> None:
    columns, answer, batch = small
    decoder = ResultDecoder(columns)
    taken = []
    for byte in answer:
        decoder.feed(bytes([byte]))
        if decoder.pending_bytes:
            taken.append(decoder.take_batch())
            assert decoder.pending_bytes == 0
    assert [part.num_rows for part in taken] == [1, 1, 1]
    assert pa.Table.from_batches(taken).equals(pa.Table.from_batches([batch]))
    assert decoder.rows == 3


def test_columns_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="not 0"):
        ResultDecoder([])
