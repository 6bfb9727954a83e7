"""What a dump does to the log beside it, how soon a pause is quiet, and how true a forecast is.

One shard, where another table is written to all the time. The large table is copied again and again, by orders: as fast
as it goes for the lag, and for the others in about twenty seconds.

Run: `python -m bench --only dump`; `--rows` sets the size.
"""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.feeds import Ran, feed, running, wait_for_copy, wait_until
from bench.figures import Figure, figure, percentile
from bench.stress import TABLE, fill, writing
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump, set_live, tables
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.watch.report import Report
from catchment.watch.table_status import TableStatus

PER_SECOND = 400
OTHER = "bench.other"
EPOCHS = 20
SECONDS_MAX = 600.0
_SECONDS = 20
_QUIET_SECONDS = 3.0
_QUARTER = 0.25


@dataclass(frozen=True, slots=True)
class Course:
    """Ages of the oldest change of an epoch at its commit, in seconds: `before` a copy, and `beside` it.
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
        PrivateServer(settings={"innodb_buffer_pool_size": "1G"}) as server,
    ):
        fill(server, rows)
        server.sql(
            f"CREATE TABLE {OTHER} (id INT PRIMARY KEY, n BIGINT)", f"INSERT INTO {OTHER} VALUES (1, 0)"
        )
        chosen = feed(Path(directory), [server], engine="local")
        with running(chosen) as ran, writing(server, f"UPDATE {OTHER} SET n = n + 1", PER_SECOND):
            wait_for_copy(ran, SECONDS_MAX)
            first = len(ran.epochs)
            wait_until(lambda: len(ran.epochs) >= first + EPOCHS)
            before = _lags(ran, range(first, len(ran.epochs)))
            beside: list[float] = []
            while len(beside) < EPOCHS:
                beside += _beside_a_copy(chosen, ran)
            set_live(chosen, {"copy.throttle.rows_per_second": str(rows // _SECONDS)})
            _begin(chosen)
            paused = _paused(chosen, ran)
            dump(chosen, "resume", TABLE)
            wait_until(lambda: _table(chosen).state is TableState.FOLLOWING)
            _begin(chosen)
            forecast, truth = _forecast(chosen)
    return Course(before, beside, paused, forecast, truth)


def _beside_a_copy(chosen: Feed, ran: Ran) -> list[float]:
    """Lags of the epochs that bring the large table once more."""
    first = len(ran.epochs)
    dump(chosen, "restart", TABLE)
    wait_until(lambda: _table(chosen).state is TableState.FOLLOWING)
    return _lags(ran, [n for n in range(first, len(ran.epochs)) if _copied(ran.epochs[n][1])])


def _begin(chosen: Feed) -> None:
    """Copy the large table again; return when rows have come."""
    dump(chosen, "restart", TABLE)
    wait_until(lambda: _table(chosen).state is TableState.RENEWING and _table(chosen).rows > 0)


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

    wait_until(quarter)
    said, at = _table(chosen).left.likely, time.perf_counter()
    wait_until(lambda: _table(chosen).state is TableState.FOLLOWING)
    return said or 0.0, time.perf_counter() - at


def _table(chosen: Feed) -> TableStatus:
    return next(one for one in tables(chosen) if one.table == TABLE)


def _copied(report: Report) -> int:
    return sum(delta.copied for delta in report.manifest.deltas if delta.shape.table == TableId.parse(TABLE))


def _lags(ran: Ran, epochs: Iterable[int]) -> list[float]:
    """Of these epochs: the oldest change came right behind the cut of the one before."""
    chosen = list(epochs)
    began = [ran.epochs[number - 1][1].manifest.time_us / 1_000_000 for number in chosen]
    ended = [ran.began_at + ran.epochs[number][0] for number in chosen]
    return [end - begin for begin, end in zip(began, ended, strict=True)]
