"""Metrics of a server for Prometheus, computed when they are read."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from catchment.serve.hub.client import Reading
from catchment.serve.server.shown import FeedShown, ServerShown

Sample = tuple[tuple[str, ...], float]
_Found = Callable[[FeedShown], Iterable[Sample]]


def registry_of(shown: Callable[[], ServerShown]) -> CollectorRegistry:
    """A registry that has them."""
    registry = CollectorRegistry()
    registry.register(_Shown(shown))
    return registry


class _Shown(Collector):
    def __init__(self, shown: Callable[[], ServerShown]) -> None:
        self._shown = shown

    def describe(self) -> Iterable[Metric]:
        """None: a registry would collect them to find out."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """One family after another."""
        feeds = self._shown().feeds
        for name, meaning, labels, found in _FAMILIES:
            family = GaugeMetricFamily(f"catchment_serve_{name}", meaning, labels=("feed", *labels))
            for feed in feeds:
                for values, value in found(feed):
                    family.add_metric((feed.name, *values), value)
            yield family


def _clients(feed: FeedShown) -> Iterator[Sample]:
    for reading in (Reading.OWN, Reading.SHARED):
        yield (reading.value,), sum(one.reading is reading for one in feed.clients)


def _shards(feed: FeedShown) -> Iterator[Sample]:
    told: dict[str, int] = {}
    for reader in feed.readers:
        for shard, at in reader.shards.items():
            if at is not None:
                told[shard] = max(at, told.get(shard, 0))
    yield from (((shard,), at) for shard, at in told.items())


def _of_clients(value: Callable[[FeedShown], float]) -> _Found:
    return lambda feed: [((), value(feed))]


_FAMILIES: tuple[tuple[str, str, tuple[str, ...], _Found], ...] = (
    ("clients", "Streams that are open, by who reads for them.", ("reading",), _clients),
    (
        "client_behind_seconds",
        "Age of the place at which the client stands that is furthest behind.",
        (),
        _of_clients(lambda feed: max((one.behind for one in feed.clients), default=0.0)),
    ),
    (
        "client_waiting_bytes",
        "Bytes that the client has not taken which has taken least of what is kept for it.",
        (),
        _of_clients(lambda feed: max((one.waiting_bytes for one in feed.clients), default=0)),
    ),
    ("readers", "Readers that clients share.", (), _of_clients(lambda feed: len(feed.readers))),
    (
        "buffer_bytes",
        "Bytes that shared readers keep for clients that are slower.",
        (),
        _of_clients(lambda feed: sum(one.nbytes for one in feed.readers)),
    ),
    (
        "skew_seconds",
        "Seconds between the last transactions of the shard furthest ahead and of the one furthest behind.",
        (),
        _of_clients(lambda feed: max((one.skew for one in feed.readers), default=0.0)),
    ),
    (
        "told_timestamp_seconds",
        "When the last transaction that was told of a shard was written there, in seconds since 1970.",
        ("shard",),
        _shards,
    ),
    (
        "subscriber_acknowledged_timestamp_seconds",
        "When a subscriber acknowledged last, or began, in seconds since 1970.",
        ("subscriber",),
        lambda feed: [((one.name,), one.acknowledged_us / 1e6) for one in feed.subscribers],
    ),
    (
        "subscriber_slip_seconds",
        "For how long the oldest vgtid waits to be acknowledged that a subscriber was given here.",
        ("subscriber",),
        lambda feed: [((one.name,), one.slip.seconds) for one in feed.subscribers if one.slip],
    ),
    (
        "subscriber_slip_bytes",
        "Bytes that a subscriber was given here and has not acknowledged.",
        ("subscriber",),
        lambda feed: [((one.name,), one.slip.nbytes) for one in feed.subscribers if one.slip],
    ),
)
