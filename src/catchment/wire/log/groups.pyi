import pyarrow as pa

SCHEMA: pa.Schema

class Groups:
    """Which group is open, its savepoints, and a row per finished group; see groups.pxd."""
