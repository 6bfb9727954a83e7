"""Which rows of a data file die by a settle: those whose (shard, key) has a newer change.

The file itself is asked, a scan of its key columns, unless its bounds in the log rule it out. So there is no state that
could disagree with the table.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.sink.delta.files import lake_file
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.plain.log import LakeFile
from catchment.sink.delta.plain.net import NetChanges
from catchment.wire.keys.keys import KeySet, encode

_BATCH_ROWS = 1 << 20


class Changed:
    """The keys of a settle's net changes, made ready to be looked for in many files."""

    def __init__(self, net: NetChanges, identity: tuple[str, ...]) -> None:
        self._columns = list(identity)
        self._keys = KeySet(net.keys)
        self._first_key = identity[1]
        self._ranges = _ranges(net.rows, self._first_key)

    def may_touch(self, file: LakeFile) -> bool:
        """Whether a file may hold one of the keys, by the bounds that the log has of it."""
        bounds = file.bounds()
        shards, keys = bounds.of(SHARD), bounds.of(self._first_key)
        if self._ranges is None or shards is None or keys is None:
            return True
        return any(
            shards[0] <= shard <= shards[1] and least <= keys[1] and keys[0] <= most
            for shard, (least, most) in self._ranges.items()
        )

    def rows(self, path: Path) -> BitMap:
        """Row numbers of a file, from 0, that hold one of the keys, dead ones too. Raises SinkError."""
        found = BitMap()
        if not len(self._keys):
            return found
        first = 0
        with lake_file(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=self._columns):
                hit = np.flatnonzero(self._keys.contains(encode(batch, self._columns)))
                found |= BitMap((hit + first).astype(np.uint32))
                first += batch.num_rows
        return found


def _ranges(rows: pa.Table, key: str) -> dict[str, tuple[int, int]] | None:
    """By shard the least and the largest key; None for keys that are no integers, whose bounds may be rounded."""
    if not pa.types.is_integer(rows.schema.field(key).type):
        return None
    found = rows.group_by(SHARD).aggregate([(key, "min"), (key, "max")])
    return {row[SHARD]: (row[f"{key}_min"], row[f"{key}_max"]) for row in found.to_pylist()}
