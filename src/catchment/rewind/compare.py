"""Comparing two states of the same rows by key and by a hash of their values, and what makes them equal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catchment.model.image import DELETED
from catchment.wire.keys import keys

NAMED_MAX = 20
Mask = npt.NDArray[np.bool_]


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


@dataclass(frozen=True)
class Compared:
    """Source and lake beside each other; both have their rows as of one epoch. `missing` and `changed` mark rows of
    the source, `extra` rows of the lake.

    A key that the lake holds twice matches once: the second row is an extra one.
    """

    source: pa.Table
    lake: pa.Table
    key: Sequence[str]
    missing: Mask
    changed: Mask
    extra: Mask

    @property
    def differences(self) -> Differences:
        """How many keys differ, and the first of them."""
        named = [
            *_named("missing at the lake", self.source, self.key, self.missing),
            *_named("only at the lake", self.lake, self.key, self.extra),
            *_named("differs", self.source, self.key, self.changed),
        ]
        return Differences(
            int(self.missing.sum()), int(self.extra.sum()), int(self.changed.sum()), tuple(named[:NAMED_MAX])
        )

    def mending(self) -> pa.Table:
        """The changes that make the lake's rows those of the source, one for each key, with DELETED.

        A key that the lake holds twice, and the source has, is written again: a delete would take both rows.
        """
        extra = self.lake.filter(pa.array(self.extra))
        extra_keys = keys.encode(extra, self.key)
        here = keys.encode(self.source, self.key)
        twice = keys.KeySet(extra_keys).contains(here)
        comes = self.source.filter(pa.array(self.missing | self.changed | twice))
        goes = extra.filter(pa.array(~keys.KeySet(here).contains(extra_keys)))
        goes = goes.take(pa.array(keys.first_of_each(keys.encode(goes, self.key))))
        goes = goes.select(self.source.schema.names)
        rows = pa.concat_tables([comes.cast(goes.schema), goes])
        deleted = np.arange(rows.num_rows) >= comes.num_rows
        return rows.append_column(DELETED, pa.array(deleted))


def compared(source: pa.Table, lake: pa.Table, key: Sequence[str]) -> Compared:
    """Compare all columns that the source has, by key and by a hash of the values. The source has a key once."""
    here, there = keys.encode(source, key), keys.encode(lake, key)
    columns = source.schema.names
    at = keys.KeySet(there).find(here)
    found = at >= 0
    unequal = np.zeros(len(at), dtype=bool)
    unequal[found] = keys.hash_rows(source, columns)[found] != keys.hash_rows(lake, columns)[at[found]]
    matched = np.zeros(lake.num_rows, dtype=bool)
    matched[at[found]] = True
    return Compared(source, lake, key, ~found, unequal, ~matched)


def _named(what: str, rows: pa.Table, key: Sequence[str], mask: Mask) -> list[str]:
    at = np.flatnonzero(mask)[:NAMED_MAX]
    if len(at) == 0:
        return []
    chosen = rows.select(list(key)).take(pa.array(at)).to_pylist()
    return [f"{what}: " + ", ".join(f"{name}={value!r}" for name, value in row.items()) for row in chosen]
