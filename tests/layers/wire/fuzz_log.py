"""Hostile logs: a group of a real server with one event changed, in packets that may be broken as well."""

import random
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from catchment.model.definition import Definition
from catchment.model.errors import CatchmentError, CorruptLog, ServerSaid, Unsupported
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema.follow import Followed
from catchment.wire.log import metadata
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import Unreadable
from catchment.wire.log.start import FirstGroup
from tests.layers.wire.events import HEADER, events_of, joined, kind_of, packet, seal
from tests.layers.wire.fuzz import EXPECTED, change
from tests.layers.wire.fuzz_definitions import unfit
from tests.layers.wire.seeds import ARTIFICIAL, ROTATE, TABLE_MAP, TWO_FILES, Definitions, Seed

DECODED: Final = "decoded"
ALTERED_UNSEEN: Final = "altered unseen"
ROWS_BYTES: Final = 16 << 20  # from a few KiB; compressed values may be a thousand times as long
IMAGES: Final[tuple[Literal["full", "key"], ...]] = ("full", "key")
TYPES: Final = (*range(1, 43), *range(160, 172))  # of events
_PLACE: Final = re.compile(r"log (.*?):(\d+): ", re.S)
_GONE: Final = b"\xff" + struct.pack("<H", 1236) + b"#HY000the log is gone"


class HostileLog(msgspec.Struct, frozen=True):
    """A dump to decode. `sound`: its packets, and the changed event's header and checksum, are as they should be."""

    seed: Seed
    raw: bytes
    sound: bool = True
    definitions: Definitions = {}
    stop: LogOffset | None = None

    def __str__(self) -> str:
        return (
            f"{self.seed.name}: {self.raw.hex()}, from {self.seed.place} to {self.stop}, {self.definitions}"
        )

    def ended(self, rng: random.Random) -> str:
        """What became of it. Raises AssertionError when that is not what it should be."""
        if rng.random() < 0.05:
            check_first_group(rng, self.raw)
        return decoded(rng, self)


def unchanged(seed: Seed, event: bytes | None = None) -> HostileLog:
    """The seed, or with another target: where its length changes, without what comes behind it."""
    target = seed.target if event is None else event
    raw = seed.head + packet(seed.number, b"\0" + target)
    return HostileLog(
        seed, raw + seed.tail if len(target) == len(seed.target) else raw, True, seed.definitions
    )


def draw(rng: random.Random, seed: Seed, others: list[Definition]) -> HostileLog:
    """`others`: definitions that may stand in for those of the seed."""
    event, sound, definitions = seed.target, True, seed.definitions
    if definitions and rng.random() < 0.3:
        definitions = {table: unfit(rng, one, others) for table, one in definitions.items()}
    if definitions is seed.definitions or rng.random() < 0.3:
        event, sound = changed(rng, seed)
    raw = unchanged(seed, event).raw
    way = rng.randrange(32)
    if way == 0:
        raw, sound = broken(rng, seed, raw), False
    elif way == 1:
        raw, sound = rearranged(rng, seed), False
    stop = LogOffset(seed.place.file, _somewhere(rng, seed, len(raw))) if rng.randrange(16) == 0 else None
    return HostileLog(seed, raw, sound, definitions, stop)


def _somewhere(rng: random.Random, seed: Seed, size: int) -> int:
    """A place in the log near the target, mostly where an event ends."""
    events = [seed.target, *events_of(seed.tail)]
    (end,) = struct.unpack_from("<I", rng.choice(events), 13)
    return int(end) if end and rng.random() < 0.7 else seed.place.offset + rng.randrange(size + 1)


def changed(rng: random.Random, seed: Seed) -> tuple[bytes, bool]:
    """The target changed in one to three places, and whether it has kept its header and its checksum right."""
    event = bytearray(seed.target)
    last = seed.last
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        last += change(rng, event, seed.first, last)
    way = rng.randrange(32)
    if way == 0:
        event[rng.choice((4, 17, 18))] ^= 1 << rng.randrange(8)
    elif way == 3:
        event[4] = rng.choice(TYPES)
    elif way == 1:
        event[rng.randrange(9, 17)] ^= 1 << rng.randrange(8)
        return bytes(event), False
    elif way == 2:
        event[rng.randrange(len(event))] ^= 1 << rng.randrange(8)
        return bytes(event), False
    (end,) = struct.unpack_from("<I", event, 13)
    if end and len(event) != len(seed.target):
        event[13:17] = struct.pack("<I", (end + len(event) - len(seed.target)) % 2**32)
    return seal(event), way > 3


def broken(rng: random.Random, seed: Seed, raw: bytes) -> bytes:
    """Packets changed, or others in place of the target."""
    way = rng.randrange(6)
    if way == 0:
        return seed.head + packet(seed.number, _GONE)
    if way == 1:
        return seed.head + packet(seed.number, b"")
    if way == 2:
        return seed.head + packet(seed.number, bytes([rng.randrange(256)]) + seed.target)
    if way == 3:
        return seed.head + packet(seed.number, b"\0" + seed.target[: rng.randrange(HEADER + 8)])
    data = bytearray(raw)
    change(rng, data, 0, len(data))
    return bytes(data)


