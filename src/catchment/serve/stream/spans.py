"""What the shards told in a turn, in the order in which batches bring it: by shard, or by time if they are aligned."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from catchment.serve.changes.rows import TIMESTAMP
from catchment.serve.stream.advance import Told
from catchment.serve.stream.alignment import THRESHOLD_SECONDS
from catchment.serve.stream.turn import Turn


@dataclass(frozen=True, slots=True)
class Span:
    """What a shard told from one transaction to another: ordinals, `end` not among them."""

    shard: str
    told: Told
    begin: int = 0
    end: int = sys.maxsize


def spans(turn: Turn) -> Iterator[Span]:
    """Those of a turn. Of aligned shards each has two seconds of a log, in the order of time."""
    logs = [(shard.shard, shard.told) for shard in turn.shards if shard.told is not None]
    if turn.ahead is None:
        yield from (Span(shard, told) for shard, told in logs)
        return
    slots = {shard: _slots(told, turn.ahead[shard]) for shard, told in logs}
    for slot in sorted({int(one) for found in slots.values() for one in np.unique(found)}):
        for shard, told in logs:
            first, behind = (int(one) for one in np.searchsorted(slots[shard], (slot, slot + 1)))
            if first < behind:
                yield Span(shard, told, _ordinal(told, first) if first else 0, _ordinal(told, behind))


def _ordinal(told: Told, row: int) -> int:
    ordinals = told.groups.table().column("ordinal")
    return int(ordinals[row].as_py()) if row < len(ordinals) else sys.maxsize


def _slots(told: Told, ahead: float) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Of each transaction the two seconds in which it was told at the earliest: times of logs go back at times."""
    seconds = told.groups.table().column(TIMESTAMP).cast(pa.int64()).to_numpy() / 1e6 - ahead
    return np.maximum.accumulate(seconds // THRESHOLD_SECONDS).astype(np.int64)
