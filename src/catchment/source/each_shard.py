"""Asking many shards: each in sessions of its own, some at a time."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar, cast

from catchment import world

# A login waits for the network for milliseconds. More threads than these would wait for the interpreter.
AT_ONCE: Final = 64

_T = TypeVar("_T")


def each_shard(shards: Iterable[str], ask: Callable[[str], _T]) -> dict[str, _T]:
    """What `ask` finds on each of the shards, in their order. At most AT_ONCE are asked at a time.

    Raises the error of the first shard in that order that has one. After an error no other shard is asked.
    """
    names = list(shards)
    if len(names) < 2:
        return {shard: ask(shard) for shard in names}
    failed = world.event()

    def asked(shard: str) -> _T | None:
        if failed.is_set():
            return None  # nobody looks at it: the error comes first
        try:
            return ask(shard)
        except BaseException:
            failed.set()
            raise

    with world.pool(min(len(names), AT_ONCE), "shards") as pool:
        return cast(dict[str, _T], dict(zip(names, pool.map(asked, names), strict=True)))
