"""What a turn of a stream tells: its values, for those who make events, batches or messages of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catchment.model.table import ShardTable, Table
from catchment.serve.stream.advance import Told, Void
from catchment.serve.stream.chunks import CopiedRows
from catchment.serve.stream.vgtid import StreamCut


@dataclass(frozen=True, slots=True)
class ShardTurn:
    """What one shard told in a turn; `told` None where its log stood still. `again`: tables whose copies began when
    the stream was resumed."""

    shard: str
    told: Told | None
    copied: Sequence[CopiedRows] = ()
    again: Sequence[Void] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What the shards told up to a cut. `completes`: with it all rows are copied. `empty`: tables of which there was
    none to copy. `ahead`: by how many seconds each shard's clock is, where transactions are told by their times."""

    stands: StreamCut
    shards: Sequence[ShardTurn]
    completes: bool = False
    empty: Sequence[ShardTable] = ()
    ahead: Mapping[str, float] | None = None

    @property
    def told(self) -> bool:
        """Whether there is anything that a client wants to hear of."""
        return any(one.again or one.copied or (one.told and one.told.tells) for one in self.shards)

    @property
    def tables(self) -> list[Table]:
        """The tables of its rows, with the columns that these have; one for each version of a table and shard."""
        copied = [one.table for shard in self.shards for one in shard.copied]
        changed = [one.table for shard in self.shards if shard.told for one in shard.told.changed]
        return copied + changed


@dataclass(frozen=True, slots=True)
class ShardTold:
    """The time of the last transaction that was told of a shard, in seconds since 1970, and when that was (steady
    seconds)."""

    event_time: int
    told_at: float
