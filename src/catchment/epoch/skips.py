"""Orders that set aside what stands at a place of a shard's log: whether they are carried out. Pure."""

from catchment.model.epoch import Manifest
from catchment.model.order import Answer
from catchment.model.position import LogOffset, Order, relation


def skip_answer(standing: Manifest, shard: str, at: LogOffset, now_us: int) -> Answer | None:
    """What became of such an order at an epoch; None while the log has not been read to the place."""
    state = standing.cut.shards.get(shard)
    if state is None:
        return Answer(False, f"the feed has no shard {shard}", now_us)
    stale = [str(one.table) for one in standing.stale if one.places.get(shard) == at]
    if stale:
        return Answer(True, f"it is set aside; stale since then: {', '.join(stale)}", now_us)
    lies = relation(at, state.position.at)
    if lies is Order.CONCURRENT:
        return Answer(False, f"shard {shard} has no such log: it is read to {state.position.at}", now_us)
    if lies is Order.BEFORE:
        return Answer(False, f"nothing there stops the feed: it is read to {state.position.at}", now_us)
    return None


def stopped_elsewhere(error: str, now_us: int) -> Answer:
    """The answer to an order for another place than the one at which the feed was stopped."""
    return Answer(False, f"nothing is set aside, since that is not what stops the feed: {error}", now_us)
