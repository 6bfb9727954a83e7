"""A vgtid as the simulator's clients read it: where each shard stands, and how far its tables are copied."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.world.sim.history import Place


@dataclass(frozen=True)
class Copied:
    """How far a table is copied: rows up to the key `upto`, and those behind `born_after`, which came later."""

    done: bool
    upto: int | None
    born_after: int | None

    def has(self, key: int) -> bool:
        """Whether clients receive a row with that key."""
        return (
            self.done
            or (self.upto is not None and key <= self.upto)
            or (self.born_after is not None and key > self.born_after)
        )


@dataclass(frozen=True)
class ShardCut:
    """`born`: when the file of its place was, in seconds since 1970. `oldest`: number of the oldest file that a stream
    from here still reads."""

    place: Place
    born: int
    oldest: int
    tables: Mapping[str, Copied]


@dataclass(frozen=True)
class Cut:
    """Of all shards."""

    epoch: int
    time_us: int
    shards: Mapping[str, ShardCut]

    @property
    def done(self) -> bool:
        """Whether all is copied."""
        return all(table.done for shard in self.shards.values() for table in shard.tables.values())

    @property
    def places(self) -> Mapping[str, Place]:
        """Where the shards stand."""
        return {name: shard.place for name, shard in self.shards.items()}


def read(text: str) -> Cut:
    """The cut of a vgtid."""
    cut = json.loads(text)["cut"]
    return Cut(
        cut["epoch"],
        cut["time_us"],
        {name.partition("/")[2]: _shard(state) for name, state in cut["shards"].items()},
    )


def _shard(state: dict[str, Any]) -> ShardCut:
    position = state["position"]
    place = _number(position["at"]["file"]), position["at"]["offset"]
    prepared = [_number(one["start"]["file"]) for one in position.get("prepared", ())]
    floor = state.get("sealed", position["at"])
    oldest = min([place[0], *prepared, _number(floor["file"])])
    return ShardCut(
        place, position["born"], oldest, {one["table"]["name"]: _copied(one) for one in state["copies"]}
    )


def _copied(state: dict[str, Any]) -> Copied:
    upto, born_after = ((state.get(name) or [None])[0] for name in ("copied", "born_after"))
    return Copied(state.get("done", False), upto, born_after)


def _number(file: str) -> int:
    return int(file.partition(".")[2])
