"""Columns of a lake table as the shards drop and add them. A column that comes has a name of its own in the files."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count

from msgspec.structs import replace

from catchment.model.column_rule import ColumnRule, rule_of
from catchment.model.epoch import LakeColumn
from catchment.model.epoch_number import gci_of
from catchment.model.errors import Unsupported
from catchment.model.table import RESERVED, Column, Table, TableId, without_case
from catchment.schema.ddl import AGAIN


def lacking(name: str, shards: Mapping[str, Table]) -> tuple[str, ...]:
    """The shards whose table has no column of that name."""
    # Many shards share one table: each is looked at once.
    tables = {id(table): table for table in shards.values()}
    having = {one for one, table in tables.items() if name.lower() in by_name(table)}
    return tuple(sorted(shard for shard, table in shards.items() if id(table) not in having))


def by_name(table: Table) -> dict[str, Column]:
    """The columns of a table by their names in lower case."""
    return {c.name.lower(): c for c in table.columns}


def is_named(known: LakeColumn, name: str) -> bool:
    """Whether the source names a column so, in any case."""
    return known.column.name.lower() == name.lower()


def after_drop(known: LakeColumn, name: str, shard: str, others: Mapping[str, Table]) -> LakeColumn:
    """A column after a shard's DROP of `name`; `others`: the table as the other shards have it."""
    if not known.live or not is_named(known, name) or shard in known.missing:
        return known
    live = len(lacking(name, others)) < len(others)
    return replace(known, live=live, torn=live, missing=tuple(sorted({*known.missing, shard})))


def after_add(
    columns: tuple[LakeColumn, ...], name: str, shard: str, new: LakeColumn | None, table: TableId
) -> tuple[LakeColumn, ...]:
    """The columns after a shard's ADD. One that is live came from another shard, else `new` is appended. Raises
    Unsupported where the shard's former column of that name is live on other shards."""
    for place, known in enumerate(columns):
        if known.live and is_named(known, name):
            if known.torn and shard in known.missing:
                raise Unsupported(
                    f"shard {shard}: column {name} of {table} was added while another shard still has "
                    "an old one, which some shard dropped: their values cannot be told apart; "
                    + AGAIN.format(table=table)
                    + "; next time drop it on every shard and let an epoch pass before it is added"
                )
            found = replace(known, missing=tuple(s for s in known.missing if s != shard))
            return (*columns[:place], found, *columns[place + 1 :])
    return (*columns, new) if new is not None else columns


def must_be_free(name: str, shard: str, table: TableId) -> None:
    """Raise Unsupported for a name of a column that came, and that the lake uses itself."""
    if without_case(name) in RESERVED:
        raise Unsupported(
            f"shard {shard}: column {name} was added to {table}: the lake's tables use this name "
            "themselves; drop it again, then start the run again: it goes on"
        )


def new_column(
    column: Column,
    epoch: int,
    columns: Sequence[LakeColumn],
    others: Mapping[str, Table],
    rules: Sequence[ColumnRule],
) -> LakeColumn:
    """A column that the lake has not, beside `columns`. Its physical name is its own, else `name__gci`, else
    `name__gci_2` and so on."""
    taken = {without_case(c.physical) for c in columns}
    shown = shown_as(column.name, rules)
    free = without_case(shown) not in taken
    physical = shown if free else physical_name(f"{shown}__{gci_of(epoch)}", taken)
    return LakeColumn(column, physical, missing=lacking(column.name, others))


def shown_as(name: str, rules: Sequence[ColumnRule]) -> str:
    """The name that the rules give to a column of that name."""
    rule = rule_of(rules, name)
    return name if rule is None else rule.name or name


def physical_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, ... that no reader of the lake takes for one of those taken."""
    names = chain((name,), (f"{name}_{number}" for number in count(2)))
    return next(name for name in names if without_case(name) not in taken)
