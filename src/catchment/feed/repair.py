"""`catchment verify --repair`: chunks in which keys differ are mended, by the run, or here where there is none.

Only who holds the lease writes to the lake. So a repair is an order: it is kept in the state store until it is
answered, and outlives whoever gave it.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.engine.port import Engine
from catchment.feed.applier import Applier
from catchment.feed.checks import Checks
from catchment.feed.commands import NOBODY, Commands
from catchment.feed.dump import order
from catchment.feed.edition import Edition
from catchment.feed.mender import Mender
from catchment.feed.take_up import Ports, take_up
from catchment.feed.throttle import Throttle
from catchment.feed.verdict import Verdict
from catchment.model.chunk import Chunk
from catchment.model.epoch import Manifest
from catchment.model.errors import LeaseHeld
from catchment.model.order import Action, Kept, Mended, Order
from catchment.state import orders
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import hold, holder
from catchment.state.store import Store

_LOOK_SECONDS = 0.2


def order_to_mend(chunks: tuple[Chunk, ...]) -> Order:
    """An order of chunks that follow one another, all of one table and shard."""
    of = chunks[0].of
    return replace(order(Action.MEND, of.table, of.shard), chunks=chunks)


@dataclass(frozen=True)
class Repairer:
    """Has chunks mended. `engine`, `ports`: for a feed that nobody runs. `stop` ends the wait; the orders stay.
    `observe`: hears how many orders of how many are answered."""

    feed: Feed
    engine: Engine
    ports: Ports
    stop: world.Event
    observe: Callable[[int, int], None] = lambda answered, of: None
    fault: Injector = no_fault

    def mend(self, verdict: Verdict) -> "Repair":
        """Have what differs compared again and mended, then once more compared: what differs still is `left`.

        Raises what ends a run, where this process is it.
        """
        asked = [order_to_mend(chunks) for chunks in verdict.differing]
        asked += [order(Action.MEND, table) for table in verdict.strays]
        with closing(Store.open(self.feed.state.get_secret_value(), self.feed.name, create=False)) as store:
            numbers = [orders.give(store, one) for one in asked]
            first = self._answered(store, numbers)
            mends = {kept.number for kept in first if kept.answer is not None and kept.answer.mended.total}
            mended = [one for number, one in zip(numbers, asked, strict=True) if number in mends]
            if self.stop.is_set():
                return Repair(tuple(first), ())
            again = self._answered(store, [orders.give(store, one) for one in mended])
        return Repair(tuple(first), tuple(again))

    def _answered(self, store: Store, numbers: Sequence[int]) -> list[Kept]:
        """The orders of these numbers when all have an answer, or when told to stop."""
        while True:
            open_ = {kept.number for kept in orders.open_orders(store)} & set(numbers)
            self.observe(len(numbers) - len(open_), len(numbers))
            if not open_ or self.stop.is_set():
                found = (orders.find(store, number) for number in numbers)
                return [kept for kept in found if kept is not None]
            owner = holder(store)
            lives = owner is not None and not owner.is_dead()
            if lives or not self._carried_out_here(store):
                self.stop.wait(_LOOK_SECONDS)

    def _carried_out_here(self, store: Store) -> bool:
        """Be the runner until no order to mend is open; False when somebody else is it."""
        sink = self.ports.sink(self.feed, lambda: self.fault(Fault.BETWEEN_APPLIES))
        try:
            with hold(store, fence_above=sink.fence()) as lease:
                self._run(Applier(store, lease, sink, self.stop, self.fault))
        except LeaseHeld:
            return False
        return True

    def _run(self, applier: Applier) -> None:
        """Mend, epoch after epoch, from where the feed stands. The log is not read on."""
        feed = self.feed
        standing = take_up(Edition(feed), applier, lambda doing: None, self.ports).standing
        commands = Commands(applier.store, applier.lease.fence, self.stop, NOBODY)
        throttle = Throttle(Checks(feed).of, feed.copying.throttle)
        with closing(throttle):
            self._mend(applier, commands, Mender.of(feed, self.engine, applier, commands, throttle), standing)

    def _mend(self, applier: Applier, commands: Commands, mender: Mender, standing: Manifest) -> None:
        store, fence = applier.store, applier.lease.fence
        commands.look()
        while commands.mends and not self.stop.is_set():
            after = mender.next(standing)
            if after is None:
                self.stop.wait(_LOOK_SECONDS)
                continue
            applier.lease.check()
            store.put_manifest(after, fence)
            self.fault(Fault.AFTER_MANIFEST)
            standing = after
            applier.apply(after)
            commands.answer(after)


@dataclass(frozen=True)
class Repair:
    """What became of a repair. `first`: the orders to mend; `again`: those that compared what was mended once more."""

    first: tuple[Kept, ...]
    again: tuple[Kept, ...]

    @property
    def mended(self) -> dict[str, Mended]:
        """What was mended, by table and shard."""
        found: dict[str, Mended] = {}
        for kept in self.first:
            if kept.answer is not None and kept.answer.mended.total:
                of = f"{kept.order.table} on {kept.order.shard or 'no shard of the feed'}"
                found[of] = found.get(of, Mended()) + kept.answer.mended
        return dict(sorted(found.items()))

    @property
    def left(self) -> tuple[str, ...]:
        """What is not mended, and why."""
        found = []
        for kept in (*self.first, *self.again):
            if kept.answer is None:
                found.append(f"{kept.order}: not answered yet; the next run obeys order {kept.number}")
            elif not kept.answer.done:
                found.append(f"{kept.order}: {kept.answer.said}")
        for kept in self.again:
            if kept.answer is not None and kept.answer.mended.total:
                found.append(
                    f"{kept.order}: rows differ again after they were written; does another program write to the lake, "
                    "or hold its files epochs of the future?"
                )
        return tuple(found)
