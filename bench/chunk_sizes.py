"""The experiment of seed 000 with the copy of a feed: one SELECT of the whole table, beside chunks of it.

All are run in turn on one private server whose pages are warm, idle and under 1,000 transactions/s, with the engine
`local`. `python -m bench --only chunks` prints figures; `python -m bench.chunk_sizes --rows N` writes them into docs/.
"""

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from bench.bars import Bar, Cluster, chart
from bench.feeds import feed, run_until_caught_up
from bench.figures import Figure, figure
from bench.stress import TRANSACTIONS_PER_SECOND, change_one, fill, select_all_seconds, writing
from catchment.demo.server import PrivateServer

ROWS = 1 << 24  # of the seed
DOCS = Path(__file__).parents[1] / "docs"
PAGE, PLOT = DOCS / "chunk-sizes.md", DOCS / "chunk-sizes.svg"
_BEGIN, _END = "<!-- measured by bench/chunk_sizes.py -->", "<!-- end of the measurements -->"
# Seconds of the seed: its table without traffic and with a time limit that no round reached. Chunks of 20,000 rows did
# not end within hours.
SEED_WHOLE = 140
SEED = {1_000_000: 166, 100_000: 350}
_SEED_COLOUR, _IDLE_COLOUR, _LOADED_COLOUR = "#bab0ab", "#4c78a8", "#f58518"


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the table is read: `rows` of a SELECT (None: all), and how many SELECTs there are at once."""

    rows: int | None
    groups: int

    @property
    def name(self) -> str:
        """What figures call it."""
        if self.rows is None:
            return "one SELECT"
        return f"chunks of {self.rows:,} rows, {('one', 'two')[self.groups - 1]} at once"


WHOLE = Strategy(None, 1)
CHUNKS = tuple(Strategy(rows, groups) for groups in (1, 2) for rows in (1_000_000, 100_000, 20_000))


@dataclass(frozen=True, slots=True)
class Copied:
    """Seconds to the commit of the last chunk, the epochs that brought rows, and transactions/s meanwhile."""

    seconds: float
    epochs: int
    transactions: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs of every strategy, idle and under writes, in the order in which they were paired."""

    rows: int
    server: str
    idle: dict[Strategy, list[Copied]]
    loaded: dict[Strategy, list[Copied]]


def run(rows: int = ROWS, runs: int = 3) -> list[Figure]:
    """Seconds of each strategy, beside one SELECT of the whole table in the same round."""
    measured = measure(rows, runs)
    written = round(_median([one.transactions for one in measured.loaded[WHOLE]]))
    return [
        figure(
            f"copy of {rows} rows in {strategy.name}{load}",
            [one.seconds for one in copies[strategy]],
            "s",
            f"{WHOLE.name}{load}",
            [one.seconds for one in copies[WHOLE]],
            2,
        )
        for load, copies in (("", measured.idle), (f", under {written} transactions/s", measured.loaded))
        for strategy in CHUNKS
    ]


def measure(rows: int, runs: int) -> Measured:
    """Copy the table with every strategy, `runs` times in turn, idle and under writes."""
    order = [WHOLE, *CHUNKS]
    idle: dict[Strategy, list[Copied]] = {strategy: [] for strategy in order}
    loaded: dict[Strategy, list[Copied]] = {strategy: [] for strategy in order}
    with (
        tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory,
        PrivateServer(settings={"innodb_buffer_pool_size": "3G"}) as server,
    ):
        fill(server, rows)
        version = str(server.sql("SELECT VERSION()")[0][0])
        select_all_seconds(server)  # its pages are in memory from now on
        _copy(Path(directory), server, rows, CHUNKS[-1])
        for number in range(runs):
            for strategy in order[number:] + order[:number]:
                idle[strategy].append(_copy(Path(directory), server, rows, strategy))
                with writing(server, change_one(rows), TRANSACTIONS_PER_SECOND) as writer:
                    copied = _copy(Path(directory), server, rows, strategy)
                rate = writer.transactions / writer.seconds
                loaded[strategy].append(Copied(copied.seconds, copied.epochs, rate))
    return Measured(rows, version, idle, loaded)


