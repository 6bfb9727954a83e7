"""Which sink a feed has: the one place that knows them all."""

from collections.abc import Callable

from catchment.config import Feed
from catchment.sink.delta.fold.lake import DeltaLake
from catchment.sink.delta.fold.turns import order_for
from catchment.sink.port import Sink


def sink_of(feed: Feed, after_table: Callable[[], None] = lambda: None) -> Sink:
    """The sink that the feed file names. `after_table`: called after each table's commit of an epoch."""
    return DeltaLake(order_for(feed, fence=0), after_table)
