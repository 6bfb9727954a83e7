"""The loop: one turn per epoch. This file is the summary of the system.

    cut -> plan -> read -> manifest -> apply -> commit

What has to be SELECTed in front of the cut is read before it (staging.py).

Reading an epoch overlaps the apply of the one before; commits stay in order.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from msgspec.structs import replace

from catchment import world
from catchment.engine.port import Engine
from catchment.epoch.gather import gather, manifest
from catchment.epoch.work import ChunkReceipt, Failed, Receipt, SegmentReceipt, StagedGroup, Task
from catchment.feed.altered import commented, lost_in, told_by_catalog
from catchment.feed.applier import Applier
from catchment.feed.arrivals import Arrivals
from catchment.feed.between import Between, Mends
from catchment.feed.children import Children
from catchment.feed.clock import Clock
from catchment.feed.planner import Planner
from catchment.feed.policies import Policies
from catchment.feed.staging import Ahead, Copying, Group, Staging
from catchment.feed.tasks import Aside, TaskMaker
from catchment.feed.tries import Tries
from catchment.feed.unmoved import at_rest, inherited, unmoved
from catchment.model.column_rule import MaskKey
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest, Plan
from catchment.model.errors import CatchmentError, CutMissed, Retry, TooManyImages, Undescribed
from catchment.model.log_fields import about
from catchment.model.source import Endpoint
from catchment.readers.run_task import run_task
from catchment.schema.existence import Existence
from catchment.source.definitions_at import described
from catchment.state.faults import Fault
from catchment.watch.report import Report, Rest
from catchment.watch.troubles import Troubles

# A request to stop may go unnoticed for this long.
TICK_WAIT_SECONDS = 0.5
# Whether rows that wait may be copied is asked so often.
_THROTTLED_SECONDS = 1.0

_log = logging.getLogger(__name__)


def _nothing(error: CatchmentError) -> bool:
    return False


@dataclass(frozen=True)
class Policy:
    """`interval`: seconds between two epochs while there is nothing to copy. `policies`: what is done about DDL.
    `away_max`: seconds for which epochs may close without a shard. `mask_key`: for columns whose values become
    HMACs. `aside`: where something stands that orders set aside, by shard. `wait_max`: seconds for which a shard is
    waited for without which no epoch can close; None: for ever. `bears`: one that somebody has to mend is waited for,
    too. `sets_aside`: whether an order sets aside what an error names."""

    interval: float
    policies: Policies
    copying: Copying
    away_max: float = 0.0
    mask_key: MaskKey | None = None
    aside: Aside = dict
    wait_max: float | None = 0.0
    bears: bool = False
    sets_aside: Callable[[CatchmentError], bool] = _nothing


@dataclass(frozen=True)
class Audience:
    """Hears of each committed epoch, of each turn without one, of each epoch that is read again. `read`: of an epoch
    that was read, what its DDL did."""

    read: Callable[[Mapping[str, Existence]], None]
    committed: Callable[[Report], None]
    rested: Callable[[Rest], None]
    troubles: Troubles


class Loop:
    """Runs epochs of one feed from `standing` on, until told to stop. Single use, one thread."""

    def __init__(
        self,
        *,
        endpoints: Mapping[str, Endpoint],
        policy: Policy,
        standing: Manifest,
        clock: Clock,
        planner: Planner,
        engine: Engine,
        applier: Applier,
        audience: Audience,
    ) -> None:
        self._endpoints = endpoints
        self._interval, self._wait_max = policy.interval, policy.wait_max
        self._tasks = TaskMaker(
            endpoints, applier.sink.writer, policy.policies, policy.mask_key, policy.aside
        )
        self._standing = self._committed = standing
        self._arrivals = Arrivals(standing, policy.away_max, bears=policy.bears)
        self._sets_aside = policy.sets_aside
        self._applier = applier
        self._children = Children(applier.sink, engine)
        self._store, self._lease = applier.store, applier.lease
        self._fault, self._stop = applier.fault, applier.stop
        self._clock = clock
        self._planner = planner
        self._engine = engine
        attempt = str(applier.lease.fence)
        stage = applier.sink.stage
        self._staging = Staging(policy.copying, endpoints, planner, clock, engine, stage, attempt)
        self._audience = audience
        self._event_times = dict.fromkeys(endpoints, 0)
        self._phases: dict[str, float] = {}
        self._existence: dict[str, Existence] = {}
        self._apply_seconds = 0.0
        self._unread: list[CatchmentError] = []
        self._waits = False  # rows are to be copied, and none is now

    @property
    def standing(self) -> Manifest:
        """The newest manifest, from which the run goes on."""
        return self._standing

    @property
    def committed(self) -> Manifest:
        """The newest one that is known to be committed."""
        return self._committed

    def run(
        self,
        done: Callable[[Manifest], bool],
        between: Callable[[Manifest], Manifest | None] = lambda standing: None,
        mender: Mends | None = None,
    ) -> Manifest:
        """Turn until `done` says so of a committed epoch, or until stopped; the last manifest committed.

        `between`: an epoch that ends where the one before does, if one is due: a table enters, or an order is obeyed.
        `mender`: the same, of what is compared with the lake as of the epoch before.
        """
        tries = Tries(self._wait_max, self._audience.troubles, self._stop)
        pending: world.Future[None] | None = None
        coming = Between(between, mender)
        with world.pool(1, "apply") as applier:
            while not self._stop.is_set():
                began = world.steady_seconds()
                entering = self._tried(partial(coming.next, self._standing), tries, began, pending)
                pending = self._go_between(entering, applier, pending)
                if mender is not None and mender.due():
                    if pending is not None and (not self._applied(pending) or done(self._committed)):
                        return self._committed
                    mended = self._tried(partial(mender.next, self._standing), tries, began, None)
                    pending = self._go_between(mended, applier, None)
                read = self._tried(partial(self._read_epoch, pending), tries, began, pending)
                if read is None:
                    continue
                tries.succeeded()
                self._tell_of_unread(read)
                if pending is not None:
                    if not self._applied(pending) or done(self._committed):
                        return self._committed
                    pending = None
                if _brings_nothing(read, self._standing):
                    if done(read):
                        return self._committed
                    self._rest(read)
                    coming.wait(self._turn_seconds, self._standing, self._stop)
                    continue
                pending = self._begun_to_apply(applier, read)
                self._pause(coming, began, read)
            self._finish(self._go_between(coming.taken(), applier, pending))
        return self._committed

    def _tried(
        self,
        work: Callable[[], Manifest | None],
        tries: Tries,
        began: float,
        pending: world.Future[None] | None,
    ) -> Manifest | None:
        """What a part of a turn that began at `began` comes to; None where it failed, and is to be done again. Raises
        what cannot pass when that which is `pending` is applied."""
        try:
            return work()
        except CatchmentError as error:
            if self._stop.is_set():
                return None
            try:
                tries.failed(error, began)
            except CatchmentError:
                self._finish(pending)
                raise
            return None

    def _finish(self, pending: world.Future[None] | None) -> None:
        """Wait until what is being applied is: whoever goes on from here finds it so."""
        if pending is not None:
            self._applied(pending)

    def _rest(self, read: Manifest) -> None:
        """Positions did not move: keep what the servers told since (counts of RESET, seals)."""
        cut = replace(self._standing.cut, shards=read.cut.shards)
        self._standing = replace(self._standing, cut=cut, absent=read.absent)
        self._audience.rested(Rest(read.time_us, self._planner.standstill.refusals, read.absent))

    def _go_between(
        self, next_one: Manifest | None, applier: world.Pool, pending: world.Future[None] | None
    ) -> world.Future[None] | None:
        """Begin the epoch that comes between two others, if one does; what is being applied then."""
        if next_one is None or (pending is not None and not self._applied(pending)):
            return pending
        return self._begun_to_apply(applier, next_one)

    def _begun_to_apply(self, applier: world.Pool, read: Manifest) -> world.Future[None]:
        """Write a manifest, go on from it, and have it applied."""
        self._lease.check()
        self._store.put_manifest(read, self._lease.fence)
        self._fault(Fault.AFTER_MANIFEST)
        self._standing = read
        self._clock.verified(read.cut.positions)
        phases, self._phases = self._phases, {}
        existence, self._existence = self._existence, {}
        self._audience.read(existence)
        return applier.submit(self._apply, read, {**phases}, existence)

    def _tell_of_unread(self, read: Manifest) -> None:
        """Count shards whose log could not be read for an epoch that closed without them."""
        troubles = self._audience.troubles
        for error in self._unread:
            troubles.log_unread(error)
        troubles.passed()
        for shard in read.cut.shards.keys() - read.absent.keys():
            troubles.log_read(shard)

    def _applied(self, pending: world.Future[None]) -> bool:
        """Wait until an epoch is applied; False when the apply was given up because the run is to stop. The next
        run then begins with it."""
        try:
            pending.result()
        except CatchmentError as error:
            if error.retry is Retry.NEVER or not self._stop.is_set():
                raise
            return False
        self._committed = self._standing
        return True

    def _read_epoch(self, pending: world.Future[None] | None) -> Manifest | None:
        """Cut, plan, read and put together; None when the loop was told to stop before that. `pending`: what is being
        applied, for which children of changed parents are waited with."""
        self._engine.check()
        self._unread = []
        self._planner.turn(idle=self._standing.cut.idle, interval=self._epoch_seconds)
        ahead = self._staging.ahead(self._standing, TICK_WAIT_SECONDS)
        if ahead is None:
            return self._read_behind(
                self._clock.after(self._standing.epoch, TICK_WAIT_SECONDS), None, pending
            )
        try:
            self._fault(Fault.AFTER_STAGE)
            return self._read_behind(self._tick_behind(ahead), ahead, pending)
        finally:
            self._staging.let_go(ahead)

    def _tick_behind(self, ahead: Ahead) -> Tick | None:
        """A tick behind what was staged, which is not read again for one that comes late; None when told to stop."""
        while not self._stop.is_set():
            tick = self._staging.tick(ahead, TICK_WAIT_SECONDS)
            if tick is not None:
                return tick
        return None

    def _read_behind(
        self, tick: Tick | None, ahead: Ahead | None, pending: world.Future[None] | None
    ) -> Manifest | None:
        """The epoch up to a tick. `ahead`: what was read in front of it; None: chunks are planned here."""
        if tick is None:
            return None
        tick = self._arrivals.of(tick)
        previous = self._standing
        began = world.steady_seconds()
        still = unmoved(previous.cut, tick)
        arrived = {one.shard: one for one in inherited(previous.cut, still, self._clock, self._endpoints)}
        if len(still) == len(tick.offsets):
            self._lease.check()
            absent = self._arrivals.absent(tick, arrived)
            self._planner.rest()
            self._waits = False
            return at_rest(previous, tick, list(arrived.values()), absent)
        groups = self._groups(previous, tick, ahead)
        chunks = tuple(chunk for group in groups for chunk in group)
        self._waits = not chunks and bool(self._planner.throttled or self._planner.waiting)
        floors, refusals = previous.cut.floors, self._planner.standstill.refusals
        plan = Plan(tick.number, previous.epoch, tick, floors, chunks, refusals)
        self._lease.check()
        self._store.put_plan(plan, self._lease.fence)
        self._fault(Fault.AFTER_PLAN)
        planned = world.steady_seconds()
        tasks, receipts = self._carried_out(previous, plan, groups, still)
        self._fault(Fault.DURING_READ)
        read = self._children.read_again(
            tasks, receipts, previous, lambda: pending is None or self._applied(pending)
        )
        if read is None:
            return None
        segments = len(read) - len(groups)
        copies = cast(dict[Group, ChunkReceipt | Failed], dict(zip(groups, read[segments:], strict=True)))
        copies = copies if ahead is None else ahead.with_failed(copies)
        self._describe([*read[:segments], *copies.values()])
        arrived |= self._segments(read[:segments], arrived, planned)
        late_tables = told_by_catalog(self._endpoints, arrived.values())
        gathered = gather(previous, plan, arrived, copies, late_tables)
        gathered = commented(self._endpoints, previous, gathered)
        lost = lost_in(previous, gathered, self._tasks.policies.follows)
        files = self._applier.sink.complete(plan.epoch, gathered)
        self._learn(copies)
        self._event_times |= {shard: one.event_time for shard, one in arrived.items() if one.event_time}
        self._planner.take_in(previous.cut.without(lost), gathered.cut, gathered.refused)
        self._existence = {shard: segment.existence for shard, segment in gathered.segments.items()}
        self._phases = {"plan": planned - began, "read": world.steady_seconds() - planned}
        return manifest(previous, plan, gathered, files, self._arrivals.absent(tick, arrived))

    def _groups(
        self, previous: Manifest, tick: Tick, ahead: Ahead | None
    ) -> Mapping[Group, StagedGroup | None]:
        """The groups of chunks of an epoch that can be read up to a tick."""
        if ahead is None:
            return dict.fromkeys(self._planner.groups(previous.cut, previous.shapes, tick))
        return {group: one for group, one in ahead.readable.items() if group[0].shard in tick.offsets}

    def _carried_out(
        self,
        previous: Manifest,
        plan: Plan,
        groups: Mapping[Group, StagedGroup | None],
        unmoved: Collection[str],
    ) -> tuple[list[Task], list[Receipt]]:
        """The tasks of a plan, segments before groups of chunks, and what they bring."""
        attempt = str(self._lease.fence)
        segments = self._tasks.segments(previous, plan, attempt, unmoved)
        copies = map(self._planner.bounded, self._tasks.copies(previous, plan, groups, attempt))
        tasks: list[Task] = [*segments, *copies]
        return tasks, self._engine.each(run_task, tasks)

    def _segments(
        self, read: Sequence[Receipt], unmoved: Mapping[str, SegmentReceipt], began: float
    ) -> dict[str, SegmentReceipt]:
        """The segments that arrived, of those begun at `began` (steady seconds). Raises the error of one that did not
        where the epoch cannot close without it, and where an order sets aside what it names."""
        found = {one.shard: one for one in read if isinstance(one, SegmentReceipt)}
        failed = [one for one in read if isinstance(one, Failed)]
        for one in failed:
            one.error.shard = one.shard
            if self._sets_aside(one.error):
                raise one.error
        self._unread = [one.error for one in failed]
        self._arrivals.must_do_without(failed, [*found, *unmoved], began)
        return found

    def _learn(self, copies: Mapping[Group, ChunkReceipt | Failed]) -> None:
        """Tell the planner what became of its groups."""
        for group, receipt in copies.items():
            if isinstance(receipt, ChunkReceipt):
                self._planner.learn(receipt)
                for why in sorted({why for chunk, why in receipt.refused if chunk.table in receipt.crowded}):
                    _log.warning("%s", why, extra=about(shard=receipt.shard))
            elif isinstance(receipt.error, TooManyImages):
                _log.warning("%s", receipt.error, extra=about(shard=receipt.shard, error=receipt.error))
                self._planner.shrink(group)
        self._planner.read()

    def _describe(self, receipts: Sequence[Receipt]) -> None:
        """Take up the definitions that tables lack where a shard's log does not name columns any more; raises CutMissed
        then."""
        for receipt in receipts:
            if not (isinstance(receipt, Failed) and isinstance(receipt.error, Undescribed)):
                continue
            shards = self._standing.cut.shards
            state = described(self._endpoints[receipt.shard], shards[receipt.shard])
            if state != shards[receipt.shard]:
                cut = replace(self._standing.cut, shards={**shards, receipt.shard: state})
                # Of shadow tables the catalog is not asked: they are copied when they take their places.
                self._standing = replace(self._standing, cut=cut, shadows=())
                raise CutMissed(f"{receipt.error}; read again with the definitions of the catalog")

    def _apply(self, read: Manifest, phases: dict[str, float], existence: dict[str, Existence]) -> None:
        """Apply a manifest, and tell of it."""
        began = world.steady_seconds()
        commit = self._applier.apply(read)
        self._apply_seconds = phases["apply"] = world.steady_seconds() - began
        times, lag = dict(self._event_times), dict(self._planner.floor_lag)
        self._audience.committed(
            Report(read, commit, phases, times, lag, self._planner.standstill.refusals, existence)
        )

    def _pause(self, coming: Between, began: float, read: Manifest) -> None:
        """Wait out the interval, unless there is still something to copy, or until something comes between."""
        if read.cut.idle or self._waits:
            taken = world.steady_seconds() - began
            coming.wait(self._epoch_seconds - taken, self._standing, self._stop)

    @property
    def _epoch_seconds(self) -> float:
        """Seconds between two epochs that copy nothing; more where it takes long to apply them: fewer keep up then."""
        return max(self._turn_seconds, 2 * self._apply_seconds)

    @property
    def _turn_seconds(self) -> float:
        """Seconds between two turns that copy nothing."""
        return min(self._interval, _THROTTLED_SECONDS) if self._waits else self._interval


def _brings_nothing(read: Manifest, standing: Manifest) -> bool:
    """Whether no shard's log has moved and nothing was copied."""
    return not read.deltas and standing.cut.stood_at(read.cut.tick) and read.cut.copied_as(standing.cut)
