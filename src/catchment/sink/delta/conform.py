"""Rows of a file in the columns and types that a table has by now."""

import pyarrow as pa


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of `schema`: those that a file is too old to have as nulls, and those of a narrower type in the wider
    one. Raises ArrowInvalid for a value that a type does not have."""
    held = set(table.column_names)
    columns = [
        _typed(table[field.name], field.type) if field.name in held else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _typed(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else values.cast(kind)
