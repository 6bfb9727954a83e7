"""Whether a run compares source and lake by itself, as `verify.every` of the feed file says."""

from collections.abc import Iterator
from contextlib import contextmanager

from catchment.config import Feed
from catchment.feed.take_up import Ports
from catchment.feed.throttle import Throttle
from catchment.state.store import Store
from catchment.watch.verified import Verified
from catchment.watch.verify_metrics import VerifyMetrics
from catchment.watch.watch import Watch


@contextmanager
def verifying(feed: Feed, store: Store, ports: Ports, throttle: Throttle, watch: Watch) -> Iterator[None]:
    """Compare in the background of the block, where the feed file wants that. Raises StateError."""
    told = Verified(watch.journal, watch.notifier)
    if feed.verify.every is None:
        told.never()
        yield
        return
    from catchment.feed.verifier import Verifier  # most runs do not compare

    watch.vitals.registry.register(VerifyMetrics(feed.name, lambda: told.now))
    verifier = Verifier(feed, store, ports, throttle, told)
    verifier.start()
    try:
        yield
    finally:
        verifier.stop()
