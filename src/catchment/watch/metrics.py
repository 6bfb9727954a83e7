"""Metrics of a feed's epochs for Prometheus; watch/vitals.py shows them.

Values that change by themselves between epochs (lag, retention left) are computed when they are read. So a loop that
hangs is seen to fall behind.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment import world
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import gci_of, micro_gci_of
from catchment.model.log_fields import about
from catchment.model.refusal import Refusal
from catchment.model.table import TableId

_PHASE_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_MICRO = 1e-6

_log = logging.getLogger(__name__)


class _EpochNumber(Collector):
    """The newest epoch in two halves, always of the same one. A sample is a double: it has 53 bits for 64, and a label
    would be a new series for every epoch."""

    def __init__(self, feed: str) -> None:
        self._feed = feed
        self.number = 0

    def collect(self) -> Iterable[Metric]:
        """Both halves."""
        number = self.number
        for name, meaning, value in (
            ("epoch_gci", "Newest committed epoch, whose number is gci * 2^32 + micro_gci.", gci_of(number)),
            ("epoch_micro_gci", "The other half of its number.", micro_gci_of(number)),
        ):
            gauge = GaugeMetricFamily(f"catchment_{name}", meaning, labels=("feed",))
            gauge.add_metric((self._feed,), value)
            yield gauge


class Metrics:
    """The numbers of one feed in `registry`, one call of `observe` per committed epoch.

    `standing` is the newest epoch when the runner starts; `kept_seconds` says how long each shard keeps its log (None:
    no limit in time).
    """

    def __init__(
        self,
        standing: Manifest,
        kept_seconds: Mapping[str, float | None],
        *,
        registry: CollectorRegistry,
        clock: Callable[[], float] = lambda: world.now_us() / 1e6,
    ) -> None:
        self.registry = registry
        self._feed = standing.feed
        self._clock = clock
        self._kept_seconds = dict(kept_seconds)
        self._warned: set[str] = set()
        self._counted: Cut | None = None
        self._epoch = _EpochNumber(standing.feed)
        self.registry.register(self._epoch)
        self._window = self._gauge("cut_window_seconds", "Time between a cut's first and last position.")
        self._unsettled = self._gauge("unsettled_rows", "Rows that wait to be settled, by table.", "table")
        self._rows = self._gauge("copy_rows", "Rows copied so far, by table.", "table")
        self._expected = self._gauge("copy_rows_expected", "Rows there are to copy, by table.", "table")
        self._refused = self._gauge(
            "copy_refused_epochs", "Epochs in a row that refused a table's chunks.", "shard", "table"
        )
        self._floor_lag = self._gauge(
            "floor_lag_bytes",
            "Log between what is proven visible and the newest position, by shard with rows to copy.",
            "shard",
        )
        self._copied = self._counter("rows_copied", "Rows copied by this runner, by table.", "table")
        self._changes = self._counter("changes", "Net changes applied, by table and kind.", "table", "kind")
        self._bytes = self._counter("read_bytes", "Bytes read from the shards: log or chunk.", "what")
        self._phases = Histogram(
            "catchment_epoch_phase_seconds",
            "Time an epoch spent in a phase of the loop.",
            ("feed", "phase"),
            registry=self.registry,
            buckets=_PHASE_BUCKETS,
        )
        self._gauge(
            "lag_seconds", "Age of what the lake shows: the largest of the shards' `shard_lag_seconds`."
        ).labels(self._feed).set_function(self.lag_seconds)
        lag = self._gauge(
            "shard_lag_seconds",
            "Age of what the lake shows of a shard: since its cut, or since its log was last seen at it.",
            "shard",
        )
        retention = self._gauge(
            "log_retention_left_seconds", "Until a purge could reach us, by shard.", "shard"
        )
        for shard in kept_seconds:
            retention.labels(self._feed, shard).set_function(partial(self.retention_left, shard))
            lag.labels(self._feed, shard).set_function(partial(self.shard_lag_seconds, shard))
        self._stand_at(standing)

    def observe(self, manifest: Manifest, phase_seconds: Mapping[str, float]) -> None:
        """Count a committed epoch; `phase_seconds` is the time each phase of the loop took."""
        self._stand_at(manifest)
        self._bytes.labels(self._feed, "log").inc(manifest.log_bytes)
        self._bytes.labels(self._feed, "chunk").inc(manifest.chunk_bytes)
        for delta in (one for one in manifest.deltas if one.shape.place_of is None):
            table = str(delta.shape.table)
            self._copied.labels(self._feed, table).inc(delta.copied)
            self._changes.labels(self._feed, table, "upsert").inc(delta.upserts)
            self._changes.labels(self._feed, table, "delete").inc(delta.deletes)
        for phase, seconds in phase_seconds.items():
            self._phases.labels(self._feed, phase).observe(seconds)

    def at_rest(self, time_us: int, absent: Mapping[str, int] | None = None) -> None:
        """Every log still stood at the newest cut at `time_us`, microseconds since 1970: the lake is as of then. Not so
        for shards that are `absent`, each with as of when its rows stand."""
        self._cut_at = time_us * _MICRO
        self._absent_since = {shard: since * _MICRO for shard, since in (absent or {}).items()}

    def observe_refused(self, refused: Iterable[Refusal]) -> None:
        """The tables whose copy stands still."""
        self._refused.clear()
        for refusal in refused:
            labels = (self._feed, refusal.shard, str(refusal.table))
            self._refused.labels(*labels).set(refusal.epochs)

    def observe_floor_lag(self, bytes_behind: Mapping[str, int]) -> None:
        """How far the floor of the next chunks lies behind the log's end: beyond `copy.log_budget` none is read."""
        self._floor_lag.clear()
        for shard, lag in bytes_behind.items():
            self._floor_lag.labels(self._feed, shard).set(lag)

    def observe_unsettled(self, table: str, rows: int) -> None:
        """Rows of a table that wait to be settled."""
        self._unsettled.labels(self._feed, table).set(rows)

    def lag_seconds(self) -> float:
        """Age of the newest committed cut, at rest of the last look at it; of the shard that has been away longest."""
        return max(map(self.shard_lag_seconds, self._kept_seconds), default=0.0)

    def shard_lag_seconds(self, shard: str) -> float:
        """The same of one shard: of one that is away since it took part in an epoch."""
        return max(0.0, self._clock() - self._absent_since.get(shard, self._cut_at))

    def retention_left(self, shard: str) -> float:
        """Seconds until a purge could reach us, below 0 when it may have; infinite without a limit in time.

        A log file is purged when its last write is older than the limit, and ours ends at or after our cut. Of a
        shard that is away it may end before that. The file of an XA PREPARE that is open is needed, too.
        """
        kept = self._kept_seconds[shard]
        read_at = self._absent_since.get(shard, self._cut_at)
        needed_since = min(read_at, self._prepared_at[shard])
        return math.inf if kept is None else kept - max(0.0, self._clock() - needed_since)

    def warn_of_purges(self) -> dict[str, str]:
        """What to say of each shard of which less than a quarter of the retention is left; logged once until there is
        more again."""
        short = {s for s, kept in self._kept_seconds.items() if self.retention_left(s) < (kept or 0) / 4}
        said = {shard: self._purge_nears(shard) for shard in sorted(short)}
        for shard in sorted(short - self._warned):
            _log.warning("%s", said[shard], extra=about(shard=shard))
        self._warned = short
        return said

    def _purge_nears(self, shard: str) -> str:
        left = self.retention_left(shard)
        when = f"in {left:,.0f} s" if left > 0 else "already"
        xa = "end the XA transaction that has long been prepared there (XA RECOVER) or "
        return (
            f"feed {self._feed}: shard {shard} keeps its log for {self._kept_seconds[shard]:,.0f} s, and what the feed "
            f"needs of it may be purged {when}: {xa if self._prepared_at[shard] < self._cut_at else ''}set a longer "
            "retention there (binlog_expire_logs_seconds, expire_logs_days) until the feed has caught up"
        )

    def _stand_at(self, manifest: Manifest) -> None:
        """Gauges that follow from the newest epoch, whoever committed it."""
        self._cut_at = manifest.time_us * _MICRO
        self._absent_since = {shard: since * _MICRO for shard, since in manifest.absent.items()}
        self._prepared_at = {
            shard: min((p.time for p in position.prepared if p.committed is None), default=math.inf)
            for shard, position in manifest.cut.positions.items()
        }
        self._epoch.number = manifest.epoch
        self._window.labels(self._feed).set(manifest.window_us * _MICRO)
        if self._counted is None or not manifest.cut.copied_as(self._counted):
            self._count_rows(manifest.cut)
        self._counted = manifest.cut

    def _count_rows(self, cut: Cut) -> None:
        rows: dict[TableId, tuple[int, int]] = {}
        for one in cut.copies:
            copied, expected = rows.get(one.table, (0, 0))
            rows[one.table] = (copied + one.rows, expected + one.rows_expected)
        for table, (copied, expected) in rows.items():
            self._rows.labels(self._feed, str(table)).set(copied)
            self._expected.labels(self._feed, str(table)).set(expected)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"catchment_{name}", meaning, ("feed", *labels), registry=self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"catchment_{name}", meaning, ("feed", *labels), registry=self.registry)
