"""Comparing two states of the same rows by key and by a hash of their values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from catchment.wire.keys import keys

NAMED_MAX = 20


@dataclass(frozen=True, slots=True)
class Differences:
    """How many keys differ, and the first of them as text: `missing` and `extra` at the lake, `changed` in
    value.
    """

    missing: int = 0
    extra: int = 0
    changed: int = 0
    named: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Keys that differ."""
        return self.missing + self.extra + self.changed

    def __add__(self, other: "Differences") -> "Differences":
        named = (*self.named, *other.named)[:NAMED_MAX]
        return Differences(
            self.missing + other.missing, self.extra + other.extra, self.changed + other.changed, named
        )


def differences(source: pa.Table, lake: pa.Table, key: Sequence[str], columns: Sequence[str]) -> Differences:
    """Keys whose rows differ between source and lake in `columns`; both have at most one row per key."""
    here, there = keys.encode(source, key), keys.encode(lake, key)
    at = keys.KeySet(there).find(here)
    found = at >= 0
    unequal = np.zeros(len(at), dtype=bool)
    unequal[found] = keys.hash_rows(source, columns)[found] != keys.hash_rows(lake, columns)[at[found]]
    matched = np.zeros(lake.num_rows, dtype=bool)
    matched[at[found]] = True
    named = [
        *_named("missing at the lake", source, key, ~found),
        *_named("only at the lake", lake, key, ~matched),
        *_named("differs", source, key, unequal),
    ]
    # A key that the lake holds twice matches once: the second row counts as extra.
    return Differences(
        int((~found).sum()), int((~matched).sum()), int(unequal.sum()), tuple(named[:NAMED_MAX])
    )


def _named(
    what: str, rows: pa.Table, key: Sequence[str], mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> list[str]:
    at = np.flatnonzero(mask)[:NAMED_MAX]
    if len(at) == 0:
        return []
    chosen = rows.select(list(key)).take(pa.array(at)).to_pylist()
    return [f"{what}: " + ", ".join(f"{name}={value!r}" for name, value in row.items()) for row in chosen]
