"""Where a table begins in the log of a shard."""

import msgspec

from catchment.model.position import LogOffset, Position


class Birth(msgspec.Struct, frozen=True):
    """A CREATE TABLE stands `at` a place, and from there on the log has every row of the table. `start`: a verified
    position in front of it, from which the log can be read."""

    start: Position
    at: LogOffset


class Born(msgspec.Struct, frozen=True):
    """A table whose last definition, or change of its indexes, stands at `defined`. No row of it stands between its
    birth and there."""

    birth: Birth
    defined: LogOffset
