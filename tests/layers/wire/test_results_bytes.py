"""Answers in pieces, cut short, damaged and invented: the decoder never takes one for whole that is not."""

import random
import resource
import struct
from itertools import pairwise

import pyarrow as pa
import pytest

from catchment.model.errors import CorruptResult, SourceError, Unsupported
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.packets.results import ResultDecoder
from tests.layers.wire.answers import Session, columns_of, decode, run, select


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


def test_text_that_is_not_utf8(session: Session) -> None:
    text = Column("x", ColumnType(Kind.TEXT, charset="utf8mb4"))
    answer = select(session, "SELECT 'été' x UNION ALL SELECT 'abc'", [text])[1]
    with pytest.raises(Unsupported, match="row 2, column 'x': a value is not valid UTF-8"):
        decode([text], [answer.replace(b"abc", b"\xed\xa0\x80")])


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
        (ColumnType(Kind.DECIMAL, length=40, scale=2), b"\x041.5\xb1", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40, scale=2), b"\x031.5", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40, scale=2), b"\x03.50", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40, scale=2), b"\x04-.50", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40, scale=2), b"\x2a" + b"1" * 39 + b".00", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40), b"\x051.000", "not a number"),
        (ColumnType(Kind.DECIMAL, length=40), b"\0", "not a number"),
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


@pytest.mark.parametrize("inputs", [1_500, pytest.param(20_000, marks=pytest.mark.wide)])
def test_hostile_bytes(small: Small, inputs: int) -> None:
    columns, answer, _ = small
    payloads = packets_of(answer)
    rows_from = len(columns) + 2
    chance = random.Random(20261120)
    outcomes = dict.fromkeys(
        ("ended", "open", "CorruptResult", "ServerSaid", "SourceError", "Unsupported"), 0
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(inputs):
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
    assert min(outcomes.values()) > inputs // 1000, outcomes
    assert outcomes["CorruptResult"] > inputs // 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