def _copy(directory: Path, server: PrivateServer, rows: int, strategy: Strategy) -> Copied:
    copying = {
        "groups_per_shard": strategy.groups,
        "chunk_time": "60s",
        "chunk_rows_max": strategy.rows or rows,
    }
    own = Path(tempfile.mkdtemp(dir=directory))
    with _no_key_after() if strategy.rows is None else nullcontext():
        ran = run_until_caught_up(feed(own, [server], engine="local", copy=copying))
    shutil.rmtree(own, ignore_errors=True)  # a settle may go on there
    found = [sum(delta.copied for delta in report.manifest.deltas) for _, report in ran.epochs]
    brought = [count for count in found if count]
    if sum(brought) != rows or (strategy.rows is None and len(brought) > 1):
        raise AssertionError(f"{strategy.name}: epochs brought {brought} of {rows} rows")
    return Copied(ran.copied_after(), len(brought))


@contextmanager
def _no_key_after() -> Iterator[None]:
    """A feed whose first chunk is its last: it finds no key at which another could begin.

    The product itself never reads a table so. The rest is as for all: floor, log behind the SELECT, one commit.
    """
    steps = "catchment.feed.chunk_steps"
    # A step by arithmetic would hold too many rows, and no key stands behind so many.
    with (
        patch(f"{steps}.rows_between", lambda *asked: 1 << 62),
        patch(f"{steps}.key_after", lambda *asked: None),
    ):
        yield


def page(measured: Measured, before: str) -> str:
    """The page with these measurements in place of those that it has."""
    head, _, rest = before.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}\n\n{_said(measured)}\n\n{_END}{tail}"


def _said(measured: Measured) -> str:
    rate = _median([one.transactions for one in measured.loaded[WHOLE]])
    loads = ("idle", f"under {rate:,.0f} transactions/s")
    heads = ["read by", "SELECTs at once", "epochs", *(f"{load} | beside one SELECT" for load in loads)]
    lines = [
        f"{measured.rows:,} rows on MariaDB {measured.server}, {os.cpu_count()} processors for the server and the "
        f"feed; medians of {len(measured.idle[WHOLE])} runs in turn.",
        "",
        f"| {' | '.join(heads)} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for strategy in (WHOLE, *CHUNKS):
        read = WHOLE.name if strategy.rows is None else f"chunks of {strategy.rows:,} rows"
        cells = [
            read,
            str(strategy.groups),
            f"{_median([one.epochs for one in measured.idle[strategy]]):.0f}",
        ]
        for copies in (measured.idle, measured.loaded):
            beside = "" if strategy is WHOLE else f"{_ratio(copies, strategy):.2f}"
            cells += [f"{_median([one.seconds for one in copies[strategy]]):.1f} s", beside]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"![Time of a copy by the size of its chunks]({PLOT.name})"])


def plot(measured: Measured) -> str:
    """An SVG: the time of each strategy as a multiple of one SELECT's, beside that of the seed."""
    clusters = []
    for strategy in CHUNKS:
        assert strategy.rows is not None
        bars = [
            _bar(_ratio(measured.idle, strategy), _IDLE_COLOUR),
            _bar(_ratio(measured.loaded, strategy), _LOADED_COLOUR),
        ]
        if strategy.groups == 1:
            bars.insert(0, _bar_of_seed(strategy.rows))
        clusters.append(
            Cluster(f"{strategy.rows:,} rows, {('one', 'two')[strategy.groups - 1]} at once", tuple(bars))
        )
    legend = (
        ("seed 000, idle", _SEED_COLOUR),
        ("Catchment, idle", _IDLE_COLOUR),
        ("under writes", _LOADED_COLOUR),
    )
    return chart("Time of a copy in chunks, beside one SELECT of all rows (line: 1)", clusters, legend, 1.0)


def _bar(ratio: float, colour: str) -> Bar:
    return Bar(ratio, f"{ratio:.2f}", colour)


def _bar_of_seed(rows: int) -> Bar:
    if rows in SEED:
        return _bar(SEED[rows] / SEED_WHOLE, _SEED_COLOUR)
    return Bar(max(SEED.values()) / SEED_WHOLE * 1.2, "hours", _SEED_COLOUR)


def _ratio(copies: dict[Strategy, list[Copied]], strategy: Strategy) -> float:
    pairs = zip(copies[strategy], copies[WHOLE], strict=True)
    return _median([one.seconds / whole.seconds for one, whole in pairs])


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def main() -> None:
    """Measure, and write the page and its plot."""
    parser = argparse.ArgumentParser(prog="python -m bench.chunk_sizes", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    measured = measure(chosen.rows, chosen.runs)
    PAGE.write_text(page(measured, PAGE.read_text()))
    PLOT.write_text(plot(measured))
    print(_said(measured))


if __name__ == "__main__":
    main()
