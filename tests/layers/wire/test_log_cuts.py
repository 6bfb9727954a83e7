"""Bytes in pieces of any size give the same result; so do rows taken in the middle of a group."""

import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog
from catchment.model.image import GROUP, SEQ
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.events import events_of, everything, joined, kind_of, seal


@pytest.fixture
def recorded(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> tuple[TableId, LogOffset, bytes]:
    """A short dump over two files with rows, DDL, a savepoint and an XA transaction."""
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    run(
        session,
        f"CREATE TABLE {schema}.t (id int PRIMARY KEY, v varchar(9), d decimal(9,2))",
        f"INSERT INTO {schema}.t VALUES (1, 'a', 1), (2, NULL, 2.5)",
        "FLUSH BINARY LOGS",
        f"UPDATE {schema}.t SET id = id + 10",
        f"XA START 'x{schema}'",
        f"DELETE FROM {schema}.t WHERE id = 12",
        f"XA END 'x{schema}'",
        f"XA PREPARE 'x{schema}'",
        f"XA COMMIT 'x{schema}'",
    )
    return TableId(schema, "t"), start, read_dump(shard, start)


def test_two_pieces_cut_at_every_byte(recorded: tuple[TableId, LogOffset, bytes]) -> None:
    table, start, raw = recorded
    expected = everything(decoded(raw, start, wanted=[table]))
    assert len(expected[0][0][1]) == 7
    assert len(expected[4]) == 2
    for cut in range(len(raw) + 1):
        decoder = LogDecoder(start, wanted=[table])
        decoder.feed(raw[:cut])
        decoder.feed(memoryview(raw)[cut:])
        assert everything(decoder) == expected, cut


def test_pieces_of_a_few_bytes(recorded: tuple[TableId, LogOffset, bytes]) -> None:
    table, start, raw = recorded
    expected = everything(decoded(raw, start, wanted=[table]))
    for size in (1, 2, 3, 5, 19, 64):
        decoder = LogDecoder(start, wanted=[table])
        memory = bytearray(size)  # used again for every piece, as a reader of a socket does
        for at in range(0, len(raw), size):
            piece = raw[at : at + size]
            memory[: len(piece)] = piece
            decoder.feed(memoryview(memory)[: len(piece)])
            memory[:] = b"\xee" * size
        assert everything(decoder) == expected, size


def test_bytes_behind_the_end_are_left_alone(recorded: tuple[TableId, LogOffset, bytes]) -> None:
    table, start, raw = recorded
    expected = everything(decoded(raw, start, wanted=[table]))
    assert everything(decoded(raw + b"\xff" * 100, start, wanted=[table])) == expected


def test_rows_taken_in_the_middle_of_a_transaction(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    rows = 200_000
    run(session, f"CREATE TABLE {schema}.t (id int PRIMARY KEY, v varchar(40))")
    start = end_of_log(shard)
    run(session, f"INSERT INTO {schema}.t SELECT seq, SHA1(seq) FROM {schema}.seq_1_to_{rows}")
    raw = memoryview(read_dump(shard, start))
    decoder = LogDecoder(start, wanted=[TableId(schema, "t")])
    batches: list[pa.RecordBatch] = []
    for at in range(0, len(raw), 100_000):
        decoder.feed(raw[at : at + 100_000])
        assert decoder.pending_bytes < 2_000_000
        if decoder.pending_bytes > 1_000_000:
            batches += [images.batch for images in decoder.take_images()]
            assert decoder.in_group
            assert len(decoder.take_groups()) == 0
    batches += [images.batch for images in decoder.take_images()]
    assert len(batches) > 5
    table = pa.Table.from_batches(batches)
    assert table["id"].to_pylist() == list(range(1, rows + 1))
    assert table[SEQ].to_pylist() == list(range(rows))
    assert set(table[GROUP].to_pylist()) == {0}
    assert [row["ordinal"] for row in decoder.take_groups().to_pylist()] == [0]
    assert decoder.pending_bytes == 0


@pytest.mark.parametrize("shift", [2**32 - 700, 2**32 - 1, 2**32, 2**33 + 5, 2**40])
def test_offsets_beyond_4_gib(recorded: tuple[TableId, LogOffset, bytes], shift: int) -> None:
    """The header has 32 bits of an offset; a transaction that began below 4 GiB goes on above."""
    table, start, raw = recorded
    shifted: list[bytes] = []
    here = True
    for event in events_of(raw):
        changed = bytearray(event)
        (end,) = struct.unpack_from("<I", event, 13)
        if not shifted:
            changed[19:27] = struct.pack("<Q", start.offset + shift)
        elif kind_of(event) == 4 and end == 0:
            here = False
        elif here and end:
            changed[13:17] = struct.pack("<I", (end + shift) % 2**32)
        shifted.append(seal(changed))
    expected = decoded(raw, start, wanted=[table])
    found = decoded(joined(shifted), LogOffset(start.file, start.offset + shift), wanted=[table])
    assert everything(found)[0] == everything(expected)[0]
    groups, others = found.take_groups(), expected.take_groups()
    for row, other in zip(groups.to_pylist(), others.to_pylist(), strict=True):
        assert row["end"] == other["end"] + (shift if row["file"] == 0 else 0)


def test_lost_bytes(recorded: tuple[TableId, LogOffset, bytes]) -> None:
    table, start, raw = recorded
    events = events_of(raw)
    for lost in range(len(events) - 1):
        if kind_of(events[lost]) == 4 and kind_of(events[lost + 1]) == 4:
            # a file of a server that was killed ends so too; the file is told as not complete
            decoder = decoded(joined(events[:lost] + events[lost + 1 :]), start, wanted=[table])
            assert [file.complete for file in decoder.files] == [False, False]
            continue
        with pytest.raises(CorruptLog, match=r"log .*:\d+: "):
            decoded(joined(events[:lost] + events[lost + 1 :]), start, wanted=[table])
    packets = bytearray(raw)
    first = int.from_bytes(raw[:3], "little") + 4
    packets[first + 3] ^= 1
    with pytest.raises(CorruptLog, match="packet number"):
        decoded(bytes(packets), start, wanted=[table])
