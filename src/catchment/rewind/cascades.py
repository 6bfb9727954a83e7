"""What foreign keys did to the rows of children in a stretch of log, which tells that of their parents alone.

Each row of a child has *lives*. One goes from the place in the log where the row got its values to where it gets its
next ones. A row as the lake has it lives from the beginning. An *event* is a parent that goes or changes its key, at a
place. It ends the lives with its key that it meets, or gives them another key. That is an event for their own children
in turn, at the same place. So events are found round after round, until a round finds the same ones. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from catchment.model.foreign_key import ForeignKey
from catchment.model.table import TableId
from catchment.rewind.lives import END, Child, Fates, Lake, Unfollowed
from catchment.rewind.parents import Events, Side, caused, events_of

_ROUNDS_MAX = 100


@dataclass(frozen=True)
class Cascades:
    """The children of foreign keys behind a stretch of log, and by the number of the key all events that met them."""

    children: Mapping[TableId, Child]
    events: Mapping[int, Events]

    def fates(self) -> dict[TableId, Fates]:
        """What became of the rows of children that foreign keys ended or changed last."""
        ended = {table: child.fates() for table, child in self.children.items()}
        return {table: one for table, one in ended.items() if one is not None}


def cascades(
    foreign_keys: Sequence[ForeignKey],
    sides: Mapping[TableId, Side],
    row_keys: Mapping[TableId, tuple[str, ...]],
    lake: Lake,
    selected: Collection[TableId] = (),
    carried: Mapping[TableId, tuple[str, ...]] = MappingProxyType({}),
    moment: int = END,
) -> Cascades:
    """What the foreign keys did to their children. `row_keys`: of all children. `selected`: those of which `lake` gives
    rows as they were at some moment of the stretch, in front of the place `moment`. `carried`: columns that changes of
    a child have beside those that decide.

    Raises Unfollowed.
    """
    told = {
        number: events_of(key, sides[key.parent])
        for number, key in enumerate(foreign_keys)
        if key.parent in sides
    }
    children = {
        table: Child(
            table,
            row_keys[table],
            tuple(foreign_keys),
            sides.get(table),
            lake,
            moment if table in selected else 0,
            carried.get(table, ()),
        )
        for table in dict.fromkeys(key.child for key in foreign_keys)
    }
    derived: dict[int, Events] = {}
    for _ in range(_ROUNDS_MAX):
        changes = {table: child.meet(_sum(told, derived)) for table, child in children.items()}
        found = {
            number: caused(
                key,
                one.before.select(key.referenced),
                one.after.select(key.referenced),
                one.places,
                one.ended,
            )
            for number, key in enumerate(foreign_keys)
            if (one := changes.get(key.parent)) is not None
        }
        found = {number: events for number, events in found.items() if len(events.places)}
        if found.keys() == derived.keys() and all(found[number].same(derived[number]) for number in found):
            break
        derived = found
    else:
        raise Unfollowed(
            foreign_keys[0].child, f"foreign keys changed rows in more than {_ROUNDS_MAX} rounds"
        )
    return Cascades(children, _sum(told, derived))


def _sum(told: Mapping[int, Events], derived: Mapping[int, Events]) -> dict[int, Events]:
    both = {number: told[number] + derived[number] for number in told.keys() & derived.keys()}
    return {**told, **derived, **both}
