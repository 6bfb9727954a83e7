"""Random JSON documents, as Python values."""

import json
import random
import struct
from typing import Any

KEYS = ("a", "b", "long key", "ü", 'quo"te', "k.l", "x" * 300, "")
BORDERS = tuple(2**n + d for n in (7, 8, 15, 16, 31, 32, 63) for d in (-1, 0, 1))


def number(rng: random.Random) -> int | float:
    """Integers of all widths, doubles of all magnitudes: few digits, all digits, and any bits."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice((1, -1)) * rng.randrange(2 ** rng.randrange(1, 63))
    if kind == 1:
        return rng.choice(BORDERS)
    if kind == 2:
        return float(rng.randrange(-(10**17), 10**17)) * 10.0 ** rng.randrange(-60, 60)
    if kind == 3:
        return float(f"{rng.randrange(-99, 99)}e{rng.randrange(-30, 30)}")
    (value,) = struct.unpack("<d", rng.randbytes(8))
    return float(value) if abs(value) < float("inf") else 0.1


def text(rng: random.Random) -> str:
    """Short strings with characters of all planes and controls, and long plain ones."""
    if rng.randrange(4) == 0:
        return "y" * rng.randrange(400)
    points = (rng.choice((0x20, 0x80, 0x800, 0xD800, 0x110000)) for _ in range(rng.randrange(8)))
    return "".join(chr(rng.randrange(point)) for point in points).encode(errors="replace").decode()


def document(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 4 else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind <= 2:
        return number(rng)
    if kind <= 4:
        return text(rng)
    if kind <= 6:
        return [document(rng, depth + 1) for _ in range(rng.randrange(6))]
    return {key: document(rng, depth + 1) for key in (*rng.sample(KEYS, rng.randrange(4)), text(rng)[:9])}


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
