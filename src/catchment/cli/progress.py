"""What a person sees of a run: a bar per table while it is copied, why a copy stands still, and a line of lag,
epoch and changes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from catchment.model.chunk import Progress as Copied
from catchment.model.epoch import Manifest, Refusal, gci_of, micro_gci_of
from catchment.model.table import TableId
from catchment.run.report import Report, Rest


class RunView:
    """Counts what the committed epochs bring; `observe` is called from the apply thread, `at_rest` from the loop."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=28),
            TextColumn("{task.completed:>12,.0f} / {task.total:,.0f} rows"),
            TextColumn("{task.fields[rate]:>12}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[TableId, TaskID] = {}
        self._line = Text("waiting for the first epoch")
        self._refused: tuple[Refusal, ...] = ()
        self._began = time.monotonic()
        self.epochs = 0
        self.changes = 0
        self.copied = 0
        self.copy_seconds = 0.0
        self.lag_seconds = 0.0
        self.newest: Report | None = None

    def observe(self, report: Report) -> None:
        """Take in one committed epoch."""
        manifest = report.manifest
        self.epochs += 1
        self.changes += manifest.changes
        copied = sum(delta.copied for delta in manifest.deltas)
        self.copied += copied
        if copied:
            self.copy_seconds = time.monotonic() - self._began
        self.lag_seconds = report.lag_seconds
        self.newest = report
        self._refused = report.refused
        self._show(manifest)
        if not self._console.is_terminal:
            self._console.print(self._line.plain, highlight=False, soft_wrap=True)

    def at_rest(self, rest: Rest) -> None:
        """Take in a turn that brought nothing."""
        self._refused = rest.refused

    def _show(self, manifest: Manifest) -> None:
        of_table: dict[TableId, list[Copied]] = {shape.table: [] for shape in manifest.shapes}
        for progress in manifest.progress:
            of_table[progress.table].append(progress)
        for table, mine in of_table.items():
            rows, done = sum(p.rows for p in mine), all(p.done for p in mine)
            total = rows if done else max(sum(p.rows_expected for p in mine), rows)
            if table not in self._tasks:
                self._tasks[table] = self._bars.add_task(str(table), total=total, rate="")
            elapsed = max(time.monotonic() - self._began, 0.001)
            rate = "copied" if done else f"{rows / elapsed:,.0f}/s"
            self._bars.update(self._tasks[table], completed=rows, total=max(total, 1), rate=rate)
        number = manifest.epoch
        self._line = Text(
            f"epoch {gci_of(number)}.{micro_gci_of(number):<4} lag {self.lag_seconds:5.2f} s   "
            f"cut window {manifest.window_us / 1000:5.1f} ms   copied {self.copied:,} rows   changes "
            f"{self.changes:,}"
        )

    def __rich__(self) -> RenderableType:
        return Group(
            self._bars, *(Text(str(refusal), style="yellow") for refusal in self._refused), self._line
        )

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the view while the block runs, on a terminal; elsewhere each epoch prints a line."""
        if not self._console.is_terminal:
            yield
            return
        with Live(self, console=self._console, refresh_per_second=4):
            yield
