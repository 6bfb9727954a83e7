"""The rows that the source gives to Spark, in its own types."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from catchment.model.errors import Unsupported
from catchment.model.table import Table, without_case
from catchment.serve.changes.rows import CHANGE_FIELDS
from catchment.wire.cells.types import arrow_schema

_BATCH_ROWS = 16_384


def schema_of(table: Table) -> StructType:
    """Spark's schema of the table's columns and the change columns; raises Unsupported when a name is taken.

    TIME is bigint (signed microseconds), BIGINT UNSIGNED decimal(20,0), DATETIME timestamp_ntz, TIMESTAMP
    timestamp.
    """
    shown = {field.name for field in CHANGE_FIELDS}
    taken = [column.name for column in table.columns if without_case(column.name) in shown]
    if taken:
        raise Unsupported(
            f"{table.id}: column {', '.join(taken)} has the name of a column that the source shows beside those of the "
            "table; rename the column"
        )
    return from_arrow_schema(pa.schema([*arrow_schema(table), *CHANGE_FIELDS]))


def batches(rows: pa.Table, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows in exactly Spark's types (it casts nothing); columns that they lack are null, others are left
    out.
    """
    wanted = to_arrow_schema(schema, timezone="UTC")
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    yield from pa.table(columns, schema=wanted).combine_chunks().to_batches(_BATCH_ROWS)
