"""Deciding when to fold, from what the committed epochs bring; the work is done by a process of its own."""

import logging
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import msgspec

from catchment import world
from catchment.config import Feed
from catchment.model.epoch import DataFile, Manifest, Part, TableShape
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.clean import window_hours
from catchment.sink.delta.commit import open_table
from catchment.sink.delta.fold.due import (
    SMALL_CHANGES_BYTES,
    FoldLimits,
    TableStats,
    should_fold,
    should_gather,
    table_stats,
)
from catchment.sink.delta.fold.process import FoldOrder, start
from catchment.sink.delta.layout import tail_dir
from catchment.state.lease import LEASE_SECONDS

START_SECONDS_MIN = 5.0
# A fold process takes 0.4 s of CPU to start, and small tables are always above their share. With 100 changes a second,
# a process every five seconds took a quarter of the feed's CPU. Readers pay 1 ms for each epoch of few rows that waits.
FEW_ROWS = 10_000
FEW_SECONDS_MIN = 20.0
START_SECONDS_MAX = 600.0
_log = logging.getLogger(__name__)


def order_for(feed: Feed, fence: int, *, all_tables: bool = False) -> FoldOrder:
    """What a feed file says of folding. Unnamed files stay for two lengths of a lease: a live runner may still commit
    them."""
    fold = feed.sink.fold
    limits = FoldLimits(fold.share, fold.files, fold.age)
    root, keep = str(feed.sink.path), feed.sink.keep
    return FoldOrder(root, feed.name, fence, limits, keep, all_tables, 2 * LEASE_SECONDS)


@dataclass
class _Known:
    stats: TableStats
    since: float


class Folding:
    """Watches the tables of one run: `count` is called after each commit, `turn` after each turn of the loop, one
    call at a time."""

    def __init__(self, order: FoldOrder, shapes: Sequence[TableShape]) -> None:
        self._order = order
        self._shapes = shapes
        self._known: dict[TableId, _Known] = {}
        self._unreadable: dict[TableId, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._started = 0.0
        self._pause = START_SECONDS_MIN
        self._clean_at = self._next_clean()

    def count(self, manifest: Manifest) -> None:
        """Count what a committed epoch added."""
        self._shapes = manifest.shapes
        for delta in manifest.deltas:
            if delta.shape.table in self._known:
                self._add(delta.shape.table, delta.files)

    def turn(self) -> None:
        """Take note of a fold that has ended; start one when a table is due, or the cleaner that runs with it."""
        now = world.steady_seconds()
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            self._process = None
            self._known.clear()
            self._clean_at = self._next_clean()
            self._ended(code)
        for shape in self._shapes:
            if shape.table not in self._known:
                self._look(shape, now)
        if self._process is None and now - self._started >= self._pause:
            due = [known.stats.changes_rows for known in self._known.values() if self._is_due(known, now)]
            few = now - self._started < FEW_SECONDS_MIN and all(rows < FEW_ROWS for rows in due)
            if (due and not few) or now >= self._clean_at:
                self._started = now
                self._start()

    @property
    def running(self) -> bool:
        """Whether a fold process runs, as far as the last turn has seen."""
        return self._process is not None

    def unfolded(self) -> dict[TableId, float]:
        """Share of changes not yet folded, by table."""
        return {table: known.stats.unfolded_share for table, known in self._known.items()}

    def stop(self, *, hurry: bool) -> None:
        """Leave a running fold to end by itself, or end it in a hurry. It changes no row, and nothing is lost.

        A later run's fence keeps it from writing.
        """
        if self._process is not None and hurry:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _next_clean(self) -> float:
        """When all that was replaced until now lies past the readers' window."""
        return world.steady_seconds() + 3600.0 * max(1, window_hours(self._order.keep_seconds))

    def _ended(self, code: int) -> None:
        """Tell of a fold that failed, and leave twice the time before each further one."""
        if code == 0:
            self._pause = START_SECONDS_MIN
            return
        self._pause = min(2 * self._pause, START_SECONDS_MAX)
        _log.warning(
            "feed %s: the fold process ended with exit code %d%s; changes wait in the lake, the next fold starts "
            "in %.0f s at the earliest",
            self._order.feed,
            code,
            " (killed: is memory short?)" if code == -signal.SIGKILL else self._last_words(),
            self._pause,
        )

    def _last_words(self) -> str:
        """The last line that the process wrote, which names the error."""
        if self._said is None:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _start(self) -> None:
        """Start the process, or tell why it cannot be and leave more time before the next try."""
        try:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 (the process writes to it, and may outlive us)
            self._process = start(self._order, self._said)
        except OSError as fault:
            self._pause = min(2 * self._pause, START_SECONDS_MAX)
            _log.warning(
                "feed %s: no fold process can be started: %s; changes wait in the lake, the next try is in %.0f s",
                self._order.feed,
                fault,
                self._pause,
            )

    def _look(self, shape: TableShape, now: float) -> None:
        """Read a table's figures from its log. Of a table whose log cannot be read they are missing, which is logged
        once."""
        try:
            table = open_table(tail_dir(self._order.root, shape.table))
            stats = table_stats(table) if table is not None else TableStats(0, 0, 0, 0, 0, 0.0)
        except SinkError as error:
            if self._unreadable.get(shape.table) != str(error):
                _log.warning("feed %s: %s is not folded: %s", self._order.feed, shape.table, error)
            self._unreadable[shape.table] = str(error)
            return
        self._unreadable.pop(shape.table, None)
        self._known[shape.table] = _Known(stats, now)

    def _add(self, table: TableId, files: tuple[DataFile, ...]) -> None:
        known = self._known[table]
        if not known.stats.changes_rows:
            known.since = world.steady_seconds()
        for file in files:
            stats = known.stats
            if file.part is Part.CHANGES:
                known.stats = msgspec.structs.replace(
                    stats,
                    changes_rows=stats.changes_rows + file.rows,
                    changes_files=stats.changes_files + 1,
                    small_files=stats.small_files + (file.size < SMALL_CHANGES_BYTES),
                )
            else:
                known.stats = msgspec.structs.replace(
                    stats,
                    base_rows=stats.base_rows + file.rows,
                    base_bytes=stats.base_bytes + file.size,
                    base_files=stats.base_files + 1,
                )

    def _is_due(self, known: _Known, now: float) -> bool:
        age = known.stats.oldest_s + (now - known.since if known.stats.changes_rows else 0.0)
        stats = msgspec.structs.replace(known.stats, oldest_s=age)
        return should_fold(stats, self._order.limits) or should_gather(stats)
