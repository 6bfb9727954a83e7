"""The shape of a new copy of a table that keeps its past: its columns go on under their names in the lake's files.

Rows of before stay in those files. So a column keeps its physical name where its values of before and of now can stand
in one column. One that is new gets a name of its own, and one that is gone keeps its name from others.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment.model.column_rule import ColumnRule, rule_of
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import NEW_FEED, Unsupported
from catchment.model.renewal import Renewal
from catchment.model.table import Table
from catchment.model.widened import Widened
from catchment.schema.lake_columns import is_named, new_column
from catchment.schema.widening import holds_type
from catchment.wire.cells.masks import kept_type


def continued(
    shape: TableShape, former: TableShape, renews: Renewal, shards: Mapping[str, Table], *, ordered: bool
) -> TableShape:
    """The shape of a new copy, which is `shape` by itself, as one that goes on from `former`. `shards`: those that have
    the table. `ordered`: somebody ordered the copy, so columns whose values cannot stand together become new ones.

    Raises Unsupported where the past cannot go on.
    """
    _must_go_on(shape, former)
    columns, widened, faults = list[LakeColumn](), list[Widened](), dict[str, str]()
    for was in former.columns:
        new = next((c for c in shape.columns if was.live and is_named(c, was.column.name)), None)
        carried = None if new is None else _carried(shape, was, new)
        columns.append(carried or replace(was, live=False, torn=False))
        if new is not None and carried is not None:
            widened += _notes(shape.rules, carried, was, new, shards)
        elif new is not None:
            kinds = f"{was.column.type.kind.value} there, and {new.column.type.kind.value} now"
            faults[new.column.name] = f"column {new.column.name} is {kinds}"
    _must_stand_together(shape, faults, ordered=ordered)
    for new in shape.columns:
        if not any(c.live and is_named(c, new.column.name) for c in columns):
            columns.append(new_column(new.column, renews.of, columns, shards, shape.rules))
    names = {c.column.name: c.physical for c in columns if c.live}
    physical = {new.physical: names[new.column.name] for new in shape.columns}
    declared = tuple(replace(one, column=physical[one.column]) for one in shape.declared)
    return replace(shape, columns=tuple(columns), widened=tuple(widened), declared=declared, renews=renews)


def _must_go_on(shape: TableShape, former: TableShape) -> None:
    """Raise Unsupported where the feed makes something else of the table, or its rows are told apart otherwise."""
    why = ""
    hidden = [
        c.column.name
        for c in former.columns
        if c.live and rule_of(former.rules, c.column.name) != rule_of(shape.rules, c.column.name)
    ]
    if shape.mode is not former.mode:
        why = f"its mode is {former.mode.value} in the lake, and {shape.mode.value} now; put back the mode"
    elif hidden:
        why = (
            f"the rules under `columns` say other things of {', '.join(hidden)} now; put back those of before"
        )
    elif shape.partition_column != former.partition_column:
        why = "`arrange` partitions it otherwise now; put back what was there"
    elif shape.key != former.key:
        keys = f"({', '.join(former.key)}) in the lake, and ({', '.join(shape.key)}) now"
        why = f"its key is {keys}; put back the key"
    if why:
        raise Unsupported(
            f"{shape.table}: the lake keeps the past of its rows, and {why}, or start {NEW_FEED}"
        )


def _must_stand_together(shape: TableShape, faults: Mapping[str, str], *, ordered: bool) -> None:
    """Raise Unsupported for columns whose values of before and of now cannot stand together, unless new ones are
    `ordered` in their place. In a key they never can be."""
    if not faults or (ordered and not faults.keys() & set(shape.key)):
        return
    raise Unsupported(
        f"{shape.table}: the lake keeps the past of its rows, and {', '.join(faults.values())}: values of both cannot "
        "stand in one column; give it back its type, or another name. Or, unless it is a part of the key, let the "
        "former values go out of sight, as those of a column that is dropped: `catchment dump start FEED.yaml --table "
        f"{shape.table}`"
    )


def _carried(shape: TableShape, was: LakeColumn, new: LakeColumn) -> LakeColumn | None:
    """A column as it goes on; None where its values of before and of now cannot stand together."""
    before, now = was.column.type, new.column.type
    column = new.column
    if kept_type(shape.rules, was.column) != kept_type(shape.rules, column) and not holds_type(now, before):
        if not holds_type(before, now) or column.name in shape.key:
            return None
        column = replace(column, type=before)
    return replace(new, column=column, physical=was.physical)


def _notes(
    rules: Sequence[ColumnRule],
    carried: LakeColumn,
    was: LakeColumn,
    new: LakeColumn,
    shards: Mapping[str, Table],
) -> Sequence[Widened]:
    """What a column's types differ in: from older files, or on the shards, where the lake's is the wider one."""
    if carried.column.type != new.column.type:
        holders = tuple(sorted(set(shards) - set(new.missing)))
        return [Widened(carried.physical, new.column.type, holders)]
    if kept_type(rules, was.column) != kept_type(rules, carried.column):
        return [Widened(carried.physical, was.column.type)]
    return []
