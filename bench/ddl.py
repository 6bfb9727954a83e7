"""What DDL on a large table costs a feed: seconds until it is exact again, rows that the source has to give, and how
far other tables fall behind meanwhile.

One shard, where another table is written to all the time. Run: `python -m bench --only ddl`; `--rows` sets the size.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.feeds import Ran, feed, running, wait_for_copy, wait_until
from bench.figures import Figure, figure
from bench.stress import SCHEMA, TABLE, fill, writing
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.model.errors import SinkError
from catchment.model.position import LogOffset, reaches
from catchment.model.table import TableId
from catchment.sink.delta.reading.changed import newest_settled
from catchment.watch.report import Report

PER_SECOND = 100
OTHER = "bench.other"
SHARD = "s0"
SECONDS_MAX = 3600.0
BEFORE = 5  # epochs
_FILL_ROWS = 1_000_000
SHADOW = f"{SCHEMA}._{TABLE.split('.')[1]}_new"
SWAP = "a table swapped in"
# Each begins when the plain table has the one before. The order of rows is nothing that a feed follows.
CLASSES = {
    "ADD COLUMN NULL": f"ALTER TABLE {TABLE} ADD COLUMN free INT",
    "ADD COLUMN with a value": f"ALTER TABLE {TABLE} ADD COLUMN valued INT NOT NULL DEFAULT 7",
    "DROP COLUMN": f"ALTER TABLE {TABLE} DROP COLUMN free",
    "MODIFY": f"ALTER TABLE {TABLE} MODIFY sig VARCHAR(60)",
    "RENAME COLUMN": f"ALTER TABLE {TABLE} RENAME COLUMN valued TO renamed",
    SWAP: f"RENAME TABLE {TABLE} TO {SCHEMA}.old, {SHADOW} TO {TABLE}",
    "a table copied anew": f"ALTER TABLE {TABLE} ORDER BY sig",
    "TRUNCATE": f"TRUNCATE TABLE {TABLE}",
}


@dataclass(frozen=True, slots=True)
class Pace:
    """Epochs a second, and the median of their lags: seconds from the reading of positions to the commit."""

    epochs: float
    lag: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one statement: its seconds on the server; seconds behind it until an epoch has it, exact, and until the plain
    table is that; rows that were copied; the pace until then."""

    statement: float
    followed: float
    settled: float
    copied: int
    pace: Pace


@dataclass(frozen=True, slots=True)
class Course:
    """The cost of each class of DDL, in one feed, and its pace before."""

    before: Pace
    costs: dict[str, Cost]


def run(rows: int = 2_000_000, runs: int = 1) -> list[Figure]:
    """Each class of DDL on a table of so many rows."""
    courses = [_measured(rows) for _ in range(runs)]
    return [found for name in CLASSES for found in _figures(name, rows, courses)]


def _measured(rows: int) -> Course:
    settings = {"innodb_buffer_pool_size": "512M"}
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings=settings) as server,
    ):
        fill(server, rows)
        server.sql(
            f"CREATE TABLE {OTHER} (id INT PRIMARY KEY, n BIGINT)", f"INSERT INTO {OTHER} VALUES (1, 0)"
        )
        sink = {"path": f"{directory}/lake", "settle": "1s"}
        chosen = feed(Path(directory), [server], sink=sink, engine="local")
        with running(chosen) as ran, writing(server, f"UPDATE {OTHER} SET n = n + 1", PER_SECOND):
            wait_for_copy(ran, SECONDS_MAX)
            wait_until(lambda: _settled(chosen) > 0)
            began, first = time.perf_counter(), len(ran.epochs)
            wait_until(lambda: len(ran.epochs) >= first + BEFORE)
            before = _pace(ran, first, first + BEFORE, began)
            costs = {}
            for name, words in CLASSES.items():
                if name == SWAP:
                    _fill_shadow(server, rows)
                    _wait_for_log(server, ran)
                costs[name] = _cost(server, chosen, ran, words)
    return Course(before, costs)


