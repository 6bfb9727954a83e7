"""The foreign keys of a shard through one turn: what they did, which of them are left, and of whose rows nobody can
tell any more."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from catchment.epoch.xa import Commits
from catchment.model.epoch import TableShape
from catchment.model.foreign_key import ForeignKey
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvent
from catchment.schema.foreign_keys import dropped_keys
from catchment.schema.passage import Stopped
from catchment.serve.stream.family import Became, Family, acts, became
from catchment.serve.stream.family_images import FamilyImages
from catchment.source.stretch import Stretch
from catchment.source.view import View
from catchment.wire.log.facts import Images


@dataclass(frozen=True)
class KeysBehind:
    """Behind a turn: the `keys` that are left; None where none were asked for yet. `images` of what they did.
    `stopped`: children that cannot follow. `acted`: they may have changed rows."""

    keys: tuple[ForeignKey, ...] | None
    images: Mapping[TableId, pa.Table] = field(default_factory=dict)
    stopped: Mapping[TableId, Stopped] = field(default_factory=dict)
    acted: bool = False


class FamilyTurn:
    """Takes the images of a turn that begins at `state`. `view`: of the shard in front of it; None: there is none.
    `untold`: nobody is told of the turn."""

    def __init__(
        self,
        endpoint: Endpoint,
        state: ShardState,
        shapes: Mapping[TableId, TableShape],
        view: View | None,
        *,
        untold: bool,
    ) -> None:
        self._endpoint, self._state, self._shapes = endpoint, state, shapes
        self._view, self._untold = view, untold
        keys = state.keys or ()
        self._images = FamilyImages(
            tuple(key for key in keys if {key.child, key.parent} <= shapes.keys()), shapes
        )

    def add(self, read: Images) -> None:
        """Keep what is needed of the images."""
        self._images.add(read)

    def followed(
        self, stretch: Stretch, ends: Commits, events: Sequence[SchemaEvent], unfollowed: Collection[TableId]
    ) -> KeysBehind:
        """What the keys did. `events`: the DDL of the turn. `unfollowed`: tables that are not followed behind it.
        Raises CatchmentError."""
        keys, state = self._state.keys, self._state
        if not keys:
            return KeysBehind(keys)
        images = self._images.images(stretch, ends)
        torn = self._images.torn
        family = Family(
            self._endpoint,
            state.position,
            keys,
            self._shapes,
            state.definitions,
            self._view,
            stretch.at,
        )
        dropped = {key for key in keys if any(key.name.lower() in dropped_keys(e, key.child) for e in events)}
        altered = {event.effect.table for event in events if isinstance(event.effect, Columns)}
        altered |= {key.child for key in dropped}
        told = {copy.table for copy in state.copies if not is_bare(copy)} - {*unfollowed}
        found = Became() if self._untold else became(family, images, torn, altered, unfollowed, told)
        why = {**dict(_renamed(keys, events)), **found.lost}
        lost = {table: Stopped(table, reason) for table, reason in why.items() if table in told}
        left = tuple(
            key for key in keys if key not in dropped and key.child not in why and key.child not in unfollowed
        )
        shown = {table: rows for table, rows in found.images.items() if table not in lost}
        return KeysBehind(left, shown, lost, acts(family, images, torn))


def is_bare(copy: Copy) -> bool:
    """Whether nothing of a table is told."""
    return not copy.done and copy.copied is None and copy.born_after is None


def _renamed(keys: Sequence[ForeignKey], events: Sequence[SchemaEvent]) -> Iterator[tuple[TableId, str]]:
    """The children of keys about a column that was renamed: servers rename it in the key, too."""
    for event in events:
        if not isinstance(event.effect, Columns):
            continue
        names = {name.lower() for one in event.effect.renamed for name in (one.old, one.new)}
        for key in keys:
            about = key.columns if key.child == event.effect.table else ()
            about += key.referenced if key.parent == event.effect.table else ()
            if named := sorted(name for name in about if name.lower() in names):
                yield key.child, f"column {named[0]} was renamed, and the {key} is about it"
