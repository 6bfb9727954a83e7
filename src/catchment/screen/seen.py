"""What a run has shown so far, as values, and as one line for a log."""

from dataclasses import dataclass

from catchment.model.progress import THROUGH, Forecast
from catchment.screen.until import until


@dataclass(frozen=True, slots=True)
class Copying:
    """A table that is being copied: rows so far, rows expected in all, rows a second, until when. None: unknown."""

    table: str
    rows: int
    expected: int | None
    rate: float | None
    until: Forecast

    @property
    def left(self) -> int:
        """Rows still expected; none of a table of which nothing is known."""
        return max((self.expected or 0) - self.rows, 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run has shown so far.

    `doing`: what the run is busy with before its first epoch, empty behind it. `epoch`: the newest one in its one
    spelling. `change_rate`: changes a second. `settling`: whether the sink settles. `copy`, `log`: until all rows are
    copied, and until the logs are caught up. `wrong`: what stands still, and who is away. `waiting`: shards that copy
    no rows for the source's sake; of these the log has lines of its own. `keys`: what may be pressed.
    """

    feed: str
    doing: str = ""
    doing_seconds: float = 0.0
    epoch: str = ""
    lag_seconds: float = 0.0
    window_ms: float = 0.0
    epochs: int = 0
    changes: int = 0
    change_rate: float = 0.0
    settling: bool = False
    copied_rows: int = 0
    tables: int = 0
    copying: tuple[Copying, ...] = ()
    copy: Forecast = THROUGH
    log: Forecast = THROUGH
    wrong: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    keys: str = ""


def plain(seen: Seen) -> str:
    """The same in one line, for a log: times and rates are those of now."""
    if not seen.epoch:
        return f"{seen.feed}: {seen.doing}"
    parts = [f"epoch {seen.epoch}", f"lag {seen.lag_seconds:.2f} s", f"{seen.changes:,} changes"]
    if seen.copying:
        parts.append(f"{copied(seen)}; to go: {to_go(seen)}")
    else:
        parts.append(f"{seen.copied_rows:,} rows copied")
    return f"{seen.feed}: " + ", ".join(parts)


def copied(seen: Seen) -> str:
    """`187 of 200 tables, 1,802,582 rows`."""
    done = seen.tables - len(seen.copying)
    tables = f"all {seen.tables:,} tables" if not seen.copying else f"{done:,} of {seen.tables:,} tables"
    if seen.tables == 1 and not seen.copying:
        tables = "the table"
    return f"{tables}, {seen.copied_rows:,} rows"


def to_go(seen: Seen) -> str:
    """`512,000 rows, 0:03:20 (0:02:40 to 0:05:00)`."""
    left = sum(copy.left for copy in seen.copying)
    about = "" if all(copy.expected is not None for copy in seen.copying) else "at least "
    remaining = until(seen.copy)
    return f"{about}{left:,} rows" + (f", {remaining}" if remaining else "")
