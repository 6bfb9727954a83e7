"""How many rows of a table a shard has left to copy: by its keys where they are integers, else by its catalog. Pure."""

from dataclasses import dataclass
from itertools import pairwise

from catchment.model.progress import Basis
from catchment.model.shard import Copy

# Below this part of the keys, what was seen of them says less than the catalog does.
_PART_MIN = 0.05
# Of a key of several columns the first may have few values: then it says nothing of the rows between two of them.
_KEYS_MIN = 100
# Stretches of keys whose density is compared.
_STRETCHES_MAX = 16


@dataclass(frozen=True, slots=True)
class Left:
    """Rows: likely so many, between two bounds."""

    low: float
    likely: float
    high: float

    def plus(self, other: "Left") -> "Left":
        """Those of both."""
        return Left(self.low + other.low, self.likely + other.likely, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Estimate:
    """`left` is None where nothing is known of it."""

    left: Left | None
    basis: Basis


@dataclass(frozen=True, slots=True)
class _Mark:
    """Rows so far, and the key up to which they are copied."""

    key: int
    rows: int


class RowsLeft:
    """Watches one copy over a run. By rows per key, a catalog that is wrong by half (InnoDB guesses from some pages)
    does no harm from the first chunks on."""

    def __init__(self) -> None:
        self._marks: list[_Mark] = []

    def look(self, copy: Copy) -> None:
        """The copy stands here now."""
        key = _integer(copy.copied)
        if key is None or (self._marks and key < self._marks[-1].key):  # it began again
            self._marks.clear()
        if key is None:
            return
        if self._marks and key == self._marks[-1].key:
            self._marks.pop()
        self._marks.append(_Mark(key, copy.rows))
        if len(self._marks) > _STRETCHES_MAX:
            self._marks = [*self._marks[:-1:2], self._marks[-1]]

    def estimate(self, copy: Copy) -> Estimate:
        """What is left of the copy that was looked at last."""
        if copy.done:
            return Estimate(Left(0, 0, 0), Basis.COUNTED)
        by_keys = self._by_keys(copy)
        if by_keys is not None:
            return Estimate(by_keys, Basis.KEYS)
        if copy.rows_expected > copy.rows:
            left = float(copy.rows_expected - copy.rows)
            return Estimate(Left(left, left, left), Basis.CATALOG)
        return Estimate(None, Basis.UNKNOWN)

    def _by_keys(self, copy: Copy) -> Left | None:
        end = _integer(copy.born_after)
        if end is None or len(self._marks) < 2:
            return None
        first, last = self._marks[0], self._marks[-1]
        keys, seen = end - last.key, last.key - first.key
        least = _KEYS_MIN if len(copy.copied or ()) > 1 else 1
        if keys < 0 or seen < max(_PART_MIN * (end - first.key), least):
            return None
        densities = [(b.rows - a.rows) / (b.key - a.key) for a, b in pairwise(self._marks)]
        likely = (last.rows - first.rows) / (last.key - first.key)
        return Left(keys * min(densities), keys * likely, keys * max(densities))


def _integer(bound: tuple[int | str, ...] | None) -> int | None:
    """The first column of a bound, where it is an integer."""
    return bound[0] if bound and isinstance(bound[0], int) else None
