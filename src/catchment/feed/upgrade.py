"""`catchment upgrade`: what an earlier version has left of a feed's lake is brought to this version's layout.

Nothing is copied from the shards. Whatever ends it, the same command goes on.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from catchment.config import Feed
from catchment.model.table import TableId
from catchment.sink.registry.sinks import sink_of
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import hold
from catchment.state.resume import must_have_lake
from catchment.state.store import Store


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The tables that were of an earlier layout, and the rows of changes that were settled in each (`schema.name`)."""

    tables: tuple[TableId, ...]
    changes: Mapping[str, int]


def upgrade(feed: Feed, *, write: bool = True, fault: Injector = no_fault) -> Upgraded:
    """Upgrade every table of a feed's newest epoch, and settle them; without `write` only say which they are.

    Raises LeaseHeld while the feed is run, and SinkError where a table cannot be upgraded: those before it are, then.
    """
    sink = sink_of(feed)
    with (
        closing(Store.open(feed.state.get_secret_value(), feed.name)) as store,
        hold(store, fence_above=sink.fence()) as lease,
    ):
        row = sink.newest()
        must_have_lake(feed, store, row)
        if row is None:
            return Upgraded((), {})
        older = sink.older(row)
        if not older or not write:
            return Upgraded(older, {})
        for table in older:
            sink.upgrade(table)
            fault(Fault.DURING_UPGRADE)
        sink.take_over(row.manifest.followed, lease.fence)
        return Upgraded(older, sink.settle(lease.fence).changes)
