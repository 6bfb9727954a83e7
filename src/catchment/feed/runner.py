"""Running a feed: everything that the loop needs is opened here, in order, and closed again."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial

from catchment import world
from catchment.config import CopyConfig, Feed, NewTables
from catchment.doctor import must_be_set_up
from catchment.engine.choice import engine_of
from catchment.engine.nursery import Nursery
from catchment.engine.port import Engine
from catchment.engine.waves import InWaves
from catchment.epoch.standstill import Standstill
from catchment.feed.applier import Applier
from catchment.feed.born import Births
from catchment.feed.checks import Checks
from catchment.feed.clock import Clock
from catchment.feed.commands import Commands, Obeying, Superseded, give
from catchment.feed.edition import Edition, another_edition
from catchment.feed.live import Live
from catchment.feed.loop import Audience, Loop, Policy
from catchment.feed.loops import Loops, Turns
from catchment.feed.mender import Mender
from catchment.feed.newcomers import Newcomers
from catchment.feed.planner import TREE_ROWS_MAX, Limits, Planner
from catchment.feed.policies import Policies
from catchment.feed.served import board_of, served
from catchment.feed.sessions import Sessions, sessions_of
from catchment.feed.shadows import Shadows
from catchment.feed.staging import Copying
from catchment.feed.take_up import Ports, take_up
from catchment.feed.taken_up import TakenUp
from catchment.feed.throttle import Throttle
from catchment.feed.verifying import verifying
from catchment.feed.watchers import Watchers
from catchment.model.column_rule import MaskKey
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, StateAway
from catchment.model.named import by_cause, tables_named
from catchment.model.retries import holds_up_a_shard
from catchment.model.source import Endpoint
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.page.board import Board
from catchment.schema.existence import Existence
from catchment.sink.port import Sink, Upkeep
from catchment.sink.registry.sinks import sink_of
from catchment.source.each_shard import each_shard
from catchment.source.offsets import kept_seconds, log_files
from catchment.source.session import connect
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.journal import Journal
from catchment.state.lease import Lease, Standby, hold
from catchment.state.moments import time_text
from catchment.state.patience import Patience
from catchment.state.store import Store
from catchment.watch.course import Course
from catchment.watch.metrics import Metrics
from catchment.watch.notify import Notifier
from catchment.watch.progress_metrics import ProgressMetrics
from catchment.watch.report import NOBODY, Observer, unfailing
from catchment.watch.stale_tables import StaleTables
from catchment.watch.troubles import Troubles
from catchment.watch.uncarried import Uncarried
from catchment.watch.vitals import Vitals
from catchment.watch.watch import Watch

# So long a run that is to catch up waits for stale tables to enter again.
_ENTERS_SECONDS = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the last epoch committed, whether it was told to stop before it was done, and by an order.
    `left`: why readers do not see some tables as of that epoch, in a line for each cause."""

    manifest: Manifest
    stopped: bool
    ordered: bool = False
    left: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What `run_feed` was asked for, whatever feed file it goes by."""

    ports: Ports
    until_caught_up: bool
    stop: world.Event
    observer: Observer
    fault: Injector
    settled: world.Event | None


@dataclasses.dataclass(frozen=True, slots=True)
class _Log:
    """A shard's log as the run begins: for how long it is kept (None: no limit in time), and its files and their
    bytes."""

    kept_seconds: float | None
    files: dict[str, int]


def run_feed(  # noqa: PLR0913 (all that a run may be asked for)
    feed: Feed,
    *,
    until_caught_up: bool,
    stop: world.Event,
    observer: Observer = NOBODY,
    fault: Injector = no_fault,
    settled: world.Event | None = None,
    leave: Collection[TableId] = (),
    standby: bool = False,
    ports: Ports | None = None,
) -> Outcome:
    """Copy and follow until stopped, or until caught up. Caught up means: with the log as it stood when the copy was
    complete (and, if given, `settled` was set). `leave`: tables that leave the feed now; `tables` of the feed file
    takes them no longer. A later run goes on where this one stopped. An order may bring another feed file meanwhile.
    `standby`: while another runner holds the feed, wait until it has ended. Raises CatchmentError with what ended the
    run.
    """
    asked = _Asked(ports or usual_ports(), until_caught_up, stop, observer, fault, settled)
    edition = Edition(feed, leave)
    sink = asked.ports.sink(feed, lambda: None)
    waits = Standby(stop, unfailing(observer).doing) if standby else None
    with (
        closing(Store.open(feed.state.get_secret_value(), feed.name)) as store,
        hold(store, fence_above=sink.fence(), standby=waits) as lease,
    ):
        while isinstance(found := _run(edition, asked, store, lease), Edition):
            # The lease is kept, and nothing that began under the feed file from before writes any more.
            edition = found
            lease.raise_fence()
    return found


def _run(edition: Edition, asked: _Asked, store: Store, lease: Lease) -> Outcome | Edition:
    """Run by one feed file: how that ended, or by what the run goes on."""
    feed, ports, stop, fault = edition.feed, asked.ports, asked.stop, asked.fault
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    sink = ports.sink(feed, lambda: fault(Fault.BETWEEN_APPLIES))
    troubles = Troubles()
    wait_max = _wait_max(feed, follows=not asked.until_caught_up)
    store.patience = Patience(stop, wait_max, troubles.went_away, lambda: troubles.came_back(StateAway.away))
    with (
        board_of(feed, store) as board,
        _watch(
            feed, store, lease.fence, troubles, stop, _told_first(board, unfailing(asked.observer))
        ) as watch,
        served(feed, watch.vitals, board),
        sessions_of(feed, store, lease, stop, watch) as held,
    ):
        applier = Applier(store, lease, sink, stop, wait_max=wait_max, troubles=troubles)
        doing = watch.observer.doing
        doing(f"looking at {len(endpoints)} shard{'s' if len(endpoints) > 1 else ''}")
        try:
            began = take_up(edition, applier, doing, ports, bears=_bears(wait_max))
        except CatchmentError as met:
            return edition.refused(met)
        edition.tell(partial(give, store, lease.fence, watch.observer.answered), began.adopted)
        clock_of = partial(_started_clock, feed, endpoints, troubles)
        upkeep = sink.upkeep(lease.fence)
        watchers = _watchers(feed, _logs(endpoints), began, upkeep, watch)
        clock = clock_of(began)
        superseded = False
        throttle = Throttle(Checks(feed).of, feed.copying.throttle, watch.throttles)
        planner = Planner(endpoints, _limits(feed.copying), throttle, held)
        obeying = Obeying(_live(feed, watch, planner).obey, partial(another_edition, edition))
        commands = Commands(store, lease.fence, stop, obeying, watch.observer.answered)
        try:
            with _engine(feed, ports, stop, held) as engine, verifying(feed, store, ports, throttle, watch):
                watchers.begun(began.standing, clock)
                doing(_first_epoch(began.standing))
                applying = dataclasses.replace(applier, fault=fault)
                births = Births(feed, endpoints, engine, applying)
                shadows = Shadows(feed, endpoints, sink, births)
                loop_of = partial(
                    Loop,
                    endpoints=endpoints,
                    policy=_policy(feed, commands, wait_max),
                    planner=planner,
                    engine=engine,
                    applier=applying,
                    audience=Audience(
                        partial(_heard, births, shadows), watchers.committed, watchers.rested, troubles
                    ),
                )
                enter = _Entering(shadows, _newcomers(feed, endpoints, sink, births, watchers.uncarried))
                done = _caught_up(asked, commands, upkeep, enter.enters, planner.standstill)
                turns = Turns(done, enter.next, Mender.of(feed, engine, applying, commands, throttle))
                last = Loops(endpoints, commands, clock_of, loop_of, stop).run(began, clock, turns)
        except Superseded as met:
            superseded = True
            return met.edition
        finally:
            planner.close()
            clock.stop()
            upkeep.stop(hurry=superseded or stop.is_set())
            watchers.ended()
    return Outcome(last, stop.is_set(), commands.ended_it, _left(last, planner.standstill))


def _left(last: Manifest, standstill: Standstill) -> tuple[str, ...]:
    causes: list[tuple[TableId, str]] = [(one.table, one.said) for one in last.stale]
    causes += [(one.table, one.said) for one in standstill.refused if one.table in last.tables]
    return tuple(f"{tables_named(tables)} {said}" for said, tables in by_cause(causes).items())


@dataclasses.dataclass(frozen=True, slots=True)
class _Entering:
    """What enters between two epochs: a shadow table first, since its swap is done already."""

    shadows: Shadows
    newcomers: Newcomers

    def next(self, standing: Manifest) -> Manifest | None:
        return self.shadows.next(standing) or self.newcomers.next(standing)

    def enters(self, standing: Manifest) -> bool:
        return self.shadows.takes_place(standing) or self.newcomers.enters(standing)


def _heard(births: Births, shadows: Shadows, existence: Mapping[str, Existence]) -> None:
    births.hear(existence)
    shadows.hear(existence)


def usual_ports(nursery: Nursery | None = None) -> Ports:
    """What a feed file asks for. `nursery`: as `engine.choice.prepared` gave it, for the first engine."""
    prepared = [] if nursery is None else [nursery]
    return Ports(
        sink_of, lambda feed: engine_of(feed, nursery=prepared.pop() if prepared else None), must_be_set_up
    )


def _wait_max(feed: Feed, *, follows: bool) -> float | None:
    """Seconds for which a run waits for what is away; None: for ever. One that is to end waits for its tries only."""
    given = feed.epoch.wait_max
    return 0.0 if given is None and not follows else given


def _policy(feed: Feed, commands: Commands, wait_max: float | None) -> Policy:
    epoch, key = feed.epoch, feed.key_of_masks()
    return Policy(
        epoch.interval,
        Policies(feed.changes_for),
        _copying(feed, key),
        epoch.away_max,
        key,
        commands.aside,
        wait_max,
        bears=_bears(wait_max),
        sets_aside=commands.sets_aside,
    )


def _bears(wait_max: float | None) -> bool:
    """Whether a run waits until somebody has mended a shard: one that is to end does not."""
    return wait_max != 0.0


def _copying(feed: Feed, mask_key: MaskKey | None) -> Copying:
    return Copying(feed.name, feed.copying.strategy, feed.copying.marks_table, mask_key)


def _first_epoch(standing: Manifest) -> str:
    """What the first epoch of a run brings."""
    since = f"reading the log since {time_text(standing.time_us)}"
    return since if standing.cut.idle else f"{since}, and rows to copy"


def _told_first(board: Board | None, observer: Observer) -> Observer:
    return observer if board is None else board.before(observer)


def _watch(
    feed: Feed, store: Store, fence: int, troubles: Troubles, stop: world.Event, observer: Observer
) -> Watch:
    journal = Journal(store, fence, feed.copying.strategy)
    shards = [endpoint.shard for endpoint in feed.endpoints()]
    vitals = Vitals(feed.name, shards)
    notifier, file = Notifier(feed.name, feed.notify, observer.noticed), feed.metrics.file
    course = Course(feed.copying.place_of)
    vitals.registry.register(ProgressMetrics(feed.name, lambda: course.newest))
    return Watch(journal, vitals, troubles, notifier, course, file=file, stop=stop, observer=observer)


def _watchers(feed: Feed, logs: dict[str, _Log], began: TakenUp, upkeep: Upkeep, watch: Watch) -> Watchers:
    kept = {shard: log.kept_seconds for shard, log in logs.items()}
    carries = feed.new_tables is NewTables.CARRY
    uncarried = Uncarried(feed.enters, watch.journal, watch.vitals, watch.notifier, carries=carries)
    uncarried.begin(began.standing, began.present)
    return Watchers(
        feed.name,
        upkeep,
        Metrics(began.standing, kept, registry=watch.vitals.registry),
        watch.course,
        {shard: log.files for shard, log in logs.items()},
        uncarried,
        StaleTables(began.standing, watch.vitals, watch.notifier),
        watch.notifier,
        watch.write_metrics,
        watch.observer,
    )


def _live(feed: Feed, watch: Watch, planner: Planner) -> Live:
    return Live(feed, watch.journal, lambda copying: planner.change(_limits(copying), copying.throttle))


def _newcomers(
    feed: Feed, endpoints: dict[str, Endpoint], sink: Sink, births: Births, uncarried: Uncarried
) -> Newcomers:
    return Newcomers(feed, endpoints, sink, lambda: uncarried.now, births)


def _limits(copying: CopyConfig) -> Limits:
    return Limits(
        copying.chunk_time,
        copying.chunk_rows_max,
        copying.groups_per_shard,
        copying.log_budget,
        copying.place_of,
        copying.strategy is Strategy.WATERMARK,
        copying.group_time,
        TREE_ROWS_MAX,
    )


def _started_clock(feed: Feed, endpoints: dict[str, Endpoint], troubles: Troubles, began: TakenUp) -> Clock:
    positions = began.positions
    servers = {shard: position.server for shard, position in positions.items()}
    clock = Clock(
        endpoints,
        servers,
        feed.epoch.tick,
        began.highest,
        troubles,
        feed.epoch.away_max,
        began.bears,
        began.unready,
    )
    return clock.start(positions)


def _logs(endpoints: dict[str, Endpoint]) -> dict[str, _Log]:
    """The shards' logs; nothing is known of one that cannot be asked now."""

    def ask(shard: str) -> _Log:
        try:
            with connect(endpoints[shard]) as session:
                return _Log(kept_seconds(session), log_files(session))
        except CatchmentError as error:
            if not holds_up_a_shard(error):
                raise
            return _Log(None, {})

    return each_shard(endpoints, ask)


