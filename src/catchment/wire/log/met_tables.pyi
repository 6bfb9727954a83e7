import pyarrow as pa

from catchment.model.table import Table

def image_schema(table: Table) -> pa.Schema:
    """Arrow schema of a table's image rows: its columns, then SIDE, OP, SEQ, GROUP."""
