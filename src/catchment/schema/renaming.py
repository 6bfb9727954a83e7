"""How a lake table's shape follows columns that get another name.

The values stay what they are, and stand in the files under the former name. So the column is a new one of the lake, and
older rows have in it what they have in the former one.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from catchment.model.column_rule import rule_of
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import SourceError
from catchment.model.fill import Fill, filled_no_more
from catchment.model.table import Column, Table
from catchment.model.treatment import Mode
from catchment.schema.ddl import AGAIN
from catchment.schema.lake_columns import after_add, after_drop, is_named, must_be_free, new_column
from catchment.schema.renamed import Renamed
from catchment.schema.widened import held, same_declaration, typed_on


def with_new_name(
    shape: TableShape, shard: str, said: Renamed, others: Mapping[str, Table], epoch: int
) -> TableShape:
    """The shape after a shard gave a column another name in `epoch`, of which its rows have the values there already.
    `others`: the table as the other shards have it.

    Raises SourceError where it is not known that the values stay what they were.
    """
    former = held(shape, shard, said.old)
    why = "is not there" if former is None else _refusal(shape, shard, former, said)
    if former is None or why:
        raise _refused(shape, shard, said, why)
    must_be_free(said.new, shard, shape.table)
    kind = shape.type_on(shard, former)
    columns = tuple(after_drop(c, said.old, shard, others) for c in shape.columns)
    after = _back(replace(shape, columns=columns), shard, former, said, epoch)
    if after is None:
        new = None
        if not any(c.live and is_named(c, said.new) for c in columns):
            named = Column(said.new, former.column.type)
            new = new_column(named, epoch, columns, others, shape.rules)
        after = replace(shape, columns=after_add(columns, said.new, shard, new, shape.table))
        now = _held(after, shard, said.new)
        after = after.filled(shard, Fill(now.physical, (), epoch, source=former.physical))
    now = _held(after, shard, said.new)
    typed = typed_on(after, shard, now, kind, others)
    if typed is None:
        raise _refused(shape, shard, said, "is of a type that other shards have not under that name")
    return same_declaration(typed, shard, former, now, others)


def _back(shape: TableShape, shard: str, former: LakeColumn, said: Renamed, epoch: int) -> TableShape | None:
    """The shape where a column gets the name back that it had when the epoch began; None where it gets another one."""
    for fill in shape.fills:
        if (fill.column, fill.before) != (former.physical, epoch) or shard not in fill.shards:
            continue
        was = next((c for c in shape.columns if c.physical == fill.source), None)
        if was is None or was.column.name != said.new:
            return None
        if any(c.live and c is not was and is_named(c, said.new) for c in shape.columns):
            return None
        again = replace(was, live=True, missing=tuple(one for one in was.missing if one != shard))
        columns = tuple(again if c is was else c for c in shape.columns)
        return replace(shape, columns=columns, fills=filled_no_more(shape.fills, shard, fill))
    return None


def _held(shape: TableShape, shard: str, name: str) -> LakeColumn:
    """The column of that name that a shard has for certain."""
    found = held(shape, shard, name)
    assert found is not None
    return found


def _refusal(shape: TableShape, shard: str, former: LakeColumn, said: Renamed) -> str:
    """Why it is not followed; empty where it is."""
    names = {said.old.lower(), said.new.lower()}
    partition = shape.arrangement.partition
    arranged = {
        *map(str.lower, shape.arrangement.cluster_by),
        (partition.column if partition else "").lower(),
    }
    if held(shape, shard, said.new) is not None:
        return "has a name that is there already"
    if former.column.name in shape.key:
        return "is a part of the key"
    if shape.computes:
        return "may be one that another is computed from"
    if any(rule_of(shape.rules, name) is not None for name in (former.column.name, said.new)):
        return "is one that the feed has a rule for"
    if names & arranged:
        return "is one by which the lake's files are arranged"
    append = "would be new in changes of before, which the mode keeps as they were"
    return append if shape.mode is Mode.APPEND else ""


def _refused(shape: TableShape, shard: str, said: Renamed, why: str) -> SourceError:
    return SourceError(
        f"shard {shard}: column {said.old} of {shape.table} was renamed to {said.new}, and it {why}; "
        + AGAIN.format(table=shape.table)
    )
