"""What is compared of a portion of a table: its keys at each shard, and the chunks that hold what is looked for."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.feed.verdict import Compared
from catchment.model.choice import Choice, Portion
from catchment.model.chunk import Chunk, ChunkKey, chunk_key
from catchment.model.epoch import Manifest
from catchment.model.errors import ConfigError, StateError
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.source.bounds import has_row
from catchment.source.portions import limits, must_be_condition
from catchment.source.session import Session, connect

Takes = Callable[[Chunk], bool]


@dataclass(frozen=True)
class AtSource:
    """A portion of a table whose chunks are cut by `key`."""

    portion: Portion
    key: ChunkKey
    endpoints: Mapping[str, Endpoint]

    def of(self, compared: Compared) -> Compared:
        """Of what there is to compare, that portion. Raises ConfigError for what is no key or condition."""
        return {
            shard: tuple(self._narrowed(shard, copy) for copy in copies) for shard, copies in compared.items()
        }

    def holds(self, chunk: Chunk) -> bool:
        """Whether a chunk holds a row that is looked for. Raises SourceError."""
        if not self.key.ordered:  # such a table is compared whole, on each shard
            chunk = replace(chunk, lo=None, hi=None)
        with self._reading(chunk.shard) as session:
            return has_row(session, chunk, self.key, self.portion.where)

    def _narrowed(self, shard: str, copy: Copy) -> Copy:
        if self.portion.shard not in ("", shard):
            return replace(copy, done=True)
        with self._reading(shard) as session:
            if self.portion.where:
                must_be_condition(session, self.key, self.portion)
            lo, hi = limits(session, self.key, self.portion)
        return replace(copy, copied=lo, born_after=hi)

    @contextmanager
    def _reading(self, shard: str) -> Iterator[Session]:
        """A session that reads alone: a condition may call a function."""
        with connect(self.endpoints[shard]) as session:
            session.run("SET SESSION TRANSACTION READ ONLY")
            yield session


def narrowed(
    choice: Choice, manifest: Manifest, endpoints: Mapping[str, Endpoint], compared: Compared
) -> tuple[Compared, Takes]:
    """What there is to compare of a choice, and which of its chunks are compared.

    Raises ConfigError for what is no key or condition. Raises StateError while the table is being copied: no portion
    of it is complete then.
    """
    portion = choice.portion
    if portion is None:
        return compared, choice.sample.takes
    shape = manifest.shape(portion.table)
    if any(portion.table in state.copying for state in manifest.cut.shards.values()):
        raise StateError(
            f"{portion.table} is being copied: a portion of it can be compared when it is complete"
        )
    if portion.shard and portion.shard not in endpoints:
        raise ConfigError(f"shard {portion.shard}: the feed has no such shard")
    found = AtSource(portion, chunk_key(shape.definition), endpoints)
    if not portion.where:
        return found.of(compared), choice.sample.takes
    return found.of(compared), lambda chunk: choice.sample.takes(chunk) and found.holds(chunk)
