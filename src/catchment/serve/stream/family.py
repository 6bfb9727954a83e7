"""What foreign keys did to children in a turn: rows that went or got other values, of which the log is silent.

A view of the shard from before the turn shows the children that parents had. Where there is none, nobody can tell which
rows changed: the child begins again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.definition import Definition
from catchment.model.epoch import TableShape
from catchment.model.errors import CatchmentError, Purged
from catchment.model.foreign_key import ForeignKey, above, below
from catchment.model.image import GROUP
from catchment.model.position import LogOffset, Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.rewind.lives import Lake, Unfollowed
from catchment.rewind.parents import all_valid, events_of, sides_of
from catchment.rewind.silent import Silent, silent
from catchment.serve.stream.family_images import FamilyLog, altered_in, family_log
from catchment.source.log import read_facts
from catchment.source.view import View
from catchment.wire.keys import keys as encoding

Tables = Mapping[TableId, pa.Table]
NO_VIEW = "no snapshot of the shard shows any more which rows these were"


@dataclass(frozen=True)
class Family:
    """A shard's tables with foreign keys between `start` and `stop` of its log. `view`: of the shard in front of
    `start`; None: there is none. `definitions`: where the log does not describe itself."""

    endpoint: Endpoint
    start: Position
    keys: tuple[ForeignKey, ...]
    shapes: Mapping[TableId, TableShape]
    definitions: Sequence[Definition]
    view: View | None
    stop: LogOffset

    @property
    def whole(self) -> tuple[ForeignKey, ...]:
        """The keys of which both tables are followed."""
        return tuple(key for key in self.keys if {key.parent, key.child} <= self.shapes.keys())


@dataclass(frozen=True)
class Became:
    """What became of children: `images` of rows that keys ended or changed, with the numbers of the turn's groups;
    `lost`: children of which nobody can tell, and why."""

    images: Tables = field(default_factory=dict)
    lost: Mapping[TableId, str] = field(default_factory=dict)


def became(
    family: Family,
    images: Tables,
    torn: Collection[TableId],
    altered: Collection[TableId],
    unfollowed: Collection[TableId],
    told: Collection[TableId],
) -> Became:
    """What a turn did to the children among the tables `told`. `images`: of the family in the turn. `torn`: tables that
    it does not tell all of; `altered`: those of which columns or keys are others behind it. `unfollowed`: tables that
    are not followed any more. Raises CatchmentError."""
    why = dict(_without_parents(family, unfollowed))
    left = [key for key in family.keys if key.child not in why and key.child not in unfollowed]
    acting = _acting(left, family.shapes, images)
    reached = below(tuple(left), frozenset(key.parent for key in acting) | frozenset(torn))
    for key in left:
        if key in acting or key.parent in reached or key.parent in torn:
            _lose(left, why, key.child, _untold(family, key, {*torn, *altered}))
    found: dict[TableId, pa.Table] = {}
    while acting := [key for key in acting if key.child not in why]:
        sought = reached & {*told} - why.keys()
        mine = [
            key for key in left if key.child in sought | above(tuple(left), sought) and key.child not in why
        ]
        if not sought or not {*acting} & {*mine}:
            break
        try:
            found = dict(_sought(family, mine, images).images)
            break
        except Unfollowed as fault:
            _lose(left, why, fault.child, str(fault))
    shown = {table: _of_turn(rows) for table, rows in found.items() if table in told and table not in why}
    return Became(
        {table: rows for table, rows in shown.items() if rows.num_rows},
        {table: reason for table, reason in why.items() if table in told},
    )


def acts(family: Family, images: Tables, torn: Collection[TableId]) -> bool:
    """Whether keys may have changed any rows."""
    return bool(torn) or bool(_acting(family.keys, family.shapes, images))


def _acting(
    keys: Sequence[ForeignKey], shapes: Mapping[TableId, TableShape], images: Tables
) -> list[ForeignKey]:
    """The keys of which parents went or changed, as the log itself says."""
    sides = sides_of(images, {table: shapes[table].key for table in images})
    return [key for key in keys if key.parent in sides and len(events_of(key, sides[key.parent]).places)]


def _without_parents(family: Family, unfollowed: Collection[TableId]) -> Iterator[tuple[TableId, str]]:
    """The children of which a parent is not followed, and why they are not either."""
    found = {}
    for key in family.keys:
        if key.parent in unfollowed or not {key.parent, key.child} <= family.shapes.keys():
            found[key.child] = f"its parent {key.parent} is not followed any more ({key})"
    yield from found.items()
    for table in below(family.keys, frozenset(found)) - found.keys():
        yield table, "a parent of its parent is not followed any more"


def _untold(family: Family, key: ForeignKey, altered: Collection[TableId]) -> str:
    acted = f"shard {family.endpoint.shard}: the {key} may have changed rows"
    if key.unfollowed:
        return f"{acted}: {key.unfollowed}"
    if {key.child, key.parent} & {*altered}:
        return f"{acted} while it or its parent was altered"
    return "" if family.view is not None else f"{acted}: {NO_VIEW}"


def _lose(keys: Sequence[ForeignKey], why: dict[TableId, str], child: TableId, reason: str) -> None:
    if reason:
        for table in {child} | below(tuple(keys), frozenset({child})):
            why.setdefault(table, reason)


def _of_turn(images: pa.Table) -> pa.Table:
    """Those of the turn itself: groups in front of it have numbers below zero."""
    return images.filter(pc.greater_equal(images.column(GROUP), 0))


def _sought(family: Family, keys: Sequence[ForeignKey], images: Tables) -> Silent:
    """What the keys did from the floor of the view to the end of the turn. Raises Unfollowed, and CatchmentError."""
    view = family.view
    assert view is not None
    early = log_since(family, keys, family.start.at)
    before = {table: _shifted(found, -early.groups) for table, found in early.images.items()}
    tables = {table for key in keys for table in (key.parent, key.child)}
    parts = {
        table: [part[table] for part in (before, images) if table in part]
        for table in tables & (before.keys() | images.keys())
    }
    _must_be_untorn(keys, [table for table, found in parts.items() if found[0].schema != found[-1].schema])
    both = {table: pa.concat_tables(found) for table, found in parts.items()}
    return silent_in(family, keys, both, early.behind - early.groups)


def log_since(family: Family, keys: Sequence[ForeignKey], until: LogOffset) -> FamilyLog:
    """The family's images from the floor of the view on. Raises Unfollowed where it was altered, and CatchmentError."""
    assert family.view is not None
    try:
        found = family_log(
            family.endpoint,
            family.start,
            family.view,
            until,
            family.whole,
            family.shapes,
            family.definitions,
        )
    except Purged as error:
        raise Unfollowed(keys[0].child, str(error)) from error
    _must_be_untorn(keys, found.torn)
    return found


