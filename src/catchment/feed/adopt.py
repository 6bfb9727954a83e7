"""`catchment adopt`: another server answers for a shard. It has the same data and the same log under another name; or
it has a log of its own, as a replica that was promoted has, and the shard's tables are copied again in place.

What is written is an epoch of its own, without any rows, whose cut names the new server. So plan, manifest, apply,
row of the epochs table and commit record hold for it as for any other (docs/decisions/2026-11-22-adopt.md).
"""

from contextlib import closing
from dataclasses import dataclass, replace

from msgspec import structs

from catchment import world
from catchment.config import Feed
from catchment.epoch.begun_again import BegunAgain, begun_again
from catchment.feed.applier import Applier
from catchment.feed.moved import Comparison
from catchment.feed.settle import settle, take_over
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError, Diverged
from catchment.model.position import Position, Server
from catchment.model.source import Endpoint
from catchment.sink.registry.sinks import sink_of
from catchment.source.first_cut import first_position, must_be_apart
from catchment.source.session import connect
from catchment.state.carried import must_name_shards
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import hold
from catchment.state.resume import Fresh, decide
from catchment.state.store import Store


@dataclass(frozen=True, slots=True)
class Adopted:
    """The server that the feed knew and the one that it knows now.

    `compared`: what was found equal in their logs. `differs`: why the log does not go on there, so that the shard's
    tables are copied again; None where it goes on. `epoch`: the one that names the new server; None when nothing was
    written.
    """

    before: Server
    now: Server
    compared: tuple[str, ...]
    differs: str | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class _Found:
    """The server that answers now. `position`: where its log goes on; None where `differs` says why it does not."""

    server: Server
    compared: tuple[str, ...]
    position: Position | None
    differs: str | None = None


def adopt(
    feed: Feed, shard: str, *, write: bool = True, copy: bool = False, fault: Injector = no_fault
) -> Adopted:
    """Have the feed go on with the server that answers for a shard; without `write` only compare.

    `copy`: where the log does not go on there, the shard begins again on that server, and its tables are stale until
    the next run has copied them again. Feed, lake and readers stay.

    Raises ConfigError for a shard that the feed does not have, or that is another shard's server. Raises LeaseHeld
    while the feed is run. Raises Diverged without `copy`, naming the first thing of the server's log that is not that
    of the feed's position. Raises SourceError with `copy` where the shard cannot begin on that server.
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
        found = _look(endpoints[shard], standing, copy=copy)
        adopted = Adopted(known.server, found.server, found.compared, found.differs, None)
        if not write:
            return adopted
        if lake is not None:
            sink.must_hold(lake)
        applier = Applier(store, lease, sink, world.event(), fault)
        take_over(applier, standing.followed, lake)
        highest = max(settle(applier, decision, committed, lake), plan.epoch if plan is not None else 0)
        if found.server == known.server:
            return adopted
        epoch = max(epoch_number(world.now_us() // 1_000_000), highest + 1)
        after = _after(standing, endpoints[shard], found, epoch)
        store.put_manifest(after, lease.fence)
        fault(Fault.AFTER_MANIFEST)
        applier.apply(after)
    return replace(adopted, epoch=epoch)


def _look(endpoint: Endpoint, standing: Manifest, *, copy: bool) -> _Found:
    """The server that answers now, compared with the one that the feed knows."""
    known = standing.cut.shards[endpoint.shard].position
    comparison = Comparison(endpoint, known)
    server = comparison.server
    if server == known.server:
        return _Found(server, (), known)
    must_be_apart({**standing.cut.positions, endpoint.shard: structs.replace(known, server=server)})
    try:
        position = comparison.position()
    except Diverged as differs:
        if not copy:
            differs.way_out = (
                f"`catchment adopt FEED.yaml --shard {endpoint.shard} --copy` goes on with this server and copies the "
                "shard's tables again; nothing was written"
            )
            raise
        return _Found(server, tuple(comparison.compared), None, str(differs))
    return _Found(server, tuple(comparison.compared), position)


def _after(standing: Manifest, endpoint: Endpoint, found: _Found, epoch: int) -> Manifest:
    """The epoch that names the new server. Where the log goes on, it ends where `standing` does, and what was sealed on
    the old server is proven again on the new one. Else the shard begins again."""
    shard = endpoint.shard
    if found.position is None:
        with connect(endpoint, found.server) as session:
            position = first_position(session)
        begun = {
            shard: BegunAgain(position, f"{found.differs}; it was adopted, to be copied again", waits=False)
        }
        return begun_again(standing, begun, epoch, world.now_us())
    after = standing.repeated(epoch)
    state = structs.replace(after.cut.shards[shard], position=found.position, sealed=None)
    return structs.replace(after, cut=structs.replace(after.cut, shards={**after.cut.shards, shard: state}))
