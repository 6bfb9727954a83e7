"""What is not as before, in mappings and in tuples, and the whole again from it."""

from collections.abc import Mapping
from itertools import count
from typing import TypeVar

V = TypeVar("V")


def changed(before: Mapping[str, V], after: Mapping[str, V]) -> dict[str, V | None]:
    """The entries that are not as before; None: there is none any more."""
    found: dict[str, V | None] = {
        name: value for name, value in after.items() if name not in before or before[name] != value
    }
    return found | {name: None for name in before if name not in after}


def merged(before: Mapping[str, V], changes: Mapping[str, V | None]) -> dict[str, V]:
    """The entries after `changes`."""
    found = {**before, **changes}
    return {name: value for name, value in found.items() if value is not None}


def replaced(before: tuple[V, ...], after: tuple[V, ...]) -> dict[int, V]:
    """Entries that are not as before, by their place in tuples of one length. Mostly they are the same objects, which
    is quick to see."""
    if before is after:
        return {}
    return {n: new for n, old, new in zip(count(), before, after) if new is not old and new != old}


def restored(before: tuple[V, ...], entries: Mapping[int, V]) -> tuple[V, ...]:
    """The tuple with other entries in these places. Raises ValueError for a place that it does not have."""
    if not entries:
        return before
    values = list(before)
    for place, value in entries.items():
        if not 0 <= place < len(values):
            raise ValueError(f"names entry {place} of {len(values)}")
        values[place] = value
    return tuple(values)
