"""Why rows of a shard wait for the source's sake. Only what a check says in so many words lets them pass."""

from enum import Enum

import msgspec


class Check(Enum):
    """What is asked; the names are those of `copy.throttle` in the feed file."""

    FLAG_FILE = "flag_file"
    HTTP = "http"
    THREADS_RUNNING = "threads_running"
    HISTORY_LIST_LENGTH = "history_list_length"
    QUERY = "query"
    REPLICA_LAG = "replica_lag"
    ROWS_PER_SECOND = "rows_per_second"
    BYTES_PER_SECOND = "bytes_per_second"


class Breach(msgspec.Struct, frozen=True):
    """A check that does not let rows pass, and what it `said`. `value`: None where it is no number, or not known;
    `limit`: None where the check has none."""

    check: Check
    said: str
    value: float | None = None
    limit: float | None = None

    def __str__(self) -> str:
        return f"{self.check.value} {self.said}"


class Throttled(msgspec.Struct, frozen=True):
    """A shard of which no row is copied since `since_us` (microseconds since 1970), and what keeps it now."""

    shard: str
    since_us: int
    breach: Breach


def breach_of(check: Check, value: float | None, limit: float, of: str = "") -> Breach | None:
    """What a number says that is to be `limit` at most; None lets rows pass. None as value is not known, and does not
    pass; nor does a NaN. `of`: whose number it is."""
    whose = f"of {of} " if of else ""
    if value is None:
        return Breach(check, f"{whose}is not known (NULL), and is to be at most {limit:g}", None, limit)
    if value <= limit:
        return None
    return Breach(check, f"{whose}is {value:g}, and is to be at most {limit:g}", value, limit)
