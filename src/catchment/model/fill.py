"""Values of rows that no file has under a column's name: those that it came with, or that another one had."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace


class Fill(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a column came with: rows of `shards` whose epoch lies before this one have it, whatever stands in the files.

    That is `value`, as the text of Arrow's cast, and bytes as hexadecimal digits. With a `source` it is what they have
    in this other column, which the shards had until then. `column` and `source` are physical names. A shard has one
    fill of a column at most, and none leads back to its column.
    """

    column: str
    shards: tuple[str, ...]
    before: int
    value: str = ""
    source: str = ""


def filled_too(fills: Sequence[Fill], shard: str, said: Fill) -> tuple[Fill, ...]:
    """The same, where what is `said` of some shards holds for one more."""
    like = [one for one in fills if replace(one, shards=()) == replace(said, shards=())]
    others = tuple(one for one in fills if one not in like)
    shards = {shard, *said.shards, *(known for one in like for known in one.shards)}
    return (*others, replace(said, shards=tuple(sorted(shards))))


def filled_no_more(fills: Sequence[Fill], shard: str, said: Fill) -> tuple[Fill, ...]:
    """The same, where one of them does not hold for a shard."""
    left = replace(said, shards=tuple(one for one in said.shards if one != shard))
    found = (left if one == said else one for one in fills)
    return tuple(one for one in found if one.shards)
