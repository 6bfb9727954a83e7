"""Events of a dump taken apart and put together again, with checksums made anew."""

import struct
import zlib
from typing import Any

from catchment.wire.log.decoder import LogDecoder

HEADER = 19


def seal(event: bytes | bytearray) -> bytes:
    """The event with its length and its checksum made right."""
    body = bytearray(event[:-4])
    body[9:13] = struct.pack("<I", len(event))
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload) | (number & 0xFF) << 24) + payload


def joined(events: list[bytes]) -> bytes:
    """Events as the bytes of a connection that ends with the end-of-log packet."""
    pieces = [packet(1 + n, b"\0" + event) for n, event in enumerate(events)]
    return b"".join(pieces) + packet(1 + len(events), b"\xfe\0\0\2\0")


def events_of(raw: bytes) -> list[bytes]:
    """The events of a dump that has no packets of 16 MB, without the end-of-log packet."""
    found = []
    at = 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 3], "little")
        if raw[at + 4] == 0:
            found.append(raw[at + 5 : at + 4 + size])
        at += 4 + size
    return found


def kind_of(event: bytes) -> int:
    return event[4]


def everything(decoder: LogDecoder) -> tuple[Any, ...]:
    """All that a decoder has found, for comparison."""
    images = [(found.table, found.batch.to_pylist()) for found in decoder.take_images()]
    groups = decoder.take_groups().to_pylist()
    state = (decoder.at, decoder.last_group, decoder.in_group, decoder.ended, decoder.reached_stop)
    return images, groups, decoder.voids, decoder.facts, decoder.files, state
