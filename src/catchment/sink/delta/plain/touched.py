"""Which rows of a data file die by a settle: those whose (shard, key) has a newer change.

The file itself is asked, a scan of its key columns. So there is no state that could disagree with the table.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.sink.delta.files import lake_file
from catchment.sink.delta.plain.net import NetChanges
from catchment.wire.keys.keys import KeySet, encode

_BATCH_ROWS = 1 << 20


class Changed:
    """The keys of a settle's net changes, made ready to be looked for in many files."""

    def __init__(self, net: NetChanges, identity: tuple[str, ...]) -> None:
        self._columns = list(identity)
        self._keys = KeySet(net.keys)

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
