"""The six slices of all tests that are not part of `make test`. CI runs one for each landing.

A test belongs to the slice that a hash of its name gives, so adding a test moves no other. The hash is salted, and the
salt is the one with which the costs recorded in costs.tsv spread most evenly: `python -m tests.suite.slices` prints
the seconds of each slice and proposes a better salt when there is one.
"""

import hashlib
from collections.abc import Mapping

from tests.suite.costs import recorded

SLICES = 6
SALT = 1621
_SALTS_TRIED = 3000


def slice_of(unit: str, salt: int = SALT) -> int:
    """The slice, from 1 to SLICES, of a unit: the name of a test, or of a file whose tests stay together."""
    digest = hashlib.sha256(f"{salt} {unit}".encode()).digest()
    return int.from_bytes(digest[:8]) % SLICES + 1


def loads(units: Mapping[str, float], salt: int = SALT) -> dict[int, float]:
    """The seconds of each slice."""
    found = dict.fromkeys(range(1, SLICES + 1), 0.0)
    for unit, seconds in units.items():
        found[slice_of(unit, salt)] += seconds
    return found


def imbalance(units: Mapping[str, float], salt: int) -> float:
    """How much longer the longest slice takes than the mean one: 0.1 is a tenth."""
    found = loads(units, salt)
    return max(found.values()) / (sum(found.values()) / SLICES) - 1


def main() -> None:
    """Print the slices as they are, and the most even salt."""
    units = recorded().wide_units
    for number, seconds in loads(units).items():
        print(f"slice {number}: {seconds:6.0f} s")
    best = min(range(_SALTS_TRIED), key=lambda salt: imbalance(units, salt))
    print(f"salt {SALT}: {imbalance(units, SALT):.1%} uneven; salt {best}: {imbalance(units, best):.1%}")


if __name__ == "__main__":
    main()
