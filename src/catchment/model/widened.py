"""What a lake table notes of columns that may become wider: their former types, and how they are declared."""

import msgspec

from catchment.model.table import ColumnType


class Widened(msgspec.Struct, frozen=True):
    """A `type` that a column had before an ALTER made it wider. Older files have its values so. `shards`: those whose
    column still has it. `column` is the column's physical name."""

    column: str
    type: ColumnType
    shards: tuple[str, ...] = ()


class Declared(msgspec.Struct, frozen=True):
    """How a column of texts or bytes is declared on `shards`, as `varchar(50)`; empty where that is not known. Without
    shards it is on all that no other note names. `column` is its physical name."""

    column: str
    text: str
    shards: tuple[str, ...] = ()
