"""Which rows a TRUNCATE took: those of a shard that are older than it."""

from collections.abc import Iterable

import msgspec


class Emptied(msgspec.Struct, frozen=True):
    """A TRUNCATE on `shards`: of their rows those are dead whose epoch lies before this one, whatever stands in the
    files."""

    shards: tuple[str, ...]
    before: int


def emptied_too(known: Iterable[Emptied], shard: str, before: int) -> tuple[Emptied, ...]:
    """The same with a TRUNCATE on a shard, which covers its earlier ones."""
    last = {name: one.before for one in known for name in one.shards} | {shard: before}
    of_epoch: dict[int, list[str]] = {}
    for name in sorted(last):
        of_epoch.setdefault(last[name], []).append(name)
    return tuple(Emptied(tuple(names), epoch) for epoch, names in sorted(of_epoch.items()))
