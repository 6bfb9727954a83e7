"""How far a run has come: rows done of those there are, log that is left, and when both will be through."""

from collections.abc import Iterable
from enum import Enum

import msgspec
from msgspec.structs import replace

from catchment.model.table import TableId


class Basis(Enum):
    """Where the number of rows that there are comes from: how sure it is."""

    COUNTED = "counted"  # the copy is done: these rows were there
    KEYS = "keys"  # rows per key so far, over the range of keys that is left
    CATALOG = "catalog"  # the server's estimate, as of the beginning of the copy
    UNKNOWN = "unknown"  # the server gave no estimate, or there are more rows than it said


class Forecast(msgspec.Struct, frozen=True, omit_defaults=True):
    """Seconds until something is through: likely so many, between `low` and `high`. Zero: it is through. Without
    `likely` nothing can be said, and without `high` there is no upper end; `why` tells the reason."""

    low: float | None = None
    likely: float | None = None
    high: float | None = None
    why: str = ""


THROUGH = Forecast(0.0, 0.0, 0.0)


class CopyProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table on a shard of which rows are left to copy. `expected` rows are there in all, None where that is unknown.
    `rate`: rows a second, lately; None where it is not known yet."""

    shard: str
    table: TableId
    rows: int
    expected: int | None
    basis: Basis
    rate: float | None
    left: Forecast


class LogProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The log of a shard. `lag_seconds`: age of what is read of it. `backlog_bytes`: written there and not in the lake.
    `written` and `read`: bytes a second, lately. None where something is not known."""

    shard: str
    position: str
    lag_seconds: float
    backlog_bytes: int | None
    written: float | None
    read: float | None
    left: Forecast


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run as of `time_us` (microseconds since 1970). `copies`: those that are not done, and of those that have not
    begun the next ones of each shard. `rate`: rows a second over all shards. `copy`: until all rows are copied; `log`:
    until the log is caught up; `whole`: until both are."""

    time_us: int
    copies: tuple[CopyProgress, ...]
    logs: tuple[LogProgress, ...]
    rate: float | None
    copy: Forecast
    log: Forecast
    whole: Forecast


def essence(progress: Progress) -> Progress:
    """What is worth keeping of it: no log that is caught up, and nothing that moves on by itself. Of a feed at rest it
    stays the same."""
    behind = tuple(one for one in progress.logs if one.left != THROUGH)
    return replace(progress, time_us=0, logs=behind)


def together(forecasts: Iterable[Forecast]) -> Forecast:
    """Until all of them are through, where each goes on beside the others. One that is unknown makes all unknown."""
    known = list(forecasts)
    for one in known:
        if one.likely is None:
            return one
    if not known:
        return THROUGH
    endless = next((one for one in known if one.high is None), None)
    return Forecast(
        max(one.low or 0.0 for one in known),
        max(one.likely or 0.0 for one in known),
        None if endless else max(one.high or 0.0 for one in known),
        endless.why if endless else "",
    )
