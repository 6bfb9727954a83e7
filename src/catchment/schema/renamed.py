"""Columns that get another name, by RENAME COLUMN or by CHANGE, as a statement says it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catchment.schema.statement import Word


@dataclass(frozen=True, slots=True)
class Renamed:
    """A column that was named `old`, and is named `new` behind a statement."""

    old: str
    new: str


def renamed(action: Sequence[Word]) -> Renamed | None:
    """The column to which an action of an ALTER TABLE gives another name. None where it does something else, or says it
    in a form that is not known."""
    keywords = [word.keyword for word in action]
    names: Sequence[Word] = ()
    if keywords[:2] == ["RENAME", "COLUMN"]:
        names = (action[2], action[4]) if len(action) == 5 and keywords[3] == "TO" else ()
    elif keywords[:1] == ["CHANGE"]:
        rest = action[2:] if keywords[1:2] == ["COLUMN"] else action[1:]
        names = rest[:2] if len(rest) > 2 and rest[0].keyword != "IF" else ()
    if len(names) < 2 or any(word.quote == "'" for word in names) or names[0].text == names[1].text:
        return None
    return Renamed(names[0].text, names[1].text)


def are_clear(
    found: Sequence[Renamed],
    actions: Iterable[Sequence[Word]],
    added: Iterable[str],
    dropped: Iterable[str],
    modified: Iterable[str],
) -> bool:
    """Whether it is told what columns become that one ALTER TABLE renames. It may give a name that it drops, and add a
    column of a name that it takes away. Anything else that it says of these names is not known.

    `modified`: columns that keep their names. `actions`: all of them, of which places and conditions count.
    """
    old, new = ({one.old.lower() for one in found}, {one.new.lower() for one in found})
    if len(old | new) < 2 * len(found):
        return False  # a swap, a chain, or the case of letters
    clashes = (
        {*map(str.lower, modified)} & (old | new),
        {*map(str.lower, added)} & new,
        {*map(str.lower, dropped)} & old,
    )
    return not any(clashes) and not any(_is_in_doubt(action, old | new) for action in actions)


def _is_in_doubt(action: Sequence[Word], names: set[str]) -> bool:
    """Whether an action holds for a column that may be there, or stands behind one that gets another name."""
    place = action[-1].text.lower() if len(action) > 1 and action[-2].keyword == "AFTER" else ""
    return place in names or any(word.keyword == "IF" for word in action)
