"""Deciding when to settle, from what the committed epochs bring; the work is done by a process of its own."""

import logging
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from catchment import world
from catchment.config import Feed
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.sink.delta.upkeep.clean import window_hours
from catchment.sink.delta.upkeep.process import UpkeepOrder, start
from catchment.state.lease import LEASE_SECONDS

# So long a run that is told to stop waits for a settle.
HURRY_SECONDS = 15.0
FAILED_SECONDS_MIN = 5.0
FAILED_SECONDS_MAX = 600.0
_log = logging.getLogger(__name__)


def order_for(feed: Feed, fence: int) -> UpkeepOrder:
    """What a feed file says of its lake. Unnamed files stay for two lengths of a lease: a live runner may still commit
    them."""
    return UpkeepOrder(str(feed.sink.path), feed.name, fence, feed.sink.keep, 2 * LEASE_SECONDS)


class LakeUpkeep:
    """Watches the tables of one run: `count` is called after each commit, `turn` after each turn of the loop, one
    call at a time. `seconds`: how long changes wait, about; 0: until the next turn."""

    def __init__(self, order: UpkeepOrder, seconds: float) -> None:
        self._order = order
        self._seconds = seconds
        self._waiting: dict[TableId, int] = {}
        self._taken: dict[TableId, int] = {}
        self._left_before = True  # by the run before, as far as is known
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._started = world.steady_seconds()
        self._pause = 0.0
        self._clean_at = self._next_clean()

    def count(self, manifest: Manifest) -> None:
        """Count what a committed epoch added."""
        for delta in manifest.deltas:
            rows = sum(file.rows for file in delta.files)
            self._waiting[delta.shape.table] = self._waiting.get(delta.shape.table, 0) + rows

    def turn(self) -> None:
        """Take note of a process that has ended; start one when changes have waited long enough, or to clean up."""
        now = world.steady_seconds()
        self._look()
        if self._process is not None:
            return
        waits = self._left_before or any(self._waiting.values())
        if now - self._started >= max(self._seconds, self._pause) and (waits or now >= self._clean_at):
            self._start()

    @property
    def running(self) -> bool:
        """Whether a process runs, as far as the last turn has seen."""
        return self._process is not None

    def waiting(self) -> Mapping[TableId, int]:
        """Rows that the plain tables do not have yet, by table, of those that were committed in this run."""
        return {
            table: rows + self._taken.get(table, 0)
            for table, rows in {**dict.fromkeys(self._taken, 0), **self._waiting}.items()
        }

    def stop(self, *, hurry: bool) -> None:
        """Settle what waits, and wait for that; in a hurry for some seconds only, since a later run settles, too."""
        until = world.steady_seconds() + HURRY_SECONDS if hurry else None
        if self._process is not None:
            self._await(until)
        if self._process is None and (self._left_before or any(self._waiting.values())):
            self._start()
            self._await(until)
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _await(self, until: float | None) -> None:
        if self._process is not None:
            left = None if until is None else max(0.0, until - world.steady_seconds())
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(left)
            self._look()

    def _next_clean(self) -> float:
        """When all that was replaced until now lies past the readers' window."""
        return world.steady_seconds() + 3600.0 * max(1, window_hours(self._order.keep_seconds))

    def _look(self) -> None:
        """Take note of a process that has ended."""
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return
        self._process = None
        if code == 0:
            self._pause, self._left_before, self._taken = 0.0, False, {}
            self._clean_at = self._next_clean()
            return
        self._waiting = dict(self.waiting())
        self._taken = {}
        self._wait_longer()
        _log.warning(
            "feed %s: the process that settles ended with exit code %d%s; changes wait in the lake's tail, the next "
            "try is in %.0f s",
            self._order.feed,
            code,
            " (killed: is memory short?)" if code == -signal.SIGKILL else self._last_words(),
            self._pause,
        )

    def _wait_longer(self) -> None:
        self._pause = min(max(2 * self._pause, FAILED_SECONDS_MIN), FAILED_SECONDS_MAX)

    def _last_words(self) -> str:
        """The last line that the process wrote, which names the error."""
        if self._said is None:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _start(self) -> None:
        """Start the process, or tell why it cannot be and leave more time before the next try."""
        self._started = world.steady_seconds()
        try:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 (the process writes to it, and may outlive us)
            self._process = start(self._order, self._said)
        except OSError as fault:
            self._wait_longer()
            _log.warning(
                "feed %s: no process that settles can be started: %s; changes wait in the lake's tail, the next try is "
                "in %.0f s",
                self._order.feed,
                fault,
                self._pause,
            )
        else:
            self._taken, self._waiting = self._waiting, {}
