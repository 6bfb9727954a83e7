"""Hostile logs: real events with bytes changed, cut or put elsewhere, and checksums made right again.

Whatever the bytes, a decoder either decodes them or raises one of the errors named for it, and the rows that
it gives are well-formed Arrow.
"""

import random
import struct
import time

from catchment.model.errors import CorruptLog, CutMissed, ServerSaid, Unsupported
from catchment.model.position import LogOffset
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.events import HEADER, joined, seal

EXPECTED = (CorruptLog, CutMissed, ServerSaid, Unsupported)
HOSTILE = (0x00, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)


def change(rng: random.Random, data: bytearray, first: int, last: int) -> int:
    """Change some bytes from `first` to `last`; by how many bytes that makes it longer."""
    if first >= last:
        return 0
    size = len(data)
    way = rng.randrange(8)
    at = rng.randrange(first, last)
    if way < 2:
        data[at] ^= 1 << rng.randrange(8)
    elif way == 2:
        data[at] = rng.choice(HOSTILE)
    elif way == 3:
        data[at : min(at + rng.choice((2, 4, 8)), last)] = bytes([rng.choice(HOSTILE)]) * min(4, last - at)
    elif way == 4:
        data[at : at + 4] = bytes([rng.randrange(256) for _ in range(min(4, last - at))])
    elif way == 5:
        del data[at:last]
    elif way == 6:
        del data[at : min(at + rng.randrange(1, 9), last)]
    else:
        data[at:at] = rng.randbytes(rng.randrange(1, 9))
    return len(data) - size


def changed(rng: random.Random, event: bytes) -> bytes:
    """One event with its body changed in one of several ways and sealed again."""
    body = bytearray(event[HEADER:-4])
    if not body:
        return event
    way = rng.randrange(6)
    at = rng.randrange(len(body))
    if way == 0:
        body[at] ^= 1 << rng.randrange(8)
    elif way == 1:
        body[at] = rng.choice(HOSTILE)
    elif way == 2:
        del body[at:]
    elif way == 3:
        wide = rng.choice((2, 4, 8))
        body[at : at + wide] = bytes([rng.choice((0xFF, 0x7F, 0x80))]) * wide
    elif way == 4:
        del body[at : at + rng.randrange(1, 9)]
    else:
        body[at:at] = rng.randbytes(rng.randrange(1, 9))
    return placed(event[:HEADER] + bytes(body) + event[-4:], len(event))


def placed(event: bytes, size: int) -> bytes:
    """The event with its end moved along with its length, so that it still begins at its place."""
    (end,) = struct.unpack_from("<I", event, 13)
    head = bytearray(event)
    if end:
        head[13:17] = struct.pack("<I", (end + len(event) - size) % 2**32)
    return seal(head)


def hostile(rng: random.Random, events: list[bytes]) -> bytes:
    """The dump with one to three events changed; those behind a change of length keep their old places."""
    found = list(events)
    for _ in range(rng.randrange(1, 4)):
        i = rng.randrange(len(found))
        found[i] = changed(rng, found[i])
        if rng.randrange(8) == 0:
            head = bytearray(found[i])
            head[rng.choice((4, 17, 18))] ^= 1 << rng.randrange(8)
            found[i] = seal(head)
    raw = bytearray(joined(found))
    if rng.randrange(8) == 0:
        at = rng.randrange(len(raw))
        raw[at] ^= 1 << rng.randrange(8)
    return bytes(raw)


def survives(raw: bytes, start: LogOffset, before: str, cut: int) -> str:
    """Decode the bytes in two pieces; the name of the error that ended it, or an empty string."""
    decoder = LogDecoder(start, before=before, sparse=bool(cut & 1))  # type: ignore[arg-type]
    ended, said = "", ""
    try:
        decoder.feed(raw[:cut])
        decoder.feed(raw[cut:])
    except EXPECTED as error:
        ended, said = type(error).__name__, str(error)
    assert ended != "CorruptLog" or said.startswith("log "), said
    for images in decoder.take_images():
        images.batch.validate(full=True)
        assert images.batch.nbytes < 10_000_000
    decoder.take_groups().validate(full=True)
    return ended


def fuzz(events: list[bytes], start: LogOffset, inputs: int, seed: int) -> dict[str, int]:
    """How many of `inputs` hostile dumps ended in which error. `seed` repeats a run."""
    outcomes: dict[str, int] = {}
    for number in range(inputs):
        rng = random.Random(f"{seed}/{number}")
        raw = hostile(rng, events)
        began = time.process_time()
        try:
            ended = survives(raw, start, rng.choice(("full", "key")), rng.randrange(len(raw)))
        except BaseException as error:
            raise AssertionError(f"hostile dump {seed}/{number}") from error
        assert time.process_time() - began < 2, f"hostile dump {seed}/{number} took long"
        outcomes[ended] = outcomes.get(ended, 0) + 1
    return outcomes
