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
        return f"{self.table} is {self.said}"

    @property
    def said(self) -> str:
        """What is so and why, without the table: tables that one trouble keeps from being copied have it in common."""
        return f"not copied yet on shard {self.shard} (try {self.epochs}): {self.reason}"
