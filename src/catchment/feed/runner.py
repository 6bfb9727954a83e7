"""Running a feed: everything that the loop needs is opened here, in order, and closed again."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed, SchemaChange, takes
from catchment.doctor import must_be_set_up, must_take
from catchment.engine.choice import engine_of
from catchment.engine.port import Engine
from catchment.feed.applier import Applier
from catchment.feed.clock import Clock
from catchment.feed.loop import Audience, Loop, Policy
from catchment.feed.planner import Limits, Planner
from catchment.feed.settle import settle, take_over
from catchment.feed.unusable import left_out
from catchment.feed.watchers import Watchers
from catchment.model.epoch import Manifest, epoch_number
from catchment.model.errors import ConfigError
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.sink.port import Sink, Upkeep
from catchment.sink.registry.sinks import sink_of
from catchment.source.first_cut import must_be_apart, originate
from catchment.source.identity import continued, must_be_same_log, must_have_file
from catchment.source.offsets import kept_seconds
from catchment.source.session import connect
from catchment.state.carried import leaving, listed, must_name_shards, tell_uncarried, without
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.journal import Journal
from catchment.state.lease import hold
from catchment.state.moments import time_text
from catchment.state.resume import Continue, Fresh, decide
from catchment.state.store import Store
from catchment.watch.metrics import Metrics
from catchment.watch.notify import Notifier
from catchment.watch.report import Observer
from catchment.watch.troubles import Troubles
from catchment.watch.uncarried import Uncarried
from catchment.watch.vitals import Vitals
from catchment.watch.watch import Watch

NOBODY = Observer()


@dataclasses.dataclass(frozen=True, slots=True)
class Ports:
    """What a run is joined to: its sink, its engine, and who says that a shard is set up and which tables it has."""

    sink: Callable[[Feed, Callable[[], None]], Sink]
    engine: Callable[[Feed], Engine]
    set_up: Callable[[Endpoint, Sequence[str]], list[TableId]]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the last epoch committed, and whether it was told to stop before it was done."""

    manifest: Manifest
    stopped: bool


def run_feed(
    feed: Feed,
    *,
    until_caught_up: bool,
    stop: world.Event,
    observer: Observer = NOBODY,
    fault: Injector = no_fault,
    settled: world.Event | None = None,
    leave: Collection[TableId] = (),
    ports: Ports | None = None,
) -> Outcome:
    """Copy and follow until stopped, or until caught up. Caught up means: with the log as it stood when the copy was
    complete (and, if given, `settled` was set). `leave`: tables that leave the feed now; `tables` of the feed file
    takes them no longer.

    Raises CatchmentError with what ended the run. A later run goes on where this one stopped.
    """
    ports = ports or Ports(sink_of, engine_of, must_be_set_up)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    sink = ports.sink(feed, lambda: fault(Fault.BETWEEN_APPLIES))
    with (
        closing(Store.open(feed.state.get_secret_value(), feed.name)) as store,
        hold(store, fence_above=sink.fence()) as lease,
        _watch(feed, Journal(store, lease.fence), stop, observer) as watch,
        _served(watch.vitals, feed),
    ):
        applier = Applier(store, lease, sink, stop)
        observer.doing(f"looking at {len(endpoints)} shard{'s' if len(endpoints) > 1 else ''}")
        standing, highest, present = _take_up(feed, endpoints, applier, leave, observer, ports)
        upkeep = sink.upkeep(standing.shapes, lease.fence)
        watchers = _watchers(feed, endpoints, standing, upkeep, watch, observer)
        watchers.uncarried.begin(standing, present)
        clock = _started_clock(feed, endpoints, standing, highest, watch.troubles)
        try:
            with closing(ports.engine(feed)) as engine, _cancelled_on(stop, engine):
                watchers.begun(standing, clock)
                observer.doing(_first_epoch(standing))
                loop = Loop(
                    endpoints=endpoints,
                    policy=_policy(feed),
                    standing=standing,
                    clock=clock,
                    planner=Planner(endpoints, _limits(feed)),
                    engine=engine,
                    applier=dataclasses.replace(applier, fault=fault),
                    audience=Audience(watchers.committed, watchers.rested, watch.troubles),
                )
                last = loop.run(_caught_up(settled) if until_caught_up else lambda manifest: False)
        finally:
            clock.stop()
            upkeep.stop(hurry=stop.is_set())
    return Outcome(last, stop.is_set())


def _policy(feed: Feed) -> Policy:
    return Policy(feed.epoch.interval, feed.schema_change is SchemaChange.EVOLVE, feed.epoch.away_max)


def _first_epoch(standing: Manifest) -> str:
    """What the first epoch of a run brings."""
    since = f"reading the log since {time_text(standing.time_us)}"
    return since if all(p.done for p in standing.progress) else f"{since}, and rows to copy"


def _watch(feed: Feed, journal: Journal, stop: world.Event, observer: Observer) -> Watch:
    shards = [endpoint.shard for endpoint in feed.endpoints()]
    vitals = Vitals(feed.name, shards)
    notifier, file = Notifier(feed.name, feed.notify), feed.metrics.file
    return Watch(journal, vitals, Troubles(), notifier, file=file, stop=stop, show=observer.in_trouble)


def _watchers(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    standing: Manifest,
    upkeep: Upkeep,
    watch: Watch,
    observer: Observer,
) -> Watchers:
    return Watchers(
        feed.name,
        upkeep,
        Metrics(standing, _kept_seconds(endpoints), registry=watch.vitals.registry),
        Uncarried(feed.tables, watch.journal, watch.vitals, watch.notifier),
        watch.notifier,
        watch.write_metrics,
        observer,
    )


