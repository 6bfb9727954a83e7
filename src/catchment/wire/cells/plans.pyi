from catchment.model.table import Table
from catchment.wire.cells.builders import ColumnBuilders
from catchment.wire.log.metadata import Described

def decimal_bytes(digits: int) -> int:
    """Bytes of that many packed decimal digits on one side of the point."""

def length_bytes(code: int, meta: int) -> int:
    """Bytes of the length in front of a string cell."""

class TableMap:
    """One table number of the log. `described` is None for a table not wanted."""

    number: int
    wanted: bool
    table: Table
    def __init__(
        self, number: int, body: bytes, described: Described | None, images: ColumnBuilders | None
    ) -> None: ...
