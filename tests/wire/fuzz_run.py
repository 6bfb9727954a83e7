"""Many hostile events, one small dump each: for long runs, also under a sanitizer.

    python -m tests.wire.recordings build/recordings
    dev/sanitized python -m tests.wire.fuzz_run build/recordings INPUTS [SEED]

Each input is a seed (seeds.py) with its target changed. The report says of each event type, each type of column,
each kind of JSON and each event in a payload how many inputs were decoded and how many ended in which error.
"""

import pickle
import random
import re
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from catchment.model.errors import CorruptLog
from catchment.model.table import TableId
from catchment.wire import metadata
from catchment.wire.log import LogDecoder
from tests.wire.events import packet, seal
from tests.wire.fuzz import EXPECTED, HOSTILE
from tests.wire.seeds import Seed, seeds

Outcome = Counter[tuple[str, str]]

BATCH: Final = 10_000
PROCESSES: Final = 2
SECONDS: Final = 1  # of CPU for one input
ROWS_BYTES: Final = 16 << 20  # from a few KiB; compressed values may be a thousand times as long
GROWTH_KIB: Final = 1 << 20  # of memory in one process; a sanitizer keeps freed memory for a while
IMAGES: Final[tuple[Literal["full", "key"], ...]] = ("full", "key")
_PLACE: Final = re.compile(r"log (.*?):(\d+): ", re.S)
_DECODED: Final = "decoded"


def changed(rng: random.Random, seed: Seed) -> tuple[bytes, bool]:
    """The target changed in one to three places, and whether it has kept its header and its checksum right."""
    event = bytearray(seed.target)
    last = seed.last
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        last += _change(rng, event, seed.first, last)
    way = rng.randrange(32)
    if way == 0:
        event[rng.choice((4, 17, 18))] ^= 1 << rng.randrange(8)
    elif way == 1:
        event[rng.randrange(9, 17)] ^= 1 << rng.randrange(8)
        return bytes(event), False
    elif way == 2:
        event[rng.randrange(len(event))] ^= 1 << rng.randrange(8)
        return bytes(event), False
    (end,) = struct.unpack_from("<I", event, 13)
    if end and len(event) != len(seed.target):
        event[13:17] = struct.pack("<I", (end + len(event) - len(seed.target)) % 2**32)
    return seal(event), way > 2


def _change(rng: random.Random, event: bytearray, first: int, last: int) -> int:
    """Change some bytes from `first` to `last`; by how many bytes the event has become longer."""
    if first >= last:
        return 0
    size = len(event)
    way = rng.randrange(8)
    at = rng.randrange(first, last)
    if way < 2:
        event[at] ^= 1 << rng.randrange(8)
    elif way == 2:
        event[at] = rng.choice(HOSTILE)
    elif way == 3:
        event[at : min(at + rng.choice((2, 4, 8)), last)] = bytes([rng.choice(HOSTILE)]) * min(4, last - at)
    elif way == 4:
        event[at : at + 4] = bytes([rng.randrange(256) for _ in range(min(4, last - at))])
    elif way == 5:
        del event[at:last]
    elif way == 6:
        del event[at : min(at + rng.randrange(1, 9), last)]
    else:
        event[at:at] = rng.randbytes(rng.randrange(1, 9))
    return len(event) - size


def decoded(rng: random.Random, seed: Seed, event: bytes, sound: bool) -> str:
    """What became of the input. Raises AssertionError when that is not what it should be."""
    decoder = LogDecoder(seed.place, kinds=seed.kinds, before=rng.choice(IMAGES), sparse=rng.random() < 0.5)
    raw = seed.head + packet(seed.number, b"\0" + event)
    if len(event) == len(seed.target):
        raw += seed.tail
    cut = rng.randrange(len(raw)) if rng.random() < 0.5 else 0
    ended = _DECODED
    try:
        decoder.feed(raw[:cut])
        decoder.feed(raw[cut:])
    except EXPECTED as error:
        ended = type(error).__name__
        if isinstance(error, CorruptLog):
            check_error(decoder, error, seed, len(raw) if sound else 1 << 32)
    for images in decoder.take_images():
        images.batch.validate(full=True)
        assert images.batch.nbytes < ROWS_BYTES
    if rng.random() < 0.1:
        decoder.take_groups().validate(full=True)
    return ended


