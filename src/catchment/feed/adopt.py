"""`catchment adopt`: a shard's server that has another name now, with the same data and the same log.

What is written is an epoch of its own, without any rows, whose cut names the new server. So plan, manifest, apply,
row of the epochs table and commit record hold for it as for any other (docs/decisions/2026-11-22-adopt.md).
"""

from contextlib import closing
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.feed.applier import Applier
from catchment.feed.moved import Comparison
from catchment.feed.settle import settle, take_over
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError
from catchment.model.position import Position, Server
from catchment.model.source import Endpoint
from catchment.sink.registry.sinks import sink_of
from catchment.source.first_cut import must_be_apart
from catchment.state.carried import must_name_shards
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import hold
from catchment.state.resume import Fresh, decide
from catchment.state.store import Store


@dataclass(frozen=True, slots=True)
class Adopted:
    """The server that the feed knew and the one that it knows now; `compared`: what was found equal. `epoch` is the
    one that names the new server; None when nothing was written."""

    before: Server
    now: Server
    compared: tuple[str, ...]
    epoch: int | None


def adopt(feed: Feed, shard: str, *, write: bool = True, fault: Injector = no_fault) -> Adopted:
    """Have the feed go on with the server that answers for a shard; without `write` only compare.

    Raises ConfigError for a shard that the feed does not have, or that is another shard's server. Raises LeaseHeld
    while the feed is run. Raises Diverged naming the first thing of the server's log that is not that of the feed's
    position.
    """
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    if shard not in endpoints:
        raise ConfigError(f"--shard {shard}: the feed has the shards {', '.join(endpoints)}")
    sink = sink_of(feed, lambda: fault(Fault.BETWEEN_APPLIES))
    with (
        closing(Store.open(feed.state.get_secret_value(), feed.name)) as store,
        hold(store, fence_above=sink.fence()) as lease,
    ):
        plan, stored, committed = store.newest()
        lake = sink.newest()
        digests = store.digests(stored.epoch) if stored is not None else ()
        decision = decide(feed.name, stored, committed, lake, digests)
        if isinstance(decision, Fresh):
            raise ConfigError(f"feed {feed.name} has not begun yet: there is no server that it knows")
        standing = decision.manifest
        must_name_shards(endpoints, standing)
        known = standing.cut.shards[shard].position
        moved, compared = _moved(endpoints[shard], standing)
        if not write:
            return Adopted(known.server, moved.server, compared, None)
        if lake is not None:
            sink.must_hold(lake)
        applier = Applier(store, lease, sink, world.event(), fault)
        take_over(applier, standing.followed, lake)
        highest = max(settle(applier, decision, committed, lake), plan.epoch if plan is not None else 0)
        if moved == known:
            return Adopted(known.server, moved.server, compared, None)
        epoch = max(epoch_number(world.now_us() // 1_000_000), highest + 1)
        adopted = _at(standing, shard, moved, epoch)
        store.put_manifest(adopted, lease.fence)
        fault(Fault.AFTER_MANIFEST)
        applier.apply(adopted)
    return Adopted(known.server, moved.server, compared, epoch)


def _moved(endpoint: Endpoint, standing: Manifest) -> tuple[Position, tuple[str, ...]]:
    """Where the feed stands on the server that answers now, and what of its log was found equal."""
    known = standing.cut.shards[endpoint.shard].position
    comparison = Comparison(endpoint, known)
    if comparison.server == known.server:
        return known, ()
    must_be_apart({**standing.cut.positions, endpoint.shard: replace(known, server=comparison.server)})
    return comparison.position(), tuple(comparison.compared)


def _at(standing: Manifest, shard: str, position: Position, epoch: int) -> Manifest:
    """An epoch that ends where `standing` does; what was sealed on the old server is proven again on the new one."""
    after = standing.repeated(epoch)
    state = replace(after.cut.shards[shard], position=position, sealed=None)
    return replace(after, cut=replace(after.cut, shards={**after.cut.shards, shard: state}))
