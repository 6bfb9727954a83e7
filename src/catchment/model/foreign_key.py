"""Foreign keys by which the server changes rows of the child that no log tells."""

from collections.abc import Iterable
from enum import Enum

import msgspec

from catchment.model.table import TableId


class Does(Enum):
    """What happens to the children of a row that goes, or whose key changes."""

    KEEP = "keep"  # RESTRICT and NO ACTION: the row stays as it is while it has children
    FOLLOW = "follow"  # CASCADE: they go too, or get the new key
    FORGET = "forget"  # SET NULL


class ForeignKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key of `child` that changes rows. `columns` hold the values of `referenced` of the parent, place by place.

    `unfollowed`: why the feed cannot tell which rows it changes, empty where it can. Such a child is stale once the key
    may have changed any.
    """

    name: str
    child: TableId
    columns: tuple[str, ...]
    parent: TableId
    referenced: tuple[str, ...]
    on_delete: Does = Does.KEEP
    on_update: Does = Does.KEEP
    unfollowed: str = ""

    def __str__(self) -> str:
        return f"foreign key {self.name} of {self.child}"


def below(keys: tuple[ForeignKey, ...], tables: frozenset[TableId]) -> frozenset[TableId]:
    """The tables whose rows may change when rows of `tables` do: children, theirs, and so on."""
    return _reached([(key.parent, key.child) for key in keys], tables)


def above(keys: tuple[ForeignKey, ...], tables: frozenset[TableId]) -> frozenset[TableId]:
    """The tables whose changes may reach rows of `tables`: parents, theirs, and so on."""
    return _reached([(key.child, key.parent) for key in keys], tables)


def _reached(steps: Iterable[tuple[TableId, TableId]], tables: frozenset[TableId]) -> frozenset[TableId]:
    """What steps from one table to another lead to from these, however many."""
    known, found = list(steps), frozenset[TableId]()
    here = tables
    while here:
        here = frozenset(to for start, to in known if start in here) - found
        found |= here
    return found
