"""Some rows of a data file of a plain table, a row group at a time."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.location import Location
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import lake_parquet


def rows_of(path: Location, rows: BitMap, schema: pa.Schema, *, retype: bool = False) -> Iterator[pa.Table]:
    """The rows of these numbers, from 0, in their order, with the columns of `schema`. Row groups that have none are
    not read. Raises SinkError.

    `retype`: the file may have them in other types; then values are brought to those of `schema`, as far as they can.
    """
    first = 0
    with lake_parquet(path) as file:
        for group in range(file.num_row_groups):
            behind = first + file.metadata.row_group(group).num_rows
            here = rows & BitMap(range(first, behind))
            if here:
                taken = np.asarray(here.to_array(), np.int64) - first
                found = file.read_row_group(group).take(pa.array(taken))
                yield conform(_retyped(found, schema) if retype else found, schema)
            first = behind


def _retyped(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Columns in the types of `schema`; those with a value that the type does not have are left out."""
    for place, name in reversed([*enumerate(rows.column_names)]):
        field = schema.field(name) if name in schema.names else None
        if field is None or rows[name].type == field.type:
            continue
        try:
            rows = rows.set_column(place, field, rows[name].cast(field.type))
        except pa.ArrowException:
            rows = rows.remove_column(place)
    return rows
