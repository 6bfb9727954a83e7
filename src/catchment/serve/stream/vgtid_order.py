"""Which of two vgtids of a stream comes later. Where a log changed its base name in between, its index says it."""

from catchment.model.position import Order
from catchment.serve.stream.source import Source
from catchment.serve.stream.vgtid import StreamCut
from catchment.source.log_names import order_by_index
from catchment.source.offsets import log_files
from catchment.source.session import connect


def order_of(source: Source, one: StreamCut, other: StreamCut) -> Order:
    """How one cut lies to another, of whose shards it has all. CONCURRENT where one shard stands before and another one
    after it. Raises SourceError where a shard is to be asked and does not answer."""
    here, there = one.cut.positions, other.cut.positions
    found = {_order(source, shard, one, other) for shard in there}
    if found <= {Order.EQUAL, Order.AFTER} and one.cut.epoch > other.cut.epoch:
        return Order.AFTER
    if found <= {Order.EQUAL, Order.AFTER} or found <= {Order.EQUAL, Order.BEFORE}:
        return Order.EQUAL if here == there else Order.BEFORE
    return Order.CONCURRENT


def _order(source: Source, shard: str, one: StreamCut, other: StreamCut) -> Order:
    here, there = one.cut.positions[shard], other.cut.positions[shard]
    files: list[str] = []
    if here.at.base != there.at.base:
        with connect(source.endpoints[shard], here.server) as session:
            files = list(log_files(session))
    return order_by_index(files, here.at, there.at)
