"""`catchment adopt`: have a feed go on with another server for a shard. A run is given an order; without one the epoch
that names the server is written here.

It is an epoch of its own, without any rows. So plan, manifest, apply, row of the epochs table and commit record hold
for it as for any other.
"""

from contextlib import closing

from catchment import world
from catchment.config import Feed
from catchment.feed.adoption import Adopted, candidate, naming
from catchment.feed.applier import Applier
from catchment.feed.dump import must_have
from catchment.feed.settle import settle, take_over
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError
from catchment.sink.registry.sinks import sink_of
from catchment.state.carried import must_name_shards
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import hold
from catchment.state.resume import Continue, Fresh, decide
from catchment.state.store import Store


def adopt(feed: Feed, shard: str, *, copy: bool = False, fault: Injector = no_fault) -> Adopted:
    """Have a feed that nobody runs go on with the server that answers for a shard.

    `copy`: where the log does not go on there, the shard begins again on that server, and its tables are stale until
    the next run has copied them again. Feed, lake and readers stay.

    Raises ConfigError for a shard that the feed does not have, LeaseHeld while the feed is run, and what `candidate`
    and `naming` raise.
    """
    must_have(feed, shard)
    sink = sink_of(feed, lambda: fault(Fault.BETWEEN_APPLIES))
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    with (
        closing(Store.open(feed.state.get_secret_value(), feed.name)) as store,
        hold(store, fence_above=sink.fence()) as lease,
    ):
        plan, stored, committed = store.newest()
        lake = sink.newest()
        decision = _decided(feed, store, stored, committed, lake)
        standing = decision.manifest
        must_name_shards(endpoints, standing)
        found = candidate(endpoints[shard], standing, copy=copy)
        if lake is not None:
            sink.must_hold(lake)
        applier = Applier(store, lease, sink, world.event(), fault)
        take_over(applier, standing.followed, lake)
        highest = max(settle(applier, decision, committed, lake), plan.epoch if plan is not None else 0)
        if not found.is_new:
            return found.adopted(None)
        epoch = max(epoch_number(world.now_us() // 1_000_000), highest + 1)
        after = naming(standing, endpoints[shard], found, epoch)
        store.put_manifest(after, lease.fence)
        fault(Fault.AFTER_MANIFEST)
        applier.apply(after)
    return found.adopted(epoch)


def compare(feed: Feed, shard: str, *, copy: bool = False) -> Adopted:
    """What `adopt` would find, of a feed that may run. Writes nothing. Raises as `adopt`, but LeaseHeld."""
    must_have(feed, shard)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        _, stored, committed = store.newest()
        standing = _decided(feed, store, stored, committed, sink_of(feed).newest()).manifest
    must_name_shards(endpoints, standing)
    return candidate(endpoints[shard], standing, copy=copy).adopted(None)


def _decided(
    feed: Feed, store: Store, stored: Manifest | None, committed: Commit | None, lake: EpochRow | None
) -> Continue:
    digests = store.digests(stored.epoch) if stored is not None else ()
    decision = decide(feed.name, stored, committed, lake, digests)
    if isinstance(decision, Fresh):
        raise ConfigError(f"feed {feed.name} has not begun yet: there is no server that it knows")
    return decision