def rearranged(rng: random.Random, seed: Seed) -> bytes:
    """An event left out, doubled or exchanged with another, all of them where their places say."""
    events = [*events_of(seed.head), seed.target, *events_of(seed.tail)]
    at = rng.randrange(1, len(events))
    way = rng.randrange(3)
    if way == 0:
        del events[at]
    elif way == 1:
        events.insert(at, events[at])
    else:
        other = rng.randrange(1, len(events))
        events[at], events[other] = events[other], events[at]
    end = seed.place.offset
    for i, event in enumerate(events):
        moved = bytearray(event)
        if kind_of(event) == ROTATE and event[17] & ARTIFICIAL:
            (end,) = struct.unpack_from("<Q", event, HEADER)
        elif any(event[13:17]):
            end += len(event)
            moved[13:17] = struct.pack("<I", end % 2**32)
        events[i] = seal(moved)
    return joined(events)


def decoded(rng: random.Random, log: HostileLog) -> str:
    """The error that ended it, or DECODED. Raises AssertionError when that is not what it should be."""
    known = log.definitions
    decoder = LogDecoder(
        log.seed.place,
        stop=log.stop,
        kinds=log.seed.kinds,
        definitions=known,
        on_ddl=Followed(known, known.values()).on_ddl if known else None,
        before=rng.choice(IMAGES),
        sparse=rng.random() < 0.5,
        verify_checksum=rng.random() < 0.95,
    )
    raw = log.raw
    cut = rng.randrange(len(raw) + 1) if rng.random() < 0.5 else 0
    ended = DECODED
    try:
        decoder.feed(raw[:cut])
        decoder.feed(raw[cut:])
    except EXPECTED as error:
        ended = type(error).__name__
        check_error(decoder, error, log)
    check_state(decoder)
    unseen = (fact for fact in decoder.facts if isinstance(fact, Unreadable) and ALTERED_UNSEEN in fact.why)
    if ended == DECODED and any(unseen):
        ended = ALTERED_UNSEEN
    for images in decoder.take_images():
        images.batch.validate(full=True)
        assert images.batch.nbytes < ROWS_BYTES
    if rng.random() < 0.1:
        decoder.take_groups().validate(full=True)
    return ended


def check_error(decoder: LogDecoder, error: CatchmentError, log: HostileLog) -> None:
    """It says the file, and a malformed log a place among the bytes that came. It stays the answer to further bytes;
    after an error of the server another dump may follow."""
    place = log.seed.place
    of_one_file = log.sound and log.seed.name not in ("event 4", TWO_FILES)
    if isinstance(error, Unsupported):
        assert f"{place.file}:" in str(error) or not of_one_file, str(error)
    if isinstance(error, CorruptLog):
        found = _PLACE.match(str(error))
        assert found, str(error)
        assert not of_one_file or found[1] == place.file, str(error)
        assert not of_one_file or 0 <= int(found[2]) - place.offset <= len(log.raw), str(error)
    resumed = isinstance(error, ServerSaid)
    assert raised(partial(decoder.feed, b"")) is error, "an error was forgotten"
    assert raised(decoder.resume) is (None if resumed else error)
    if resumed:
        raised(partial(decoder.feed, log.raw))


def raised(call: Callable[[], None]) -> CatchmentError | None:
    try:
        call()
    except EXPECTED as error:
        return error
    return None


def check_state(decoder: LogDecoder) -> None:
    """What it says of itself holds together."""
    assert 0 <= decoder.pending_bytes < ROWS_BYTES
    assert decoder.at.offset >= 0
    assert all(first < last for first, last in decoder.voids)
    assert all(before[1] < after[0] for before, after in pairwise(decoder.voids))
    last = decoder.last_group
    assert last is None or last.end.file in {file.name for file in decoder.files}
    assert not (decoder.in_group and decoder.reached_stop)


def check_first_group(rng: random.Random, raw: bytes) -> None:
    """The head of a dump by itself tells a place, or one error."""
    first = FirstGroup(checksums=rng.random() < 0.8)
    cut = rng.randrange(len(raw) + 1)
    try:
        first.feed(raw[:cut])
        first.feed(raw[cut:])
    except (CorruptLog, ServerSaid):
        return
    assert first.at is None or first.at.offset >= 0, first.at


@contextmanager
def descriptions_kept(found: list[Seed]) -> Iterator[None]:
    """Table maps of the seeds that are not changed are read once in all, not once for each input: half of the time."""
    describe = metadata.describe
    maps = {
        event[HEADER + 8 : -4]
        for seed in found
        for event in events_of(seed.head + packet(seed.number, b"\0" + seed.target))
        if kind_of(event) == TABLE_MAP
    }
    definitions = {None, *(one for seed in found for one in seed.definitions.values())}
    known: dict[Any, metadata.Described] = {}

    def remembered(
        body: bytes,
        keys: Any,
        kinds: Mapping[TableId, Any],
        mysql: int = 0,
        definition: Definition | None = None,
    ) -> metadata.Described:
        if body not in maps or definition not in definitions:
            return describe(body, keys, kinds, mysql, definition)
        key = (body, bool(kinds), mysql, definition)
        found = known.get(key)
        if found is None:
            found = known[key] = describe(body, keys, kinds, mysql, definition)
        return found

    metadata.describe = remembered
    try:
        yield
    finally:
        metadata.describe = describe
