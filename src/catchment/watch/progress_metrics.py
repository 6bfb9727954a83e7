"""How far a run has come, as metrics: rates, log that is left, and seconds until both are through."""

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment.model.progress import Forecast, Progress


class ProgressMetrics(Collector):
    """Reads the newest progress when it is scraped. What is unknown has no sample."""

    def __init__(self, feed: str, newest: Callable[[], Progress | None]) -> None:
        self._feed = feed
        self._newest = newest

    def collect(self) -> Iterable[Metric]:
        """All of them; none before the first epoch."""
        progress = self._newest()
        if progress is None:
            return
        rates = self._gauge(
            "copy_rows_per_second", "Rows copied a second, lately, by shard and table.", "shard", "table"
        )
        for copy in progress.copies:
            if copy.rate is not None:
                rates.add_metric((self._feed, copy.shard, str(copy.table)), copy.rate)
        backlog = self._gauge(
            "log_backlog_bytes", "Log that is written and not in the lake, by shard.", "shard"
        )
        for log in progress.logs:
            if log.backlog_bytes is not None:
                backlog.add_metric((self._feed, log.shard), log.backlog_bytes)
        left = self._gauge(
            "seconds_left", "Until it is through: copy, log, or both (whole).", "what", "bound"
        )
        for what, forecast in (("copy", progress.copy), ("log", progress.log), ("whole", progress.whole)):
            for bound, seconds in _bounds(forecast):
                left.add_metric((self._feed, what, bound), seconds)
        yield from (rates, backlog, left)

    def _gauge(self, name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"catchment_{name}", meaning, labels=("feed", *labels))


def _bounds(forecast: Forecast) -> Iterable[tuple[str, float]]:
    for bound, seconds in (("low", forecast.low), ("likely", forecast.likely), ("high", forecast.high)):
        if seconds is not None:
            yield bound, seconds
