"""The sessions that a run has where they have a ceiling, as metrics."""

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment import world
from catchment.model.sessions import Held


class SessionMetrics(Collector):
    """Reads what the run has when it is scraped."""

    def __init__(self, feed: str, ceiling: int, newest: Callable[[], Held]) -> None:
        self._feed, self._ceiling, self._newest = feed, ceiling, newest

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        found = self._newest()
        held = self._gauge("source_sessions", "Sessions that this run may have on a shard now.", "shard")
        most = self._gauge("source_sessions_max", "What all runs together may have on each server.")
        waits = self._gauge(
            "source_sessions_waited_seconds", "For how long the run waits for sessions; 0: it does not."
        )
        for shard, count in found.sessions.items():
            held.add_metric((self._feed, shard), count)
        most.add_metric((self._feed,), self._ceiling)
        since = found.waits_since_us
        waits.add_metric((self._feed,), max(0.0, (world.now_us() - since) / 1e6) if since else 0.0)
        yield from (held, most, waits)

    def _gauge(self, name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"catchment_{name}", meaning, labels=("feed", *labels))
