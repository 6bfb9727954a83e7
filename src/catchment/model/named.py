"""Many things in one line: the first of them by name, and how many more there are."""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

_LISTED_MAX = 10
_NAMED_MAX = 3

T = TypeVar("T")


def listed(things: Sequence[object]) -> str:
    """The first ten of them, and how many more there are."""
    return _first(things, _LISTED_MAX)


def tables_named(tables: Collection[object], *, some: str = "are", one: str = "is") -> str:
    """Subject and verb of a sentence about tables: `shop.orders is`, or of many their number, the first three names
    and where the others are listed."""
    if len(tables) == 1:
        return f"{next(iter(tables))} {one}"
    more = "; see catchment tables" if len(tables) > _NAMED_MAX else ""
    return f"{len(tables):,} tables ({_first(list(tables), _NAMED_MAX)}{more}) {some}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 try`, `2 tries`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def by_cause(told: Iterable[tuple[T, str]]) -> dict[str, list[T]]:
    """Things by what is said of them, in the order in which they came: of each cause a log has one line."""
    found: dict[str, list[T]] = {}
    for thing, cause in told:
        found.setdefault(cause, []).append(thing)
    return found


def _first(things: Sequence[object], most: int) -> str:
    more = f" and {len(things) - most:,} more" if len(things) > most else ""
    return ", ".join(map(str, things[:most])) + more
