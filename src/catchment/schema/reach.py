"""Which tables a statement leads to: those that it names, and what views, triggers and routines of these name.

Pure. Too many names rather than too few: a name stands for all that a server may mean by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from catchment.model.stored import AllStored, Stored
from catchment.schema.names import Name, named, without_marks
from catchment.schema.statement import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, AmbiguousText, Word, words_of

_DYNAMIC = frozenset({"PREPARE", "EXECUTE"})
# A view's text does not say in which mode it is read. A mode in which it cannot be read is not the one.
_MODES = (ANSI_QUOTES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES)


@dataclass(frozen=True, slots=True)
class Body:
    """What a stored object names; `obscure` says why that may not be all, empty when it is all."""

    what: str
    names: frozenset[Name]
    obscure: str = ""


@dataclass(frozen=True, slots=True)
class Objects:
    """All stored objects of a shard by the name that runs them; `lacking`: privileges without which some are hidden.

    `hidden`: the names that lead on to such ones; None where each may.
    """

    bodies: Mapping[Name, tuple[Body, ...]]
    lacking: tuple[str, ...] = ()
    hidden: frozenset[Name] | None = None

    @classmethod
    def of(cls, catalog: AllStored, *, mysql: bool = False) -> "Objects":
        """The objects of a catalog, their bodies read."""
        bodies: dict[Name, tuple[Body, ...]] = {}
        for stored in catalog.stored:
            name = without_marks(stored.schema), without_marks(stored.name)
            bodies[name] = (*bodies.get(name, ()), _body(stored, mysql=mysql))
        if catalog.hidden is None:
            return cls(bodies, catalog.lacking)
        hidden = ((without_marks(one.schema), without_marks(one.name)) for one in catalog.hidden)
        return cls(bodies, catalog.lacking, frozenset(hidden))

    def hides(self, name: Name) -> bool:
        """Whether `name` may lead to what the feed's user is not shown."""
        return bool(self.lacking) and (self.hidden is None or name in self.hidden)


@lru_cache(maxsize=4096)  # a bare MariaDB stores 212 objects, whose texts take 0.4 s to read
def _body(stored: Stored, *, mysql: bool) -> Body:
    if stored.text is None:
        return Body(stored.what, frozenset(), "the catalog does not show what it does")
    read: list[tuple[Word, ...]] = []
    for mode in _MODES if stored.sql_mode is None else (stored.sql_mode,):
        try:
            read.append(words_of(stored.text, mysql=mysql, sql_mode=mode))
        except AmbiguousText as why:
            unreadable = str(why)
    if not read:
        return Body(stored.what, frozenset(), f"its body cannot be read: {unreadable}")
    dynamic = any(word.keyword in _DYNAMIC for words in read for word in words)
    names = frozenset[Name]().union(*(named(words, stored.schema) for words in read))
    return Body(stored.what, names, "it runs SQL that it makes itself" if dynamic else "")


@dataclass(frozen=True, slots=True)
class Reach:
    """Names that a statement leads to, with what has them (empty: the statement itself), and why there may be more."""

    names: Mapping[Name, str]
    obscure: str = ""


def reached(names: Iterable[Name], objects: Objects) -> Reach:
    """All names that `names` lead to, through whatever has one of them."""
    found = dict.fromkeys(names, "")
    waiting, obscure = list(found), ""
    while waiting:
        for body in objects.bodies.get(waiting.pop(), ()):
            obscure = obscure or (f"{body.what}: {body.obscure}" if body.obscure else "")
            new = [name for name in body.names if name not in found]
            found |= dict.fromkeys(new, body.what)
            waiting += new
    return Reach(found, obscure)
