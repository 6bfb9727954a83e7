"""Many hostile events, one small dump each: for long runs, also under a sanitizer.

    python -m tests.wire.recordings build/recordings
    dev/sanitized python -m tests.wire.fuzz_run build/recordings INPUTS [SEED]

Each input is a seed (seeds.py) with its target changed, one with a definition that does not fit, or a changed answer
to SELECT or PREPARE (fuzz_answers.py). The report says of each event type, each type of column in the log and in an
answer, each kind of JSON and each event in a payload how many inputs were decoded and how many ended in which error.
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

import msgspec

from catchment.flow.epoch.definitions import Followed
from catchment.model.definition import Definition
from catchment.model.errors import AlteredUnseen, CatchmentError, CorruptLog, CorruptResult, Unsupported
from catchment.model.table import TableId
from catchment.wire import metadata
from catchment.wire.log import LogDecoder
from tests.wire import fuzz_answers
from tests.wire.events import HEADER, events_of, kind_of, packet, seal
from tests.wire.fuzz import EXPECTED, change
from tests.wire.fuzz_definitions import unfit
from tests.wire.recorded import Answer, Recording
from tests.wire.seeds import DECLARED, TABLE_MAP, Definitions, Seed, seeds
from tests.wire.small_tables import ALTERED

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
        last += change(rng, event, seed.first, last)
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


def decoded(
    rng: random.Random, seed: Seed, event: bytes, sound: bool, definitions: Definitions | None = None
) -> str:
    """What became of the input, with other definitions than the seed's. Raises AssertionError when that is not what it
    should be."""
    known = seed.definitions if definitions is None else definitions
    decoder = LogDecoder(
        seed.place,
        kinds=seed.kinds,
        definitions=known,
        on_ddl=Followed(known, known.values()).on_ddl if known else None,
        before=rng.choice(IMAGES),
        sparse=rng.random() < 0.5,
    )
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
        check_error(decoder, error, seed, len(raw) if sound else 1 << 32)
    for images in decoder.take_images():
        images.batch.validate(full=True)
        assert images.batch.nbytes < ROWS_BYTES
    if rng.random() < 0.1:
        decoder.take_groups().validate(full=True)
    return ended


def check_error(decoder: LogDecoder, error: CatchmentError, seed: Seed, size: int) -> None:
    """It says the file, and a malformed log a place among the bytes that came. It stays the answer to further bytes."""
    if isinstance(error, AlteredUnseen | Unsupported):
        assert f"{seed.place.file}:" in str(error) or seed.name == "event 4", str(error)
    if not isinstance(error, CorruptLog):
        return
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


def memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Input(msgspec.Struct, frozen=True):
    """A seed, the bytes in place of its target, whether they keep its header, and the definitions to read it with."""

    seed: Seed | Answer
    bytes: bytes
    sound: bool = True
    definitions: Definitions = {}

    def __str__(self) -> str:
        return f"{self.seed.name}: {self.bytes.hex()}, {self.definitions}"

    def ended(self, rng: random.Random) -> str:
        """What became of it. Raises AssertionError when that is not what it should be."""
        if isinstance(self.seed, Answer):
            return fuzz_answers.decoded(rng, self.seed, self.bytes)
        return decoded(rng, self.seed, self.bytes, self.sound, self.definitions)


def draw(rng: random.Random, seed: Seed | Answer, others: list[Definition]) -> Input:
    """`others`: definitions that may stand in for those of the seed."""
    if isinstance(seed, Answer):
        return Input(seed, fuzz_answers.changed(rng, seed))
    definitions = seed.definitions
    if definitions and rng.random() < 0.3:
        definitions = {table: unfit(rng, one, others) for table, one in definitions.items()}
        if rng.random() < 0.7:
            return Input(seed, seed.target, True, definitions)
    return Input(seed, *changed(rng, seed), definitions)


def run(found: list[Seed | Answer], inputs: int, seed: int) -> Outcome:
    """Inputs by the name of their seed and what became of them. Raises AssertionError with the number of an
    input that is not survived; the same arguments repeat it."""
    by_name: dict[str, list[Seed | Answer]] = {}
    for one in found:
        by_name.setdefault(one.name, []).append(one)
    names = sorted(by_name)
    logged = [one for one in found if isinstance(one, Seed)]
    others = [definition for one in logged for definition in one.definitions.values()]
    outcome: Outcome = Counter()
    rng = random.Random(seed)
    before = memory_kib()
    with descriptions_kept(logged):
        for number in range(inputs):
            drawn = draw(rng, rng.choice(by_name[names[number % len(names)]]), others)
            began = time.process_time()
            try:
                ended = drawn.ended(rng)
            except BaseException as error:
                raise AssertionError(f"input {seed}/{number}, {drawn}") from error
            assert time.process_time() - began < SECONDS, f"input {seed}/{number}, {drawn} took long"
            outcome[drawn.seed.name, ended] += 1
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
    """Names of which nothing was decoded, or nothing ended in CorruptLog or CorruptResult, or, where there are
    definitions, in AlteredUnseen."""
    names = {name for name, _ in outcome}
    missing = {n for n in names if not outcome[n, _DECODED]}
    missing |= {
        n for n in names if not any(outcome[n, error.__name__] for error in (CorruptLog, CorruptResult))
    }
    declared = {n for n in names if n.startswith((DECLARED, ALTERED))}
    return sorted(missing | {n for n in declared if not outcome[n, AlteredUnseen.__name__]})


def all_seeds(made: list[Recording]) -> list[Seed | Answer]:
    return [*seeds(made), *fuzz_answers.answers(made)]


def main(path: str, inputs: int, seed: int) -> None:
    """Batches with seeds from `seed` on in PROCESSES processes; says now and then how far it is, then all outcomes."""
    found = all_seeds(pickle.loads(Path(path).read_bytes()))
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
