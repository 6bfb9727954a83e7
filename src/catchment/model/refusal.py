"""A table whose copy stands still."""

import msgspec

from catchment.model.table import TableId


class Refusal(msgspec.Struct, frozen=True):
    """A table of which a shard's chunks were refused in `epochs` epochs in a row, and why in the last one."""

    shard: str
    table: TableId
    reason: str
    epochs: int

    def __str__(self) -> str:
        return (
            f"{self.table} on {self.shard} is not copied: its chunks were refused in {self.epochs} epochs in a row "
            f"({self.reason})"
        )