def check_error(decoder: LogDecoder, error: CorruptLog, seed: Seed, size: int) -> None:
    """It says the file and a place among the bytes that came, and it stays the answer to further bytes."""
    found = _PLACE.match(str(error))
    assert found, str(error)
    if seed.name != "event 4":  # which names the file
        assert found[1] == seed.place.file, str(error)
        assert 0 <= int(found[2]) - seed.place.offset <= size, str(error)
    again = None
    try:
        decoder.feed(b"")
    except CorruptLog as same:
        again = same
    assert again is error, "an error was forgotten"


@contextmanager
def descriptions_kept() -> Iterator[None]:
    """Table maps that are not changed are read once in all, not once for each input: half of the time."""
    describe = metadata.describe
    known: dict[Any, metadata.Described] = {}

    def remembered(body: bytes, keys: Any, kinds: Mapping[TableId, Any], *more: Any) -> metadata.Described:
        key = (body, bool(kinds), *more)
        found = known.get(key)
        if found is None:
            found = describe(body, keys, kinds, *more)
            if len(known) < 1000:
                known[key] = found
        return found

    metadata.describe = remembered  # type: ignore[assignment]
    try:
        yield
    finally:
        metadata.describe = describe


def memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(found: list[Seed], inputs: int, seed: int) -> Outcome:
    """Inputs by the name of their seed and what became of them. Raises AssertionError with the number of an
    input that is not survived; the same arguments repeat it."""
    by_name: dict[str, list[Seed]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    names = sorted(by_name)
    outcome: Outcome = Counter()
    rng = random.Random(seed)
    before = memory_kib()
    with descriptions_kept():
        for number in range(inputs):
            chosen = rng.choice(by_name[names[number % len(names)]])
            event, sound = changed(rng, chosen)
            began = time.process_time()
            try:
                ended = decoded(rng, chosen, event, sound)
            except BaseException as error:
                raise AssertionError(f"input {seed}/{number}, {chosen.name}: {event.hex()}") from error
            assert time.process_time() - began < SECONDS, f"input {seed}/{number}, {chosen.name} took long"
            outcome[chosen.name, ended] += 1
    assert memory_kib() - before < GROWTH_KIB, f"inputs of seed {seed} took much memory"
    return outcome


def report(outcome: Outcome) -> str:
    names = {name for name, _ in outcome}
    lines = []
    for name in sorted(names, key=lambda name: re.sub(r"\d+", lambda digits: digits[0].zfill(3), name)):
        counts = ", ".join(f"{ended} {n}" for (of, ended), n in sorted(outcome.items()) if of == name)
        lines.append(f"  {name:45} {counts}")
    return "\n".join(lines)


def unreached(outcome: Outcome) -> list[str]:
    """Names of which nothing was decoded, or nothing ended in CorruptLog."""
    names = {name for name, _ in outcome}
    return sorted(n for n in names if not outcome[n, _DECODED] or not outcome[n, CorruptLog.__name__])


def main(path: str, inputs: int, seed: int) -> None:
    """Batches with seeds from `seed` on in PROCESSES processes; says now and then how far it is, then all outcomes."""
    found = seeds(pickle.loads(Path(path).read_bytes()))
    began = time.monotonic()
    outcome: Outcome = Counter()
    batches = range(seed, seed + -(-inputs // BATCH))
    with ProcessPoolExecutor(PROCESSES) as pool:
        waiting = {pool.submit(partial(run, found, BATCH), batch): batch for batch in batches}
        for done in as_completed(list(waiting)):
            try:
                outcome.update(done.result())
            except BaseException:
                print(f"batch {waiting[done]} was not survived, or one of those beside it", flush=True)
                raise
            if waiting[done] % 10 == 0:
                print(f"{outcome.total()} inputs survived in {time.monotonic() - began:.0f} s", flush=True)
    print(f"{outcome.total()} inputs survived in {time.monotonic() - began:.0f} s")
    print(report(outcome))
    missing = unreached(outcome)
    if missing:
        sys.exit(f"not reached, too few inputs: {', '.join(missing)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
