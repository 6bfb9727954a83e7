"""Some rows of a data file of a plain table, a row group at a time."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.plain.net import conform


def rows_of(path: Location, rows: BitMap, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of these numbers, from 0, in their order, with the columns of `schema`. Row groups that have none are
    not read. Raises SinkError."""
    first = 0
    with lake_parquet(path) as file:
        for group in range(file.num_row_groups):
            behind = first + file.metadata.row_group(group).num_rows
            here = rows & BitMap(range(first, behind))
            if here:
                taken = np.asarray(here.to_array(), np.int64) - first
                yield conform(file.read_row_group(group).take(pa.array(taken)), schema)
            first = behind
