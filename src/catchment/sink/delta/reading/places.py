"""Where the rows of a state lie that are not simply all rows of a file."""

from pathlib import Path

import msgspec

from catchment.sink.delta.log.actions import Vector
from catchment.sink.delta.plain.vectors import load


class Worn(msgspec.Struct, frozen=True):
    """A file of a plain table of which some rows are dead; `table` is the table's directory."""

    table: str
    path: str
    dead: Vector

    def positions(self) -> list[int]:
        """Numbers of the dead rows. Raises SinkError."""
        found: list[int] = load(Path(self.table), self.dead).to_array().tolist()
        return found


class Tables(msgspec.Struct, frozen=True):
    """Where an engine that knows Delta finds a state: a version of the plain table, and one of the tail. Of that the
    epochs behind `settled` count."""

    plain: str
    plain_version: int
    tail: str
    tail_version: int
    settled: int
