import pyarrow as pa

SCHEMA: pa.Schema
NO_GROUPS: pa.RecordBatch

class Groups:
    """Which group is open, its savepoints, and a row per finished group; see groups.pxd."""