def _fill_shadow(server: PrivateServer, rows: int) -> None:
    """Build what a tool swaps in: it is followed from its first row."""
    server.sql(f"CREATE TABLE {SHADOW} LIKE {TABLE}")
    for first in range(1, rows + 1, _FILL_ROWS):
        last = first + _FILL_ROWS - 1
        server.sql(f"INSERT INTO {SHADOW} SELECT * FROM {TABLE} WHERE id BETWEEN {first} AND {last}")


def _wait_for_log(server: PrivateServer, ran: Ran) -> None:
    """Until the feed has what the log holds now."""
    end = LogOffset(*server.log_end())
    wait_until(lambda: reaches(ran.epochs[-1][1].manifest.cut.positions[SHARD].at, end))


def _figures(name: str, rows: int, courses: Sequence[Course]) -> list[Figure]:
    costs, before = [course.costs[name] for course in courses], [course.before for course in courses]
    what, server = f"{name}, {rows} rows", [cost.statement for cost in costs]
    followed, settled = [cost.followed for cost in costs], [cost.settled for cost in costs]
    paces = [cost.pace for cost in costs]
    return [
        figure(f"{what}: exact in an epoch", followed, "s", "the statement", server, 2),
        figure(f"{what}: exact in the plain table", settled, "s", "the statement", server, 2),
        figure(
            f"{what}: read from the source", [c.copied for c in costs], "rows", "all", [rows] * len(costs)
        ),
        figure(
            f"{what}: epochs", [p.epochs for p in paces], "a second", "before", [p.epochs for p in before], 2
        ),
        figure(
            f"{what}: lag of all tables", [p.lag for p in paces], "s", "before", [p.lag for p in before], 2
        ),
    ]


def _cost(server: PrivateServer, chosen: Feed, ran: Ran, statement: str) -> Cost:
    table = TableId.parse(TABLE)
    began, first = time.perf_counter(), len(ran.epochs)
    server.sql(statement)
    done = time.perf_counter()
    # A row behind it: then the plain table has a version of its own for it.
    server.sql(f"INSERT INTO {TABLE} (id, c) VALUES ({-len(ran.epochs)}, 'new')")
    end = LogOffset(*server.log_end())

    def exact(report: Report) -> bool:
        cut = report.manifest.cut
        stale = report.manifest.stale_since(table) is not None
        return cut.copied and not stale and reaches(cut.positions[SHARD].at, end)

    wait_until(lambda: any(exact(report) for _, report in ran.epochs[first:]))
    place = next(n for n, (_, report) in enumerate(ran.epochs) if n >= first and exact(report))
    at, _ = ran.epochs[place]
    # The log goes on behind the change, so this epoch may have nothing of the table.
    changed = max(r.manifest.epoch for _, r in ran.epochs[first : place + 1] if _has(r, table))
    wait_until(lambda: _settled(chosen) >= changed)
    return Cost(
        statement=done - began,
        followed=ran.began + at - done,
        settled=time.perf_counter() - done,
        copied=sum(_copied(report, table) for _, report in ran.epochs[first : place + 1]),
        pace=_pace(ran, first, place + 1, began),
    )


def _pace(ran: Ran, first: int, end: int, began: float) -> Pace:
    """That of some epochs of a run, the first of which was waited for since `began`."""
    epochs = ran.epochs[first:end]
    lags = [ran.began_at + at - report.manifest.time_us / 1_000_000 for at, report in epochs]
    return Pace(len(epochs) / (ran.began + epochs[-1][0] - began), statistics.median(lags))


def _settled(chosen: Feed) -> int:
    """The epoch that the plain table is; 0 before its first."""
    try:
        return newest_settled(chosen.sink.path, chosen.name, TableId.parse(TABLE))
    except SinkError:
        return 0


def _has(report: Report, table: TableId) -> bool:
    return any(delta.shape.table == table for delta in report.manifest.deltas)


def _copied(report: Report, table: TableId) -> int:
    return sum(delta.copied for delta in report.manifest.deltas if delta.shape.table == table)
