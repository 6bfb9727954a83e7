"""Taking up a feed: what stands is brought to one manifest, applied and committed, from which the loop goes on."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.doctor import must_allow, must_take
from catchment.engine.port import Engine
from catchment.feed.applier import Applier
from catchment.feed.lost_logs import looked_at, with_new_cuts
from catchment.feed.settle import settle, take_over
from catchment.feed.unusable import left_out
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import CatchmentError, ConfigError, ConnectionLost, LogLost
from catchment.model.named import listed
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.set_aside import BY_ORDER
from catchment.sink.port import Sink
from catchment.source.comments import commented_now
from catchment.source.each_shard import each_shard
from catchment.source.first_cut import must_be_apart, originate
from catchment.source.foreign_keys import with_keys
from catchment.state.carried import leaving, must_name_shards, tell_uncarried, without
from catchment.state.resume import Continue, Fresh, decide
from catchment.state.treatments import must_keep_treatments, must_match


@dataclass(frozen=True, slots=True)
class Ports:
    """What a run is joined to: its sink, its engine, and who says that a shard is set up and which tables it has."""

    sink: Callable[[Feed, Callable[[], None]], Sink]
    engine: Callable[[Feed], Engine]
    set_up: Callable[[Endpoint, Sequence[str]], list[TableId]]


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Where a run begins. `highest`: of the epoch numbers used so far. `present`: the tables that the rules take, of
    each shard that can be read. `first`: the epoch that comes first, where the log of a shard is lost."""

    standing: Manifest
    highest: int
    present: dict[str, list[TableId]]
    first: Manifest | None = None

    @property
    def positions(self) -> dict[str, Position]:
        """Where the logs are read from."""
        return (self.first or self.standing).cut.positions

    def again(
        self, standing: Manifest, highest: int, endpoints: Mapping[str, Endpoint], met: LogLost
    ) -> "TakenUp":
        """Where the run goes on that stands at `standing` and has met that the log of a shard is lost. It may have been
        purged where it held nothing more. Raises `met` where another look at the log does not find it lost, and
        SourceError where the shard cannot begin again."""
        if met.shard not in endpoints:
            raise met
        looked = looked_at({met.shard: endpoints[met.shard]}, standing)
        after = dataclasses.replace(
            self,
            standing=replace(standing, cut=standing.cut.moved(looked.positions)),
            highest=highest,
            first=None,
        )
        if after.standing.cut.positions != standing.cut.positions:
            return after
        if not looked.lost:
            raise met
        return _begun_again(after, highest, endpoints, looked.lost)

    def behind(
        self, standing: Manifest, highest: int, endpoints: Mapping[str, Endpoint], met: CatchmentError
    ) -> "TakenUp":
        """Where the run goes on that an order has set aside what stopped it: its shard begins again. Raises SourceError
        where it cannot."""
        reason = f"shard {met.shard} at {met.place}: {met}; {BY_ORDER}"
        after = dataclasses.replace(self, standing=standing, first=None)
        return _begun_again(after, highest, endpoints, {met.shard: reason}, waits=False)


