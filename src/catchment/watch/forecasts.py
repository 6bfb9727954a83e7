"""When a copy is done and when a log is caught up: from what is left and how fast it went lately. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.model.progress import THROUGH, CopyProgress, Forecast, together
from catchment.watch.growth import Spread
from catchment.watch.rows_left import Left

# A feed that keeps up is behind by an epoch or two.
KEEPS_UP_SECONDS = 10.0
NO_RATE = "the rate is not measured yet"
STANDS_STILL = "nothing came of late"
STOOD_STILL = "it stood still for a part of the last two minutes"
LOG_GROWS = "the log grows as fast as it is read"
LOG_MAY_GROW = "at times the log grows as fast as it is read"


@dataclass(frozen=True, slots=True)
class Copying:
    """What a shard has left to copy, how fast it goes, and until when. `shown`: the tables to be told of."""

    shard: str
    shown: tuple[CopyProgress, ...]
    left: Left
    rate: Spread | None
    forecast: Forecast


def copied(left: Left, rate: Spread | None) -> Forecast:
    """Until so many rows are copied."""
    if left.high <= 0:
        return THROUGH
    if rate is None:
        return Forecast(why=NO_RATE)
    if rate.mean <= 0:
        return Forecast(why=STANDS_STILL)
    likely = left.likely / rate.mean
    low = min(left.low / rate.fast, likely)  # the last digit of an even rate may be another
    if rate.slow <= 0:
        return Forecast(low, likely, why=STOOD_STILL)
    return Forecast(low, likely, max(left.high / rate.slow, likely))


def all_copied(shards: Collection[Copying]) -> Forecast:
    """Until every shard is copied, of which each goes on beside the others.

    Those that are done first leave their part of the machine to the others. So the earliest end is that of all rows at
    the rate of all shards.
    """
    whole = together(one.forecast for one in shards)
    if whole.likely is None:
        return whole
    fast = sum(one.rate.fast for one in shards if one.rate is not None)
    rows = sum(one.left.low for one in shards)
    return replace(whole, low=min(rows / fast if fast > 0 else 0.0, whole.likely))


def keeps_up(lag_seconds: float, backlog: int | None) -> bool:
    """Whether a log is read as it is written, or up to its end."""
    return lag_seconds <= KEEPS_UP_SECONDS or backlog == 0


def caught_up(backlog: int | None, written: Spread | None, read: Spread | None) -> Forecast:
    """Until a log with so many bytes left is read up to its end, which moves on."""
    if backlog is None:
        return Forecast(why="where its log ends is not known")
    if written is None or read is None or read.mean <= 0:
        return Forecast(why=NO_RATE)
    if read.mean <= written.mean:
        return Forecast(why=LOG_GROWS)
    likely = backlog / (read.mean - written.mean)
    low = min(backlog / (read.fast - written.slow), likely)
    if read.slow <= written.fast:
        return Forecast(low, likely, why=LOG_MAY_GROW)
    return Forecast(low, likely, max(backlog / (read.slow - written.fast), likely))
