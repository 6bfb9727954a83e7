"""A run compares source and lake by itself, again and again, beside the loop and within a budget.

It has a thread and a worker of its own, so that the loop waits for nothing. What differs is told at once, and mended by
orders where the feed file wants that. How far it has come is kept, and a later run goes on there.
"""

import logging
from collections.abc import Sequence

from catchment import world
from catchment.config import Feed
from catchment.engine.local import LocalEngine
from catchment.feed.repair import Repair, Repairer
from catchment.feed.sparing import COMPARED, Sparing
from catchment.feed.take_up import Ports
from catchment.feed.throttle import Throttle
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.feed.verify_progress import Progress
from catchment.model.choice import Choice
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, StateError
from catchment.model.table import TableId
from catchment.model.verification import Comparison
from catchment.sink.registry.sinks import sink_of
from catchment.state.store import Store
from catchment.state.verifications import BY_RUN, Verifications
from catchment.watch.throttles import Throttles, throttled_text
from catchment.watch.verified import Verified

# What keeps a comparison from going on is tried again so often.
RETRY_SECONDS = 30.0
# Whether rows are still being copied is looked at so often.
_LOOK_SECONDS = 2.0
# The run has two seconds to end. A session that waits for a silent shard is left behind.
_END_SECONDS = 1.0

_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """The run ends."""


class Verifier:
    """Compares until it is stopped. `told` keeps what is known of it."""

    def __init__(self, feed: Feed, store: Store, ports: Ports, throttle: Throttle, told: Verified) -> None:
        alone = feed.copying.model_copy(update={"groups_per_shard": 1})
        self._feed, self._every = feed.model_copy(update={"copying": alone}), feed.verify.every or 0.0
        self._store, self._ports, self._told = store, ports, told
        self._sink = sink_of(feed)
        self._engine = LocalEngine(workers=1)
        self._throttles = Throttles(COMPARED)
        self._sparing = Sparing(throttle.beside(self._throttles), self._wait)
        self._stop = world.event()
        self._turned_at = 0.0
        self._expected = 0
        self._thread = world.thread("verify", self._run)

    def start(self) -> None:
        """Begin, or go on."""
        self._thread.start()

    def stop(self) -> None:
        """End at once; what was compared is kept."""
        self._stop.set()
        self._engine.cancel()
        self._thread.join(_END_SECONDS)
        self._engine.close()

    def _run(self) -> None:
        try:
            while True:
                self._wait_until_due()
                self._try()
        except _Stopped:
            return

    def _wait_until_due(self) -> None:
        """Wait for the time of the next comparison, and until all rows are copied. One that has begun goes on."""
        while (seconds := self._told.due_in(self._every)) > 0:
            self._wait(min(seconds, _LOOK_SECONDS))

    def _try(self) -> None:
        """Compare all; what goes wrong there is told, and tried again later. It ends no run."""
        try:
            self._compare()
            return
        except _Stopped:
            raise
        except CatchmentError as error:
            why = str(error)
            if self._stop.is_set():
                raise _Stopped from None
        except Exception as error:
            why = f"a fault of this program ({type(error).__name__})"
            _log.exception("comparing in the background failed, and the feed goes on")
        self._told.hindered(why)
        self._engine.close()
        self._wait(RETRY_SECONDS)

    def _compare(self) -> None:
        standing = self._copied()
        chosen = sorted(table for table in standing.tables if self._feed.verify.takes(table))
        if not chosen:
            raise StateError("verify.tables takes none of the tables that the feed carries")
        began_us = self._told.begin()
        sample = self._feed.verify.sample_at(began_us)
        self._expected = _rows(standing, chosen, sample.percent / 100)
        progress = Progress(Verifications(self._store, BY_RUN))
        self._turned_at = world.steady_seconds()
        endpoints = {endpoint.shard: endpoint for endpoint in self._feed.endpoints()}
        choice = Choice(tuple(chosen), sample)
        verdict = verify(self._feed, endpoints, self._engine, choice, self._observe, progress, self._sparing)
        repair = self._repaired(verdict)
        progress.completed()
        self._told.whole(_comparison(began_us, verdict, repair), self._every)
        self._engine.close()

    def _copied(self) -> Manifest:
        """The newest epoch, once no row is to be copied: the copy comes first, and what there is to compare stands."""
        while True:
            row = self._sink.newest()
            if row is not None and row.manifest.cut.idle:
                return row.manifest
            self._wait(_LOOK_SECONDS)

    def _observe(self, verdict: Verdict) -> None:
        """Tell how far it is, and pause for as long as the budget asks."""
        waits = next((throttled_text(one, COMPARED) for one in self._throttles.now), "")
        rows = sum(verdict.rows.values())
        self._told.advanced(rows, self._expected, _differences(verdict), waits)
        spent = world.steady_seconds() - self._turned_at
        self._wait(spent * (100 / self._feed.verify.budget - 1))

    def _repaired(self, verdict: Verdict) -> Repair | None:
        """What the run has mended meanwhile; None where it is not to."""
        if not (self._feed.verify.repair and verdict.differences):
            return None
        repair = Repairer(self._feed, self._engine, self._ports, self._stop).mend(verdict)
        if self._stop.is_set():
            raise _Stopped
        return repair

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(max(seconds, 0.0)):
            raise _Stopped
        self._turned_at = world.steady_seconds()


def _rows(standing: Manifest, tables: Sequence[TableId], share: float) -> int:
    return int(sum(copy.rows for copy in standing.cut.copies if copy.table in tables) * share)


def _comparison(began_us: int, verdict: Verdict, repair: Repair | None) -> Comparison:
    return Comparison(
        began_us,
        world.now_us(),
        verdict.epochs,
        sum(verdict.rows.values()),
        verdict.parts,
        {str(table): keys for table, keys in _differences(verdict).items()},
        sum(one.total for one in repair.mended.values()) if repair is not None else 0,
        repair.left if repair is not None else (),
        sum(verdict.unproven.values()),
    )


def _differences(verdict: Verdict) -> dict[TableId, int]:
    return {table: found.total for table, found in verdict.found.items() if found.total}