def _never(manifest: Manifest) -> bool:
    return False


def _caught_up(
    asked: "_Asked",
    commands: Commands,
    upkeep: Upkeep,
    enters: Callable[[Manifest], bool],
    standstill: Standstill,
) -> Callable[[Manifest], bool]:
    """Of a run that is to end, true of the first epoch cut after the copy was seen complete. All that was in the log
    then is in the lake. A stale table has some seconds to enter again, or to be settled; where the log stands still it
    may never do so. What somebody ordered to mend is mended, and a table that `enters` does so first. Tables whose
    copies stand still are not waited for.
    """
    if not asked.until_caught_up:
        return _never
    settled = asked.settled
    complete_since: list[int] = []
    lost_since: list[float] = []

    def done(manifest: Manifest) -> bool:
        copying = manifest.cut.copying - standstill.still
        if commands.mends or copying or (settled is not None and not settled.is_set()):
            complete_since.clear()
            return False
        awaited = any(one.settles for one in manifest.stale)
        if manifest.absent or enters(manifest) or (awaited and upkeep.running):
            return False
        if not manifest.lost and not awaited:
            lost_since.clear()
        elif not lost_since:
            lost_since.append(world.steady_seconds())
        if lost_since and world.steady_seconds() - lost_since[0] < _ENTERS_SECONDS:
            return False
        if not complete_since:
            complete_since.append(manifest.epoch)
            return False
        return manifest.epoch > complete_since[0]

    return done


@contextmanager
def _engine(feed: Feed, ports: Ports, stop: world.Event, held: Sessions | None) -> Iterator[Engine]:
    with closing(ports.engine(feed)) as engine, _cancelled_on(stop, engine):
        yield engine if held is None else InWaves(engine, held.room)


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
