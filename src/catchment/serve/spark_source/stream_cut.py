"""Where a stream of one table stands: a cut, and what the batch has that ends there."""

import msgspec
from msgspec.structs import replace

from catchment.model.chunk import Bound, Chunk
from catchment.model.cut import Cut
from catchment.model.shard import Copy, ShardState


class ShardBatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a batch has of a shard. `shown`: a tick showed the position; else it is the end of some group before.

    `through`: upper bounds of the chunks that the batch copies, in order (None: no upper bound). Whenever the batch is
    read, it is read in the same chunks. `dropped`: names of columns that the table had (columns.py).
    """

    shown: bool
    through: tuple[Bound | None, ...] = ()
    dropped: tuple[str, ...] = ()


class StreamCut(msgspec.Struct, frozen=True):
    """Everything up to `cut` has been delivered, by the batch and those before. A shard has one copy, or none where it
    does not have the table; its rows are not counted.

    Raises ValueError where the two are of other shards, and for a shard of which nothing is proven sealed.
    """

    cut: Cut
    batch: dict[str, ShardBatch]

    def __post_init__(self) -> None:
        if self.batch.keys() != self.cut.shards.keys():
            raise ValueError(
                f"a cut of the shards {', '.join(self.cut.shards)} and a batch of {', '.join(self.batch)}"
            )
        for shard, state in self.cut.shards.items():
            if state.sealed is None or len(state.copies) > 1:
                raise ValueError(f"shard {shard}: no state of a stream, which has a floor and one table")

    def chunks(self, since: "StreamCut", shard: str) -> list[Chunk]:
        """The chunks of a shard that the batch copies which began at `since`."""
        chunks = []
        through = self.batch[shard].through
        for start, end in zip(since.cut.shards[shard].copies, self.cut.shards[shard].copies, strict=True):
            lo = start.copied
            for number, hi in enumerate(through, 1):
                chunks.append(Chunk(shard, end.table, lo, hi, end.done and number == len(through)))
                lo = hi
        return chunks


def first_cut(cut: Cut, *, copy: bool) -> StreamCut:
    """Where a stream begins: nothing copied yet, or, without `copy`, nothing to copy."""
    shards = cut.shards if copy else {shard: _uncopied(state) for shard, state in cut.shards.items()}
    return StreamCut(replace(cut, shards=shards), {shard: ShardBatch(shown=True) for shard in shards})


def _uncopied(state: ShardState) -> ShardState:
    copies = (Copy(one.table, done=True, rows_expected=one.rows_expected) for one in state.copies)
    return replace(state, copies=tuple(copies))
