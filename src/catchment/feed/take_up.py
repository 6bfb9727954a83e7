"""Taking up a feed: what stands is brought to one manifest, applied and committed, from which the loop goes on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.doctor import must_allow, must_take
from catchment.engine.port import Engine
from catchment.feed.adoption import Adoption, Candidate, candidate, naming
from catchment.feed.applier import Applier
from catchment.feed.edition import Edition
from catchment.feed.lost_logs import looked_at
from catchment.feed.settle import settle, take_over
from catchment.feed.spared import Spared
from catchment.feed.taken_up import TakenUp
from catchment.feed.unusable import left_out
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import CatchmentError, ConfigError
from catchment.model.named import listed
from catchment.model.retries import holds_up_a_shard
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.sink.port import Sink
from catchment.source.comments import commented_now
from catchment.source.each_shard import each_shard
from catchment.source.first_cut import origins_of
from catchment.source.foreign_keys import with_keys
from catchment.source.origin import first_manifest, must_be_apart
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
class _Stored:
    """What state store and lake have of a feed that has begun. `last`: the highest number planned."""

    decision: Continue
    committed: Commit | None
    lake: EpochRow | None
    last: int


def take_up(
    edition: Edition, applier: Applier, doing: Callable[[str], None], ports: Ports, *, bears: bool = False
) -> TakenUp:
    """Begin a feed, or go on with one, by an edition of its feed file. `doing` hears of what takes time. `bears`: the
    run waits for a shard that somebody has to mend.

    Raises CatchmentError for whatever keeps a run from beginning. One that goes on by another feed file bears what it
    bore before, and one that begins needs one shard at least.
    """
    feed, store = edition.feed, applier.store
    plan, stored, committed = store.newest()
    lake = applier.sink.newest()
    digests = store.digests(stored.epoch) if stored is not None else ()
    decision = decide(feed.name, stored, committed, lake, digests)
    last = plan.epoch if plan is not None else 0
    if isinstance(decision, Fresh):
        return _begun(edition, applier, doing, ports, last, bears=bears)
    return _gone_on(edition, applier, doing, ports, _Stored(decision, committed, lake, last), bears=bears)


def _begun(
    edition: Edition, applier: Applier, doing: Callable[[str], None], ports: Ports, last: int, *, bears: bool
) -> TakenUp:
    """A new feed. It needs all of its shards."""
    feed = edition.feed
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    present, failed = _set_up(feed, endpoints, ports)
    Spared(edition, any_shard=False, bears=bears).must_be_borne(failed, present)
    take_over(applier, (), None)
    if edition.leave:
        raise ConfigError(f"--leave {listed(list(edition.leave))}: feed {feed.name} has not begun yet")
    doing("taking the first cut")
    standing = _begin(feed, endpoints, applier, last)
    return TakenUp(standing, max(last, standing.epoch), present, bears=bears)


def _gone_on(
    edition: Edition,
    applier: Applier,
    doing: Callable[[str], None],
    ports: Ports,
    stored: _Stored,
    *,
    bears: bool,
) -> TakenUp:
    """A feed from where it stands, with tables that leave it and the server that is adopted."""
    feed, sink, standing = edition.feed, applier.sink, stored.decision.manifest
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    must_name_shards(endpoints, standing)
    must_keep_treatments(feed, standing)
    gone = leaving(feed.tables, standing, edition.leave)
    spared = Spared(edition, any_shard=feed.epoch.away_max > 0, bears=bears)
    present, failed = _set_up(feed, endpoints, ports)
    spared.must_be_borne(failed, present, partial(_was_ready, edition, ports))
    found = _candidate(edition.adoption, endpoints, standing, failed)
    if stored.lake is not None:
        sink.must_hold(stored.lake)
    take_over(applier, standing.followed, stored.lake)
    must_be_apart(standing.cut.positions)
    adopts = "" if found is None else found.shard
    looked = looked_at({shard: endpoints[shard] for shard in present if shard != adopts}, standing)
    spared.must_be_borne(looked.failed, present.keys() - looked.failed.keys())
    last = max(stored.last, settle(applier, stored.decision, stored.committed, stored.lake))
    if gone:
        last = _next_number(last)
        standing = _put(applier, without(standing, gone, last))
    if found is not None and found.is_new:
        last = _next_number(last)
        standing = _put(applier, naming(standing, endpoints[adopts], found, last))
    tell_uncarried(feed, standing, set(chain.from_iterable(present.values())))
    shapes = commented_now(standing.shapes, [endpoints[s] for s in present if s not in looked.failed])
    shapes = tuple(replace(s, arrangement=feed.treatment_of(s.table).arrangement) for s in shapes)
    began = TakenUp(
        replace(standing, shapes=shapes, cut=standing.cut.moved(looked.positions)),
        last,
        present,
        unready={shard: partial(_must_be_ready, feed, endpoints[shard], ports) for shard in failed},
        bears=bears,
        adopted=None if found is None else found.adopted(last if found.is_new else None),
    )
    if not looked.lost:
        return began
    doing(f"taking a new first cut of {listed(sorted(looked.lost))}")
    return began.begun_again(endpoints, looked.lost)


def _next_number(last: int) -> int:
    return max(epoch_number(world.now_us() // 1_000_000), last + 1)


def _put(applier: Applier, manifest: Manifest) -> Manifest:
    """Commit an epoch without rows."""
    applier.store.put_manifest(manifest, applier.lease.fence)
    applier.apply(manifest)
    return manifest


def _candidate(
    adoption: Adoption | None,
    endpoints: Mapping[str, Endpoint],
    standing: Manifest,
    failed: Mapping[str, CatchmentError],
) -> Candidate | None:
    """The server that is to be adopted, if one is. Raises ConfigError for a shard that the feed does not have, what
    keeps the server from being read, and what `candidate` raises."""
    if adoption is None:
        return None
    shard = adoption.shard
    if shard not in endpoints:
        raise ConfigError(f"the feed has the shards {', '.join(endpoints)}, and not {shard}")
    if shard in failed:
        raise failed[shard]
    return candidate(endpoints[shard], standing, copy=adoption.copy)


def _set_up(
    feed: Feed, endpoints: dict[str, Endpoint], ports: Ports
) -> tuple[dict[str, list[TableId]], dict[str, CatchmentError]]:
    """The tables that the rules take, of the shards that are set up; and what is wrong with each other shard."""

    def ask(shard: str) -> list[TableId] | CatchmentError:
        try:
            return _must_be_ready(feed, endpoints[shard], ports)
        except CatchmentError as error:
            if not holds_up_a_shard(error):
                raise
            return error

    answers = each_shard(endpoints, ask)
    present = {shard: found for shard, found in answers.items() if not isinstance(found, CatchmentError)}
    failed = {shard: found for shard, found in answers.items() if isinstance(found, CatchmentError)}
    return present, failed


def _was_ready(edition: Edition, ports: Ports, shard: str) -> bool:
    """Whether a shard would do by the feed file that the run used before."""
    if edition.before is None:
        return False
    feed = edition.before.feed
    endpoint = next(one for one in feed.endpoints() if one.shard == shard)
    try:
        _must_be_ready(feed, endpoint, ports)
    except CatchmentError:
        return False
    return True


def _must_be_ready(feed: Feed, endpoint: Endpoint, ports: Ports) -> list[TableId]:
    """The tables of a shard that the rules take. Raises what keeps them from being copied and followed."""
    found = [table for table in ports.set_up(endpoint, feed.tables) if feed.enters(table)]
    must_allow(endpoint, feed)
    return found


def _begin(feed: Feed, endpoints: dict[str, Endpoint], applier: Applier, after: int) -> Manifest:
    """The first epoch of a feed, applied and committed."""
    origins = origins_of(endpoints, feed.enters)
    outside = left_out(feed, origins)
    unusable = frozenset(one.table for one in outside)
    usable = {shard: origin.without(unusable) for shard, origin in origins.items()}
    begun = first_manifest(feed.name, usable, after, feed.treatment_of)
    standing = with_keys(
        replace(begun, outside=outside), {shard: origin.keys for shard, origin in usable.items()}
    )
    must_match(feed, standing)
    must_take(feed.tables, standing)
    applier.sink.must_be_free(standing)  # a store that knows it would not go on from a lake put back
    applier.store.put_manifest(standing, applier.lease.fence)
    applier.apply(standing)
    tell_uncarried(feed, standing, unusable)
    return standing
