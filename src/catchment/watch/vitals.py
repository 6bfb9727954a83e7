"""Whether a run lives and what troubles it, as metrics for Prometheus. All metrics are shown in a text file that is
replaced whole. They are there from a run's first moment on, and the file says how it ended.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, write_to_textfile

from catchment import world
from catchment.model.epoch_number import gci_of
from catchment.model.errors import SinkAway, StateAway
from catchment.model.stale import Stale
from catchment.model.throttle import Throttled
from catchment.state.notes import ErrorNote, Trouble

_log = logging.getLogger(__name__)


class Vitals:
    """The metrics of one run beside those of its epochs, which share the registry."""

    def __init__(
        self, feed: str, shards: Iterable[str], *, clock: Callable[[], float] = lambda: world.now_us() / 1e6
    ) -> None:
        self.registry = CollectorRegistry()
        self._feed = feed
        self._shards = tuple(shards)
        self._clock = clock
        self._up = self._gauge("up", "1 while a run lives, 0 from its end in order on.")
        self._up.labels(feed).set(1)
        self._gauge("written_timestamp_seconds", "When these metrics were written.").labels(
            feed
        ).set_function(clock)
        self._exit_code = self._gauge(
            "exit_code", "How the run ended, and the kind of error by which; none while it lives.", "error"
        )
        self._errors = Counter(
            "catchment_errors", "Errors that this run met, by kind.", ("feed", "kind"), registry=self.registry
        )
        self._away = self._gauge(
            "shard_away_seconds",
            "For how long a shard has not answered, or its log could not be read; 0: it does.",
            "shard",
        )
        self._others_away = {
            StateAway.away: self._gauge(
                "state_away_seconds", "For how long the state store has not answered; 0: it does."
            ),
            SinkAway.away: self._gauge(
                "lake_away_seconds", "For how long the lake's store has not answered; 0: it does."
            ),
        }
        self._uncarried = self._gauge(
            "tables_not_carried", "Tables that `tables` takes and the feed does not carry."
        )
        self._stale = self._gauge("tables_stale", "Tables that readers see as of an earlier epoch.")
        self._stale_since = self._gauge(
            "table_as_of_timestamp_seconds", "As of when readers see a table that is stale.", "table"
        )
        self._throttled = self._gauge(
            "copy_throttled", "Seconds since which no rows of a shard are copied; 0: they are.", "shard"
        )
        self._check = self._gauge(
            "copy_throttled_value", "What a check says that keeps a shard from copying.", "shard", "check"
        )
        self._limit = self._gauge(
            "copy_throttled_limit", "What such a check is to say at most.", "shard", "check"
        )
        self.observe_troubles(())
        self.observe_throttled(())

    def observe_troubles(self, troubles: Iterable[Trouble]) -> None:
        """What is in trouble now."""
        since: dict[tuple[str, str], float] = {}
        for one in troubles:
            key = (one.shard, "" if one.shard else one.away)
            since[key] = min(since.get(key, math.inf), one.since_us / 1e6)

        def seconds(shard: str, away: str = "") -> float:
            return max(0.0, self._clock() - since.get((shard, away), math.inf))

        for shard in self._shards:
            self._away.labels(self._feed, shard).set(seconds(shard))
        for away, gauge in self._others_away.items():
            gauge.labels(self._feed).set(seconds("", away))

    def observe_throttled(self, shards: Iterable[Throttled]) -> None:
        """Which shards copy no rows now for the source's sake. A check has a value and a limit where it has numbers."""
        breaches = {one.shard: one for one in shards}
        self._check.clear()
        self._limit.clear()
        for shard in self._shards:
            one = breaches.get(shard)
            seconds = 0.0 if one is None else max(0.0, self._clock() - one.since_us / 1e6)
            self._throttled.labels(self._feed, shard).set(seconds)
            if one is None:
                continue
            labels = (self._feed, shard, one.breach.check.value)
            if one.breach.value is not None:
                self._check.labels(*labels).set(one.breach.value)
            if one.breach.limit is not None:
                self._limit.labels(*labels).set(one.breach.limit)

    def observe_uncarried(self, tables: int) -> None:
        """How many tables are not carried."""
        self._uncarried.labels(self._feed).set(tables)

    def observe_stale(self, tables: Collection[Stale]) -> None:
        """Which tables are stale."""
        self._stale.labels(self._feed).set(len(tables))
        self._stale_since.clear()
        for one in tables:
            self._stale_since.labels(self._feed, str(one.table)).set(gci_of(one.epoch))

    def count(self, errors: Iterable[ErrorNote]) -> None:
        """Errors that were met since the last call."""
        for error in errors:
            self._errors.labels(self._feed, error.kind).inc(error.count)

    def ended(self, exit_code: int, error: ErrorNote | None) -> None:
        """The run ends in order."""
        self._up.labels(self._feed).set(0)
        self._exit_code.labels(self._feed, error.kind if error is not None else "").set(exit_code)

    def write(self, file: Path) -> None:
        """Replace the text file. A fault is logged and does not stop the feed."""
        try:
            write_to_textfile(str(file), self.registry)
        except OSError as fault:
            _log.warning("metrics.file: cannot write %s (%s)", file, fault.strerror)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"catchment_{name}", meaning, ("feed", *labels), registry=self.registry)
