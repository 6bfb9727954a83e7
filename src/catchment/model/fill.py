"""Values of rows that no file has: those that a column came with."""

from collections.abc import Sequence

import msgspec


class Fill(msgspec.Struct, frozen=True):
    """The `value` that a column came with: rows of `shards` whose epoch lies before this one have it, whatever stands
    in the files. `column` is the column's physical name, the value the text of Arrow's cast."""

    column: str
    shards: tuple[str, ...]
    before: int
    value: str


def filled_too(fills: Sequence[Fill], column: str, shard: str, before: int, value: str) -> tuple[Fill, ...]:
    """The same with a value in rows of one more shard."""
    like = [one for one in fills if (one.column, one.before, one.value) == (column, before, value)]
    others = tuple(one for one in fills if one not in like)
    shards = {shard, *(known for one in like for known in one.shards)}
    return (*others, Fill(column, tuple(sorted(shards)), before, value))
