"""Some rows of a data file of a plain table, a batch at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.sink.delta.files import lake_file
from catchment.sink.delta.plain.net import conform

_BATCH_ROWS = 1 << 17


def rows_of(path: Path, rows: BitMap, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of these numbers, from 0, in their order, with the columns of `schema`. Raises SinkError."""
    first = 0
    with lake_file(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            here = rows & BitMap(range(first, first + batch.num_rows))
            if here:
                taken = np.asarray(here.to_array(), np.int64) - first
                yield conform(pa.Table.from_batches([batch]).take(pa.array(taken)), schema)
            first += batch.num_rows
