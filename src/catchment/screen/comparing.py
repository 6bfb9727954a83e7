"""What a person sees while `catchment verify` compares: how many rows of how many, how fast, and what differs."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from catchment.feed.verdict import Verdict
from catchment.feed.verify_report import VerifyReport
from catchment.model.epoch_number import epoch_text
from catchment.model.order import Mended
from catchment.model.table import TableId
from catchment.screen.rate import Rate
from catchment.screen.until import time_left

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


def lines(report: VerifyReport) -> list[str]:
    """The result as text: a line per table, the differing keys, and what was not compared."""
    text = []
    for one in report.tables:
        if one.missing + one.extra + one.changed:
            found = Mended(one.missing, one.extra, one.changed)
            text.append(f"{one.table}: {one.rows:,} rows compared, {found}")
            text += [f"  {name}" for name in one.named]
        else:
            text.append(f"{one.table}: {one.rows:,} rows equal")
        if one.unproven:
            text.append(
                f"{one.table}: {one.unproven:,} keys compared by the log alone: their SELECTs returned rows of before "
                "the shard's last transaction; commit another transaction there, then verify again"
            )
    text += [f"not copied completely yet, compared as far as it is: {where}" for where in report.partial]
    if report.percent < 100:
        parts = f"compared {report.parts_compared:,} of {report.parts:,} parts"
        text.append(f"{parts}, a sample of {report.percent:g} % (--seed {report.seed})")
    if report.portion:
        text.append(f"compared of {report.portion} alone")
    if report.since_epoch:
        text.append(
            f"compared of what changed since epoch {epoch_text(report.since_epoch)} alone: {report.changed_keys:,} keys"
        )
    text += [f"compared whole, for the changes since do not name all rows: {where}" for where in report.whole]
    text += [f"not compared: {stale}" for stale in report.stale]
    if report.resumed_rows:
        text.append(f"{report.resumed_rows:,} of these rows were compared before it was interrupted")
    compared = f"compared as of epoch {epoch_text(report.first_epoch)}"
    last = epoch_text(report.last_epoch)
    text.append(compared if report.first_epoch == report.last_epoch else f"{compared} to {last}")
    return text


def repair_lines(report: VerifyReport) -> list[str]:
    """What was mended, by table and shard, and what was not."""
    text = [f"{of}: mended, {found}" for of, found in (report.mended or {}).items()]
    text += [f"not mended: {why}" for why in report.left or ()]
    if report.left == ():
        text.append("compared again: equal")
    return text
