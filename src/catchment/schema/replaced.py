"""The shape of a lake table of which some shards have another table in its place: a tool altered that beside it."""

from collections.abc import Collection
from typing import TypeVar

from msgspec.structs import replace

from catchment.model.emptied import Emptied
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import Unsupported
from catchment.model.fill import Fill
from catchment.model.table import without_case
from catchment.model.widened import Widened
from catchment.schema.lake_columns import is_named
from catchment.schema.widened import declared_as_in, typed_on

_N = TypeVar("_N", Fill, Emptied, Widened)


def replaced(
    former: TableShape, new: TableShape, shards: Collection[str], holders: Collection[str]
) -> TableShape:
    """The shape of `former` once `shards` have the table `new` in its place, all of whose rows are new. The others of
    its `holders` have it as before. It is of the generation of `new`.

    A column of both has to lie under one name in their files, and in a type that holds that of the other shards. Raises
    Unsupported where that, the key, or what the feed makes of the table differs.
    """
    alike = (former.key, former.rules, former.mode, former.arrangement)
    if (new.key, new.rules, new.mode, new.arrangement) != alike:
        raise Unsupported(
            f"{new.table} has another key than {former.table}, or the feed makes another table of it"
        )
    shape = replace(
        former,
        generation=new.generation,
        computes=former.computes or new.computes,
        charset=former.charset if former.charset == new.charset else "",
        fills=_both(former.fills, new.fills, shards),
        emptied=_both(former.emptied, new.emptied, shards),
        # Files of the other shards may have such a type, whether one of them still has it or not.
        widened=tuple(_of(one, set(one.shards).difference(shards)) for one in former.widened),
        replaces=None,
    )
    for shard in sorted(shards):
        shape = _on_shard(shape, new, shard, set(holders) - {shard})
    return shape


def _on_shard(shape: TableShape, new: TableShape, shard: str, others: Collection[str]) -> TableShape:
    """The shape where a shard has the new table."""
    there = [column for column in new.columns if column.live and shard not in column.missing]
    columns = tuple(_lacking(c, shard, others) if not _named(c, there) else c for c in shape.columns)
    shape = replace(shape, columns=columns)
    for column in there:
        shape = _with(shape, new, column, shard, others)
    return shape


def _lacking(column: LakeColumn, shard: str, others: Collection[str]) -> LakeColumn:
    """A column that the shard does not have any more. It has left no value behind."""
    if not column.live:
        return column
    missing = {*column.missing, shard}
    return replace(column, live=not missing >= set(others), missing=tuple(sorted(missing)))


def _with(
    shape: TableShape, new: TableShape, column: LakeColumn, shard: str, others: Collection[str]
) -> TableShape:
    """The shape where the shard has a column as the new table has it."""
    known = _named(column, [one for one in shape.columns if one.live])
    if known is None:
        taken = {without_case(one.physical) for one in shape.columns}
        if without_case(column.physical) in taken:
            raise Unsupported(f"files of {shape.table} have another column under the name {column.physical}")
        known = replace(column, torn=False, missing=tuple(sorted(others)))
        shape = replace(shape, columns=(*shape.columns, known))
    kind = new.type_on(shard, column)
    if known.physical != column.physical or known.column.name != column.column.name:
        raise Unsupported(
            f"column {column.column.name} of {shape.table} lies in its files as {known.physical}"
        )
    if known.column.name in shape.key and kind != known.column.type:
        raise Unsupported(f"{known.column.name}, a part of the key of {shape.table}, has another type")
    has_it = replace(known, missing=tuple(one for one in known.missing if one != shard))
    shape = replace(shape, columns=tuple(has_it if one is known else one for one in shape.columns))
    typed = typed_on(shape, shard, has_it, kind, others)
    if typed is None:
        raise Unsupported(
            f"column {known.column.name} of {shape.table} is of a type that other shards have not"
        )
    return declared_as_in(typed, shard, known.physical, new, others)


def _named(column: LakeColumn, among: Collection[LakeColumn]) -> LakeColumn | None:
    return next((one for one in among if is_named(one, column.column.name)), None)


def _both(former: tuple[_N, ...], new: tuple[_N, ...], shards: Collection[str]) -> tuple[_N, ...]:
    """What the shape notes of rows: of those of the shards as the new one does, of others as before."""
    both = [_of(one, set(one.shards).difference(shards)) for one in former]
    both += [_of(one, set(one.shards).intersection(shards)) for one in new]
    return tuple(one for one in both if one.shards)


def _of(note: _N, shards: Collection[str]) -> _N:
    """The same of other shards."""
    return replace(note, shards=tuple(sorted(shards)))
