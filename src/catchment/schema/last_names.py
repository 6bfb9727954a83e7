"""What columns are named in the end that several statements rename, one after the other. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from catchment.schema.ddl import Columns
from catchment.schema.filling import Filled
from catchment.schema.redeclared import Redeclared
from catchment.schema.renamed import Renamed

Told = TypeVar("Told", Filled, Redeclared)


def name_behind(name: str, effects: Iterable[Columns]) -> str | None:
    """The name that a column has behind effects, the first of which finds it under this one; None: one drops it."""
    for effect in effects:
        if _is_among(name, effect.dropped):
            return None
        name = next((one.new for one in effect.renamed if one.old.lower() == name.lower()), name)
    return name


def names_after(effects: Iterable[Columns]) -> dict[str, bool]:
    """Of each name, in lower case, that effects give or take away, whether a column has it in the end."""
    found: dict[str, bool] = {}
    for effect in effects:
        gone = (*effect.dropped, *(one.old for one in effect.renamed))
        came = (*(one.new for one in effect.renamed), *effect.added)
        found |= {name.lower(): False for name in gone}
        found |= {name.lower(): True for name in came}
    return found


def under_last_names(effects: Sequence[Columns]) -> list[Columns]:
    """Effects that come to the same, of which fewer rename. A column that one brings, and another renames, has its last
    name at once. So the lake gets no column for a name that no epoch shows.

    That is so where nothing else is said of these names between the two.
    """
    found = list(effects)
    for place in range(len(found)):
        for one in found[place].renamed:
            came = next((at for at in reversed(range(place)) if _brings(found[at], one.old)), None)
            if came is not None and _is_quiet(found[came : place + 1], one):
                found[came] = _brought(found[came], one)
                found[place] = _without(found[place], one)
    return found


def _brings(effect: Columns, name: str) -> bool:
    return _is_among(name, effect.added) or _is_among(name, [one.new for one in effect.renamed])


def _is_quiet(effects: Sequence[Columns], said: Renamed) -> bool:
    """Whether the names of a renaming stand in the effects nowhere else than where the first brings the column, and the
    last renames it."""
    first, *between, last = effects
    begun = next((one for one in first.renamed if one.new.lower() == said.old.lower()), None)
    spoken = _spoken(_without(first, begun) if begun is not None else _unbrought(first, said.old))
    spoken += [name for effect in (*between, _without(last, said)) for name in _spoken(effect)]
    return not {said.old.lower(), said.new.lower()} & set(map(str.lower, spoken))


def _spoken(effect: Columns) -> list[str]:
    """The names that an effect is about."""
    modified = (one.column for one in effect.modified)
    renamed = (name for one in effect.renamed for name in (one.old, one.new))
    return [*effect.added, *effect.dropped, *modified, *renamed]


def _brought(effect: Columns, said: Renamed) -> Columns:
    """An effect that brings a column under the name that it gets later."""
    if not _is_among(said.old, effect.added):
        told = [
            Renamed(one.old, said.new) if one.new.lower() == said.old.lower() else one
            for one in effect.renamed
        ]
        return replace(effect, renamed=tuple(one for one in told if one.old != one.new))
    added = tuple(said.new if name.lower() == said.old.lower() else name for name in effect.added)
    filled = tuple(_of_name(said, one.column, one) for one in effect.filled)
    declared = tuple(_of_name(said, one.column, one) for one in effect.declared)
    return replace(effect, added=added, filled=filled, declared=declared)


def _of_name(said: Renamed, column: str, told: Told) -> Told:
    """What is told of a column, under its new name if it is that one."""
    return replace(told, column=said.new) if column.lower() == said.old.lower() else told


def _unbrought(effect: Columns, name: str) -> Columns:
    return replace(effect, added=tuple(one for one in effect.added if one.lower() != name.lower()))


def _without(effect: Columns, said: Renamed) -> Columns:
    return replace(effect, renamed=tuple(one for one in effect.renamed if one != said))


def _is_among(name: str, names: Iterable[str]) -> bool:
    return any(name.lower() == one.lower() for one in names)