def take_up(
    feed: Feed,
    applier: Applier,
    leave: Collection[TableId],
    doing: Callable[[str], None],
    ports: Ports,
    *,
    begins: bool = True,
) -> TakenUp:
    """Begin a feed, or go on with one. `leave`: tables that leave it now. `doing` is told what takes time. `begins`:
    the run begins by that; one that goes on by another feed file bears that no shard answers, as it did before.

    Raises CatchmentError for whatever keeps a run from beginning.
    """
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    store, lease, sink = applier.store, applier.lease, applier.sink
    plan, stored, committed = store.newest()
    lake = sink.newest()
    digests = store.digests(stored.epoch) if stored is not None else ()
    decision = decide(feed.name, stored, committed, lake, digests)
    gone: list[TableId] = []
    if isinstance(decision, Continue):
        must_name_shards(endpoints, decision.manifest)
        must_keep_treatments(feed, decision.manifest)
        gone = leaving(feed.tables, decision.manifest, leave)
    spare = isinstance(decision, Continue) and feed.epoch.away_max > 0
    present = _set_up(feed, endpoints, ports, without=0 if not spare else len(endpoints) - begins)
    if lake is not None:
        sink.must_hold(lake)
    if isinstance(decision, Continue):
        take_over(applier, decision.manifest.followed, lake)
    else:
        take_over(applier, (), lake)
    last = plan.epoch if plan is not None else 0
    if isinstance(decision, Fresh):
        if leave:
            raise ConfigError(f"--leave {listed(list(leave))}: feed {feed.name} has not begun yet")
        doing("taking the first cut")
        standing = _begin(feed, endpoints, applier, last)
        return TakenUp(standing, max(last, standing.epoch), present)
    standing = decision.manifest
    must_be_apart(standing.cut.positions)
    looked = looked_at({shard: endpoints[shard] for shard in present}, standing)
    last = max(last, settle(applier, decision, committed, lake))
    if gone:
        last = max(epoch_number(world.now_us() // 1_000_000), last + 1)
        standing = without(standing, gone, last)
        store.put_manifest(standing, lease.fence)
        applier.apply(standing)
    tell_uncarried(feed, standing, set(chain.from_iterable(present.values())))
    shapes = commented_now(standing.shapes, [endpoints[shard] for shard in present])
    shapes = tuple(replace(s, arrangement=feed.treatment_of(s.table).arrangement) for s in shapes)
    standing = replace(standing, shapes=shapes, cut=standing.cut.moved(looked.positions))
    began = TakenUp(standing, last, present)
    if not looked.lost:
        return began
    doing(f"taking a new first cut of {listed(sorted(looked.lost))}")
    return _begun_again(began, last, endpoints, looked.lost)


def _begun_again(
    began: TakenUp,
    highest: int,
    endpoints: Mapping[str, Endpoint],
    lost: Mapping[str, str],
    *,
    waits: bool = True,
) -> TakenUp:
    """The same, where shards begin again in an epoch that comes first."""
    epoch = max(epoch_number(world.now_us() // 1_000_000), highest + 1)
    first = with_new_cuts(began.standing, endpoints, lost, epoch, waits=waits)
    return dataclasses.replace(began, highest=epoch, first=first)


def _set_up(
    feed: Feed, endpoints: dict[str, Endpoint], ports: Ports, *, without: int
) -> dict[str, list[TableId]]:
    """The tables that the rules take, of the shards that are set up. Raises what is wrong with one.

    `without`: so many shards that cannot be reached are left out at most.
    """

    def ask(shard: str) -> list[TableId] | ConnectionLost:
        endpoint = endpoints[shard]
        try:
            found = [table for table in ports.set_up(endpoint, feed.tables) if feed.enters(table)]
            must_allow(endpoint, feed)
            return found
        except ConnectionLost as error:
            if not without:
                raise
            return error

    answers = each_shard(endpoints, ask)
    present = {shard: found for shard, found in answers.items() if not isinstance(found, ConnectionLost)}
    for lost in answers.values():
        if isinstance(lost, ConnectionLost) and len(answers) - len(present) > without:
            raise lost
    return present


def _begin(feed: Feed, endpoints: dict[str, Endpoint], applier: Applier, after: int) -> Manifest:
    """The first epoch of a feed, applied and committed."""
    outside = left_out(feed, endpoints)
    unusable = frozenset(one.table for one in outside)
    begun = originate(
        feed.name,
        endpoints,
        lambda table: table not in unusable and feed.enters(table),
        after,
        treatment=feed.treatment_of,
    )
    standing = with_keys(replace(begun, outside=outside), endpoints)
    must_match(feed, standing)
    must_take(feed.tables, standing)
    applier.sink.must_be_free(standing)  # a store that knows it would not go on from a lake put back
    applier.store.put_manifest(standing, applier.lease.fence)
    applier.apply(standing)
    tell_uncarried(feed, standing, unusable)
    return standing
