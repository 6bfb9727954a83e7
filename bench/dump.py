"""What a dump does to the log beside it, how soon a pause is quiet, and how true a forecast is.

One shard, where another table is written to all the time. The large table is copied a second time, by an order.
Run: `python -m bench --only dump`; `--rows` sets the size.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.feeds import Ran, feed, running, wait_for_copy
from bench.figures import Figure, figure, percentile
from bench.stress import TABLE, fill, writing
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump, tables
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.watch.report import Report
from catchment.watch.table_status import TableStatus

PER_SECOND = 400
OTHER = "bench.other"
EPOCHS = 20
SECONDS_MAX = 3600.0
_LOOK_SECONDS = 0.02
_QUIET_SECONDS = 3.0
_QUARTER = 0.25


@dataclass(frozen=True, slots=True)
class Course:
    """Lags of epochs, in seconds from the reading of positions to the commit: `before` a copy, and `beside` it.
    `paused`: seconds from the order until the last row came. Of a copy that runs through: what it was said to take when
    a quarter was done (`forecast`), and took (`truth`)."""

    before: Sequence[float]
    beside: Sequence[float]
    paused: float
    forecast: float
    truth: float


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """One copy that is paused once, and one that runs through, for each run."""
    courses = [_measured(rows) for _ in range(runs)]
    what = f"dump of {rows} rows"
    before, beside = (
        [percentile(lags, 0.95) for lags in found]
        for found in ([c.before for c in courses], [c.beside for c in courses])
    )
    return [
        figure(f"{what}, lag p95", beside, "s", "without one", before, 2),
        figure(f"{what}, quiet after a pause", [c.paused for c in courses], "s", "agreed", [2.0] * runs, 2),
        figure(
            f"{what}, forecast at a quarter",
            [c.forecast for c in courses],
            "s",
            "the truth",
            [c.truth for c in courses],
            2,
        ),
    ]


def _measured(rows: int) -> Course:
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "512M"}) as server,
    ):
        fill(server, rows)
        server.sql(
            f"CREATE TABLE {OTHER} (id INT PRIMARY KEY, n BIGINT)", f"INSERT INTO {OTHER} VALUES (1, 0)"
        )
        chosen = feed(Path(directory), [server], engine="local")
        with running(chosen) as ran, writing(server, f"UPDATE {OTHER} SET n = n + 1", PER_SECOND):
            wait_for_copy(ran, SECONDS_MAX)
            first = len(ran.epochs)
            _wait(lambda: len(ran.epochs) >= first + EPOCHS)
            before = _lags(ran, first, len(ran.epochs))
            _begin(chosen)
            began = len(ran.epochs)
            paused = _paused(chosen, ran)
            dump(chosen, "resume", TABLE)
            _wait(lambda: _table(chosen).state is TableState.FOLLOWING)
            _begin(chosen)
            forecast, truth = _forecast(chosen)
            beside = _lags(ran, began, len(ran.epochs))
    return Course(before, beside, paused, forecast, truth)


def _begin(chosen: Feed) -> None:
    """Copy the large table again; return when rows have come."""
    dump(chosen, "restart", TABLE)
    _wait(lambda: _table(chosen).state is TableState.RENEWING and _table(chosen).rows > 0)


def _paused(chosen: Feed, ran: Ran) -> float:
    """Seconds from the order to pause until the commit of the last epoch that brought rows of the copy."""
    asked = time.perf_counter()
    dump(chosen, "pause", TABLE)
    time.sleep(_QUIET_SECONDS)
    brought = [ran.began + at - asked for at, report in ran.epochs if _copied(report)]
    assert _table(chosen).state is TableState.HALTED, "the copy was through before the pause: give more rows"
    return max(0.0, brought[-1])


def _forecast(chosen: Feed) -> tuple[float, float]:
    """What a copy was said to take when a quarter of it was done, and what it took then."""

    def quarter() -> bool:
        now = _table(chosen)
        return now.left.likely is not None and now.rows >= _QUARTER * (now.expected or now.rows_expected)

    _wait(quarter)
    said, at = _table(chosen).left.likely, time.perf_counter()
    _wait(lambda: _table(chosen).state is TableState.FOLLOWING)
    return said or 0.0, time.perf_counter() - at


def _table(chosen: Feed) -> TableStatus:
    return next(one for one in tables(chosen) if one.table == TABLE)


def _copied(report: Report) -> int:
    return sum(delta.copied for delta in report.manifest.deltas if delta.shape.table == TableId.parse(TABLE))


def _lags(ran: Ran, first: int, end: int) -> list[float]:
    return [
        ran.began_at + at - report.manifest.time_us / 1_000_000 for at, report in list(ran.epochs)[first:end]
    ]


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {SECONDS_MAX} s")
        time.sleep(_LOOK_SECONDS)
