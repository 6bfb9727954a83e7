"""Many hostile logs, one group of events at a time: for long runs, also under a sanitizer.

    python -m tests.wire.recordings build/recordings
    dev/sanitized python -m tests.wire.fuzz_run build/recordings INPUTS [SEED]

Each input is the beginning of a dump and one group whose events are changed, and goes through the decoder in two
pieces. It reports how often events of each type were changed and what came of it.
"""

import pickle
import random
import struct
import sys
import time
from collections import Counter
from pathlib import Path

from catchment.model.position import LogOffset
from tests.wire.events import HEADER, joined, kind_of, seal
from tests.wire.fuzz import changed, survives
from tests.wire.recordings import PAYLOAD, Recording, unpacked

ARTIFICIAL = 0x20
BEGINS = (33, 34, 42, 162)  # events that begin a group
ROTATE = 4
BATCH = 10_000
Piece = tuple[list[bytes], LogOffset]


def pieces(recording: Recording) -> list[Piece]:
    """The groups of a dump, and the events between them, each as a dump from its own place."""
    found = []
    open_group: list[bytes] = []
    for event in recording[2]:
        if kind_of(event) == ROTATE and event[17] & ARTIFICIAL:
            rotate, head = event, b""
            open_group = []
        elif not head:
            head = event
        elif kind_of(event) in BEGINS or not open_group or kind_of(event) == ROTATE:
            open_group = [event]
            found.append((rotate, head, open_group))
        else:
            open_group.append(event)
    packed = [(r, h, group) for r, h, group in found if any(kind_of(event) == PAYLOAD for event in group)]
    for rotate, head, group in packed:
        found.append((rotate, head, [unpacked(e) if kind_of(e) == PAYLOAD else e for e in group]))
    return [placed_alone(*parts) for parts in found]


def placed_alone(rotate: bytes, head: bytes, group: list[bytes]) -> Piece:
    size, end = struct.unpack_from("<II", group[0], 9)
    place = LogOffset(rotate[HEADER + 8 : -4].decode(), end - size)
    moved = bytearray(rotate)
    moved[HEADER : HEADER + 8] = struct.pack("<Q", place.offset)
    copy = bytearray(head)
    copy[13:17] = bytes(4)  # a copy in a dump from the middle has no place
    return [seal(moved), seal(copy), *group], place


def run(made: list[Recording], inputs: int, seed: int) -> dict[tuple[int, str], int]:
    """Changed events by type, and the error that ended the input (empty: none). Raises AssertionError with the
    number of an input that is not survived."""
    seeds = [piece for recording in made for piece in pieces(recording)]
    for events, place in seeds:
        assert survives(joined(events), place, "full", 5) in ("", "Unsupported"), place
    with_type: dict[int, list[Piece]] = {}
    for piece in seeds:
        for kind in {kind_of(event) for event in piece[0]}:
            with_type.setdefault(kind, []).append(piece)
    chosen = sorted(with_type)
    found: Counter[tuple[int, str]] = Counter()
    for number in range(inputs):
        rng = random.Random(seed << 40 | number)
        wanted = rng.choice(chosen)
        events, place = rng.choice(with_type[wanted])
        hostile = list(events)
        likely = [i for i, event in enumerate(events) if kind_of(event) == wanted]
        types = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            i = rng.choice(likely) if rng.randrange(4) else rng.randrange(len(hostile))
            types.append(kind_of(hostile[i]))
            hostile[i] = changed(rng, hostile[i])
        raw = joined(hostile)
        began = time.process_time()
        try:
            ended = survives(raw, place, rng.choice(("full", "key")), rng.randrange(len(raw)))
        except BaseException as error:
            raise AssertionError(f"hostile input {seed}/{number}") from error
        assert time.process_time() - began < 5, f"hostile input {seed}/{number} took long"
        for kind in types:
            found[kind, ended] += 1
    return found


def main(path: str, inputs: int, seed: int) -> None:
    """Runs of BATCH inputs with seeds from `seed` on; says after each how far it is, and all outcomes at the end."""
    made = pickle.loads(Path(path).read_bytes())
    began = time.monotonic()
    outcome: Counter[tuple[int, str]] = Counter()
    for done in range(0, inputs, BATCH):
        outcome.update(run(made, min(BATCH, inputs - done), seed + done // BATCH))
        print(f"{min(done + BATCH, inputs)} inputs survived in {time.monotonic() - began:.0f} s", flush=True)
    for kind in sorted({kind for kind, _ in outcome}):
        counts = {ended or "decoded": n for (k, ended), n in sorted(outcome.items()) if k == kind}
        print(f"  type {kind:3}: {counts}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
