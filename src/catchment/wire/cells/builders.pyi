import pyarrow as pa

class ColumnBuilders:
    """The columns of one schema, filled row by row by compiled decoders (see builders.pxd)."""

    rows: int
    schema: pa.Schema
    def __init__(self, schema: pa.Schema) -> None: ...
    def take(self) -> pa.RecordBatch:
        """All finished rows as one batch without a copy; the builders start anew."""
