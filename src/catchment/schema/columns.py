"""A lake table's shape as one shard's log moves on, when not every ALTER is followed by a row that shows the
result.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import SourceError
from catchment.model.table import Column, Table, TableId
from catchment.schema.ddl import AGAIN, Columns
from catchment.schema.last_names import names_after, under_last_names
from catchment.schema.passage import Passage
from catchment.schema.shape import evolve, must_fit_still

# So many tables of shards are remembered: each segment of a log looks twice at those that it names.
_TABLES_MAX: Final = 1 << 12


def table_on(shape: TableShape, shard: str) -> Table:
    """The source table as a shard has it, as far as the shape knows."""
    if not shape.widened:
        return _as_in_the_lake(shape.table, shape.columns, shape.key, shard)
    there = (c for c in shape.columns if c.live and shard not in c.missing)
    columns = tuple(Column(c.column.name, shape.type_on(shard, c)) for c in there)
    return Table(shape.table, columns, shape.key)


@lru_cache(_TABLES_MAX)
def _as_in_the_lake(
    table: TableId, columns: tuple[LakeColumn, ...], key: tuple[str, ...], shard: str
) -> Table:
    there = (one.column for one in columns if one.live and shard not in one.missing)
    return Table(table, tuple(there), key)


def shape_after(
    shape: TableShape, shard: str, shards: Sequence[str], passage: Passage, epoch: int
) -> TableShape:
    """The shape once the table of `shard` has gone through `passage` in `epoch`; raises as `shape.evolve`.

    Of columns that are added behind the last row event, the catalog tells the types, and nothing else: it may have gone
    on. Without it they are not added yet: no row has a value there.
    """
    after = shape
    if passage.met is not None:
        after = _met(after, shard, shards, passage.met, passage, epoch)
    if passage.behind:
        effects = _of_known(table_on(after, shard), under_last_names(passage.behind))
        after = _unmet(after, shard, shards, effects, passage.catalog, epoch)
    if after is not shape:
        must_fit_still(after, shard)
    return after


def _met(
    shape: TableShape, shard: str, shards: Sequence[str], met: Table, passage: Passage, epoch: int
) -> TableShape:
    """The shape as of the last row event. Columns that it has and that are new without an effect were added in an
    earlier epoch that changed no rows."""
    before, table = table_on(shape, shard), Table(met.id, met.columns, shape.key)
    effects = _of_known(before, under_last_names(passage.effects))
    if not _results_from(met, effects):
        must_fill_none(shape, shard, effects)
        return _unmet(shape, shard, shards, effects, passage.catalog, epoch)
    announced = names_after(effects).keys() | {c.name.lower() for c in before.columns}
    late = tuple(c.name for c in table.columns if c.name.lower() not in announced)
    effects = [Columns(shape.table, late, ()), *effects] if late else effects
    if table == before and not effects:
        return shape
    return evolve(shape, table, effects, epoch, shard=shard, others=_others(shape, shards, shard))


def _of_known(before: Table, effects: Sequence[Columns]) -> list[Columns]:
    """The effects, of which none renames a column that the table lacks. An epoch that showed no row of it has added it,
    so it comes under its new name."""
    known = {c.name.lower() for c in before.columns}
    found = []
    for effect in effects:
        known -= {name.lower() for name in effect.dropped}
        there = tuple(one for one in effect.renamed if one.old.lower() in known)
        late = tuple(one.new for one in effect.renamed if one not in there)
        found.append(replace(effect, renamed=there, added=(*late, *effect.added)))
        known -= {one.old.lower() for one in there}
        known |= {name.lower() for name in (*late, *effect.added, *(one.new for one in there))}
    return found


def _unmet(
    shape: TableShape,
    shard: str,
    shards: Sequence[str],
    effects: Sequence[Columns],
    catalog: Table | None,
    epoch: int,
) -> TableShape:
    """The shape behind effects that no row event follows."""
    before = table_on(shape, shard)
    table = _resulting(before, effects, catalog, shape.charset)
    if table is None:
        if catalog is not None:
            must_fill_none(shape, shard, effects)
        effects = _without_added(effects)
        table = _resulting(before, effects, None, shape.charset)
    assert table is not None
    # No row follows them, so all that the epoch brings are older.
    others = _others(shape, shards, shard)
    return evolve(shape, table, effects, epoch, shard=shard, others=others, before=epoch + 1)


def _without_added(effects: Sequence[Columns]) -> list[Columns]:
    """The effects without columns that they add."""
    added: set[str] = set()
    found = []
    for effect in effects:
        modified = tuple(one for one in effect.modified if one.column.lower() not in added)
        renamed = tuple(one for one in effect.renamed if one.old.lower() not in added)
        added |= {one.new.lower() for one in effect.renamed if one not in renamed}
        added |= {name.lower() for name in effect.added}
        found.append(replace(effect, added=(), filled=(), modified=modified, renamed=renamed, declared=()))
    return found


def must_fill_none(shape: TableShape, shard: str, effects: Sequence[Columns]) -> None:
    """Raise SourceError where a column came with a value in every row, and nothing tells its type."""
    for effect in effects:
        for told in effect.filled:
            raise SourceError(
                f"shard {shard}: column {told.column} of {shape.table} was added with a value in every row, and is not "
                "there any more as it was; " + AGAIN.format(table=shape.table)
            )


def _others(shape: TableShape, shards: Sequence[str], shard: str) -> dict[str, Table]:
    """The table as the other shards have it. Shards that lack the same columns share one value. When a thousand
    shards alter a table in one epoch, each of them asks for all others."""
    live = tuple(c for c in shape.columns if c.live)
    lacking: dict[str, tuple[int, ...]] = {}
    for place, column in enumerate(live):
        for other in column.missing:
            lacking[other] = (*lacking.get(other, ()), place)
    others = dict.fromkeys(shards, shape.definition)
    made: dict[tuple[int, ...], Table] = {}
    for other, places in lacking.items():
        if other in others:
            if places not in made:
                made[places] = table_on(shape, other)
            others[other] = made[places]
    others.pop(shard, None)
    return others


def _resulting(
    before: Table, effects: Sequence[Columns], catalog: Table | None, charset: str
) -> Table | None:
    """The table after the effects, with added columns as the catalog has them; None when it lacks one of them.
    `charset`: of texts that are declared without one."""
    known = {c.name.lower(): c for c in catalog.columns} if catalog is not None else {}
    columns = {c.name.lower(): c for c in before.columns}
    lacking: set[str] = set()
    for e in effects:
        for name in map(str.lower, e.dropped):
            columns.pop(name, None)
            lacking.discard(name)
        for told in e.modified:
            known_as = columns.get(told.column.lower())
            if known_as is not None:
                columns[told.column.lower()] = Column(known_as.name, told.with_charset(charset))
        for one in e.renamed:
            was = columns.pop(one.old.lower(), None)
            lacking.discard(one.old.lower())
            if was is not None:
                columns[one.new.lower()] = Column(one.new, was.type)
        lost = {one.new for one in e.renamed if one.new.lower() not in columns}
        for name in map(str.lower, (*lost, *e.added)):
            if name in columns:
                continue
            if name in known:
                columns[name] = known[name]
            else:
                lacking.add(name)
    return None if lacking else Table(before.id, tuple(columns.values()), before.key)


def _results_from(table: Table, effects: Sequence[Columns]) -> bool:
    names = {c.name.lower() for c in table.columns}
    return all((name in names) == there for name, there in names_after(effects).items())
