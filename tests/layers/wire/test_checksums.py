"""Checksums of events of every length: folded sixteen bytes at a time, they are what zlib says."""

import random
import struct

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.dumps import end_of_log, read_dump
from tests.layers.wire.events import events_of, joined, seal

IGNORABLE = 28
ARTIFICIAL = 0x20
SIZES = [*range(23, 700), 4096 + 23, 65536 + 23]


def test_of_every_length(shard: PrivateServer) -> None:
    """Every length is accepted, and none with one bit flipped anywhere behind the header."""
    start = end_of_log(shard)
    head = events_of(read_dump(shard, start))[:2]
    drawn = random.Random(20261121)
    events = []
    for size in SIZES:
        header = struct.pack("<IBIIIH", 0, IGNORABLE, 1, size, 0, ARTIFICIAL)
        events.append(seal(header + drawn.randbytes(size - len(header))))
    decoder = LogDecoder(start)
    decoder.feed(joined([*head, *events]))
    assert decoder.ended
    for event in events:
        changed = bytearray(event)
        changed[drawn.randrange(19, len(event))] ^= 1 << drawn.randrange(8)
        with pytest.raises(CorruptLog, match="the checksum of the event"):
            LogDecoder(start).feed(joined([*head, bytes(changed)]))
