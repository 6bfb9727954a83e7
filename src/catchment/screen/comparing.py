"""What a person sees while `catchment verify` compares: how many rows of how many, how fast, and what differs."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from catchment.feed.repair import Repair
from catchment.feed.verify import Verdict
from catchment.model.epoch import epoch_text
from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId
from catchment.screen.display import time_left
from catchment.screen.rate import Rate

# A log has a line at most so often.
LOG_SECONDS = 10.0


class VerifyView:
    """One line that is kept current on a terminal, else a line every ten seconds. `expected`: rows by table, as copied.

    It belongs on stderr: the result on stdout is for programs, too.
    """

    def __init__(self, console: Console, expected: Mapping[TableId, int]) -> None:
        self._console = console
        self._expected = expected
        self._speed = Rate()
        self._line = Text("starting Spark")
        self._logged_at = time.monotonic()

    def observe(self, verdict: Verdict) -> None:
        """Take in what was compared so far."""
        now, rows = time.monotonic(), sum(verdict.rows.values())
        self._speed.add(now, rows)
        rate = self._speed.rate(now)
        total = max(sum(self._expected.values()), rows)
        parts = [f"{rows:,} of about {total:,} rows compared"]
        if rate:
            parts.append(f"{rate:,.0f} a second")
        left = time_left(total - rows, rate)
        if left and rows < total:
            parts.append(f"{left} left")
        parts.append(f"{verdict.differences:,} keys differ" if verdict.differences else "no difference")
        self._show(", ".join(parts))

    def observe_repair(self, answered: int, of: int) -> None:
        """Take in how many orders to mend of how many are answered."""
        self._show(f"{answered:,} of {of:,} parts with differences mended")

    def _show(self, line: str) -> None:
        self._line, now = Text(line), time.monotonic()
        if not self._console.is_terminal and now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            self._console.print(self._line, soft_wrap=True)

    def __rich__(self) -> Text:
        return self._line

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the line current on a terminal while the block runs, and take it away afterwards."""
        if not self._console.is_terminal:
            yield
            return
        with Live(self, console=self._console, transient=True):
            yield


def lines(verdict: Verdict, sample: Sample = EVERYTHING) -> list[str]:
    """The verdict as text: a line per table, the differing keys, and what was not compared."""
    text = []
    for table, rows in sorted(verdict.rows.items()):
        found = verdict.found.get(table)
        if found is None or not found.total:
            text.append(f"{table}: {rows:,} rows equal")
            continue
        text.append(
            f"{table}: {rows:,} rows compared, {found.missing} missing at the lake, {found.extra} only at "
            "the lake, "
            f"{found.changed} different"
        )
        text += [f"  {name}" for name in found.named]
    text += [f"not copied completely yet, compared as far as it is: {where}" for where in verdict.partial]
    if sample.percent < 100:
        text.append(f"{_of_parts(verdict)}, a sample of {sample.percent:g} % (--seed {sample.seed})")
    text += [f"not compared: {stale}" for stale in verdict.stale]
    first, last = verdict.epochs
    compared = f"compared as of epoch {epoch_text(first)}"
    text.append(compared if first == last else f"{compared} to {epoch_text(last)}")
    return text


def _of_parts(verdict: Verdict) -> str:
    compared, parts = verdict.parts
    return f"compared {compared:,} of {parts:,} parts"


def repair_lines(repair: Repair) -> list[str]:
    """What was mended, by table and shard, and what was not."""
    text = [f"{of}: mended, {found}" for of, found in repair.mended.items()]
    text += [f"not mended: {why}" for why in repair.left]
    if not repair.left:
        text.append("compared again: equal")
    return text
