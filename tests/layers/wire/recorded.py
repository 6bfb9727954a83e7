"""What real servers sent: the log of a few statements, and answers to SELECT."""

import msgspec

from catchment.model.definition import Definition
from catchment.model.position import LogOffset
from catchment.model.table import Column, TableId


class Answer(msgspec.Struct, frozen=True):
    """What a server sent for a SELECT of a table of one type, and before that for PREPARE."""

    name: str
    columns: tuple[Column, ...]
    rows: bytes
    prepared: bytes


class Recording(msgspec.Struct, frozen=True):
    """Events from `start` on. `definitions` are those of tables that the log does not describe, as of their
    first rows."""

    name: str
    start: LogOffset
    events: list[bytes]
    definitions: dict[TableId, Definition] = {}
    answers: tuple[Answer, ...] = ()
