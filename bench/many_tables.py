"""200 small tables on 4 shards, changes in all of them every second: lag, files and commits of an epoch.

Run: `python -m bench --only tables`.
"""

import bisect
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.feeds import Ran, feed, running, wait_for_copy
from bench.figures import Figure, figure, percentile
from bench.stress import writing
from catchment.demo.server import PrivateServer

SHARDS = 4
TABLES = 200
SECONDS = 30.0
WARM_SECONDS = 5.0
ROWS_PER_TABLE = 100


def run(runs: int = 3, tables: int = TABLES) -> list[Figure]:
    """Medians over the runs; lag: from a commit at the source to that of its epoch, at all moments."""
    lags, files, commits, seconds = [], [], [], []
    for _ in range(runs):
        ran, began = _measure(tables)
        steady = [report for at, report in ran.epochs if at >= began]
        lags.append(percentile(_lags(ran, began), 0.95))
        files.append(statistics.median(sum(len(d.files) for d in r.manifest.deltas) for r in steady))
        commits.append(statistics.median(len(r.manifest.deltas) + 1 for r in steady))
        seconds.append(statistics.median(r.phases["read"] + r.phases["apply"] for r in steady))
    name = f"{tables} tables on {SHARDS} shards"
    interval, one = [1.0] * runs, [float(tables)] * runs
    return [
        figure(f"{name}, lag p95", lags, "s", "epoch interval", interval, 2),
        figure(f"{name}, read and apply of an epoch", seconds, "s", "epoch interval", interval, 2),
        figure(f"{name}, files per epoch", files, "files", "tables", one),
        figure(f"{name}, commits per epoch", commits, "commits", "tables", one),
    ]


def _measure(tables: int) -> tuple[Ran, float]:
    """A run under steady changes, and the second from which on it counts."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="catchment-bench-"))
        servers = [
            stack.enter_context(PrivateServer(server_id=n + 1, settings={"innodb_buffer_pool_size": "32M"}))
            for n in range(SHARDS)
        ]
        for server in servers:
            _create(server, tables)
        with running(feed(Path(directory), servers)) as ran:
            wait_for_copy(ran)
            with ExitStack() as writers:
                # One transaction after the other, each in the next table: all of them once a second.
                for server in servers:
                    writers.enter_context(writing(server, "CALL bench.one_change(@n)", tables))
                time.sleep(WARM_SECONDS)
                began = ran.epochs[-1][0]
                time.sleep(SECONDS)
    return ran, began


def _create(server: PrivateServer, tables: int) -> None:
    cases = []
    statements = ["CREATE DATABASE bench"]
    for number in range(tables):
        name = f"bench.t{number:03}"
        statements.append(
            f"CREATE TABLE {name} (id int AUTO_INCREMENT PRIMARY KEY, v varchar(40), n int) ENGINE=InnoDB"
        )
        statements.append(
            f"INSERT INTO {name} (v, n) SELECT SHA1(seq), seq FROM bench.seq_1_to_{ROWS_PER_TABLE}"
        )
        cases.append(
            f"WHEN {number} THEN UPDATE {name} SET v = SHA1(i), n = i WHERE id = 1 + i MOD {ROWS_PER_TABLE};"
        )
    procedure = f"CREATE PROCEDURE bench.one_change(i int) CASE i MOD {tables} {' '.join(cases)} END CASE"
    server.sql(*statements, procedure)


def _lags(ran: Ran, began: float) -> list[float]:
    """For every tenth of a second: how long after it the lake had all that was committed until then."""
    cuts = [report.manifest.time_us / 1e6 for _, report in ran.epochs]
    commits = [report.commit.time_us / 1e6 for _, report in ran.epochs]
    first = next(i for i, (at, _) in enumerate(ran.epochs) if at >= began)
    moments = [cuts[first] + tenth / 10 for tenth in range(int((cuts[-1] - cuts[first]) * 10))]
    return [commits[bisect.bisect_left(cuts, moment)] - moment for moment in moments]
