"""What the comparisons of a run in the background found, as metrics."""

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment.model.verification import Verification


class VerifyMetrics(Collector):
    """Reads what is known when it is scraped. What is unknown has no sample."""

    def __init__(self, feed: str, newest: Callable[[], Verification]) -> None:
        self._feed = feed
        self._newest = newest

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        found = self._newest()
        ended = self._gauge("verified_timestamp_seconds", "When the last whole comparison ended.")
        next_ = self._gauge("verify_next_timestamp_seconds", "When the next comparison begins.")
        keys = self._gauge(
            "verify_differences", "Keys that differed, in the last whole comparison or so far.", "of"
        )
        mended = self._gauge("verify_mended", "Keys that were mended behind the last whole comparison.")
        unproven = self._gauge(
            "verify_unproven", "Keys that the last whole comparison compared by the log alone."
        )
        rows = self._gauge("verify_rows", "Rows that are compared so far.")
        expected = self._gauge("verify_rows_expected", "Rows that there are to compare, about.")
        if found.last is not None:
            ended.add_metric((self._feed,), found.last.ended_us / 1e6)
            keys.add_metric((self._feed, "last"), found.last.differences)
            mended.add_metric((self._feed,), found.last.mended)
            unproven.add_metric((self._feed,), found.last.unproven)
        if found.next_us:
            next_.add_metric((self._feed,), found.next_us / 1e6)
        if found.now is not None:
            keys.add_metric((self._feed, "now"), found.now.differences)
            rows.add_metric((self._feed,), found.now.rows)
            expected.add_metric((self._feed,), found.now.expected)
        yield from (ended, next_, keys, mended, unproven, rows, expected)

    def _gauge(self, name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"catchment_{name}", meaning, labels=("feed", *labels))