def _limits(feed: Feed) -> Limits:
    copying = feed.copying
    return Limits(copying.chunk_time, copying.chunk_rows_max, copying.groups_per_shard, copying.log_budget)


def _take_up(
    feed: Feed,
    endpoints: dict[str, Endpoint],
    applier: Applier,
    leave: Collection[TableId],
    observer: Observer,
    ports: Ports,
) -> tuple[Manifest, int, dict[str, list[TableId]]]:
    """The manifest from which the loop goes on, applied and committed. With it come the highest epoch number used so
    far, and the tables of each shard that the rules take.
    """
    store, lease, sink = applier.store, applier.lease, applier.sink
    plan, stored, committed = store.newest()
    lake = sink.newest()
    digests = store.digests(stored.epoch) if stored is not None else ()
    decision = decide(feed.name, stored, committed, lake, digests)
    gone: list[TableId] = []
    if isinstance(decision, Continue):
        must_name_shards(endpoints, decision.manifest)
        gone = leaving(feed.tables, decision.manifest, leave)
    with world.pool(len(endpoints), "set-up") as pool:
        set_up = pool.map(lambda endpoint: ports.set_up(endpoint, feed.tables), endpoints.values())
        present = dict(zip(endpoints, set_up, strict=True))
    if lake is not None:
        sink.must_hold(lake)
    if isinstance(decision, Continue):
        take_over(applier, (shape.table for shape in decision.manifest.shapes), lake)
    else:
        take_over(applier, (), lake)
    last = plan.epoch if plan is not None else 0
    if isinstance(decision, Fresh):
        if leave:
            raise ConfigError(f"--leave {listed(list(leave))}: feed {feed.name} has not begun yet")
        observer.doing("taking the first cut")
        standing = _begin(feed, endpoints, applier, last)
        return standing, max(last, standing.epoch), present
    standing = decision.manifest
    cut = _checked_cut(endpoints, standing)
    last = max(last, settle(applier, decision, committed, lake))
    if gone:
        last = max(epoch_number(world.now_us() // 1_000_000), last + 1)
        standing = without(standing, gone, last)
        store.put_manifest(standing, lease.fence)
        applier.apply(standing)
    tell_uncarried(feed.tables, standing, set(chain.from_iterable(present.values())))
    return _going_on(standing, cut), last, present


def _begin(feed: Feed, endpoints: dict[str, Endpoint], applier: Applier, after: int) -> Manifest:
    """The first epoch of a feed, applied and committed."""
    outside = left_out(feed, endpoints)
    unusable = frozenset(one.table for one in outside)
    begun = originate(
        feed.name, endpoints, lambda table: table not in unusable and takes(feed.tables, table), after
    )
    standing = replace(begun, outside=outside)
    must_take(feed.tables, standing)
    applier.sink.must_be_free(standing)  # a store that knows it would not go on from a lake put back
    applier.store.put_manifest(standing, applier.lease.fence)
    applier.apply(standing)
    tell_uncarried(feed.tables, standing, unusable)
    return standing


def _checked_cut(endpoints: dict[str, Endpoint], manifest: Manifest) -> dict[str, Position]:
    """Where the logs of the shards go on; raises SourceError for one that is not that of the manifest any more."""
    must_be_apart(manifest.cut)
    cut = {shard: continued(endpoint, manifest.cut[shard]) for shard, endpoint in endpoints.items()}
    for shard, endpoint in endpoints.items():
        must_be_same_log(endpoint, cut[shard])
        must_have_file(endpoint, cut[shard])
    return cut


def _going_on(manifest: Manifest, cut: dict[str, Position]) -> Manifest:
    """Move the cut to where the log goes on in other files. Seals do not carry over: they are proven anew there."""
    sealed = {shard: at for shard, at in manifest.sealed.items() if cut[shard] == manifest.cut[shard]}
    return replace(manifest, cut=cut, sealed=sealed)


def _started_clock(
    feed: Feed, endpoints: dict[str, Endpoint], standing: Manifest, last: int, troubles: Troubles
) -> Clock:
    servers = {shard: position.server for shard, position in standing.cut.items()}
    clock = Clock(endpoints, servers, feed.epoch.tick, last, troubles, feed.epoch.away_max)
    return clock.start(standing.cut)


def _kept_seconds(endpoints: dict[str, Endpoint]) -> dict[str, float | None]:
    kept = {}
    for shard, endpoint in endpoints.items():
        with connect(endpoint) as session:
            kept[shard] = kept_seconds(session)
    return kept


@contextmanager
def _served(vitals: Vitals, feed: Feed) -> Iterator[None]:
    """Answer scrapes while the run lasts, if the feed names a port."""
    metrics = feed.metrics
    stop = vitals.serve(metrics.address, metrics.port) if metrics.port is not None else None
    try:
        yield
    finally:
        if stop is not None:
            stop()


def _caught_up(settled: world.Event | None) -> Callable[[Manifest], bool]:
    """True of the first epoch cut after the copy was seen complete: all that was in the log then is in the
    lake.
    """
    complete_since: list[int] = []

    def done(manifest: Manifest) -> bool:
        if not all(p.done for p in manifest.progress) or (settled is not None and not settled.is_set()):
            return False
        if manifest.absent:
            return False
        if not complete_since:
            complete_since.append(manifest.epoch)
            return False
        return manifest.epoch > complete_since[0]

    return done


@contextmanager
def _cancelled_on(stop: world.Event, engine: Engine) -> Iterator[None]:
    """Cancel what runs when told to stop, so that the run ends within seconds."""
    ended = world.event()

    def watch() -> None:
        while not ended.wait(0.1):
            if stop.is_set():
                engine.cancel()  # again and again: the loop may be about to start another job

    thread = world.thread("stop", watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