def _must_be_untorn(keys: Sequence[ForeignKey], torn: Collection[TableId]) -> None:
    for key in keys:
        if {key.child, key.parent} & {*torn}:
            raise Unfollowed(key.child, f"the {key} may have changed rows while it or its parent was altered")


def silent_in(family: Family, keys: Sequence[ForeignKey], images: Tables, behind: int) -> Silent:
    """What keys did in a stretch from the floor of the view on, with all columns of the children. Raises Unfollowed."""
    followed = _followed(family, keys, images)
    row_keys = {key.child: family.shapes[key.child].key for key in followed}
    columns = {
        table: tuple(column.name for column in family.shapes[table].definition.columns) for table in row_keys
    }
    sides = sides_of(images, {table: family.shapes[table].key for table in images})
    for table in row_keys.keys() & sides.keys():
        if {*columns[table]} - {*sides[table].images.schema.names}:
            raise Unfollowed(table, "its rows have other columns by now than the log has")
    found = silent(followed, sides, row_keys, shown_by(family), columns, behind)
    must_be_unaltered(family, keys)
    return found


def _followed(family: Family, keys: Sequence[ForeignKey], images: Tables) -> list[ForeignKey]:
    """The keys that can be followed. Raises Unfollowed where another one may have changed rows."""
    acting = _acting(keys, family.shapes, images)
    reached = below(tuple(keys), frozenset(key.parent for key in acting))
    for key in keys:
        if key.unfollowed and (key in acting or key.parent in reached):
            raise Unfollowed(key.child, f"the {key} may have changed rows: {key.unfollowed}")
    return [key for key in keys if not key.unfollowed]


def must_be_unaltered(family: Family, keys: Sequence[ForeignKey]) -> None:
    """Raise Unfollowed where a statement behind the turn may have altered what the view was asked for."""
    facts = read_facts(family.endpoint, family.start.server, family.stop, None).facts
    altered = altered_in(facts, {table for key in keys for table in (key.parent, key.child)}, family.start)
    for key in keys:
        if {key.child, key.parent} & altered:
            raise Unfollowed(
                key.child, f"the {key} may have changed rows, and it or its parent was altered since"
            )


def shown_by(family: Family) -> Lake:
    """The rows that the view shows."""

    def having(key: ForeignKey, values: pa.Table) -> pa.Table:
        assert family.view is not None
        try:
            rows = family.view.having(family.shapes[key.child].definition, values)
        except CatchmentError as error:
            raise Unfollowed(
                key.child, f"the {key} changed rows that cannot be read any more: {error}"
            ) from error
        if rows.select(key.columns).schema.types != values.schema.types:
            raise Unfollowed(key.child, f"the {key} changed rows whose columns have another type in the log")
        rows = rows.filter(pa.array(all_valid(rows.select(list(key.columns)))))
        wanted = encoding.KeySet(encoding.encode(values, key.columns))
        return rows.filter(pa.array(wanted.contains(encoding.encode(rows, key.columns))))

    return having


def _shifted(images: pa.Table, groups: int) -> pa.Table:
    at = images.schema.get_field_index(GROUP)
    moved = pa.array(images.column(GROUP).to_numpy() + np.int64(groups), pa.int64())
    return images.set_column(at, images.schema.field(at), moved)
