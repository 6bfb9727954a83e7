"""Take out of a tail what its plain table has by now."""

from catchment import world
from catchment.model.errors import SinkConflict
from catchment.sink.delta.layout import fence_app, settled_app
from catchment.sink.delta.log.actions import Action, Txn, commit_info
from catchment.sink.delta.log.commit import gone
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.tail.dated import with_epochs

_ATTEMPTS = 50


def trim(order: SettleOrder, settled: int) -> int:
    """Take the files of all epochs up to `settled` out of the tail, in one commit that says so; how many they were.
    The files stay until the cleaner comes: older epochs are read from them.

    Raises LeaseLost, SinkConflict, SinkError.
    """
    name, log = str(order.shape.table), order.tail
    for _ in range(_ATTEMPTS):
        tail = log.newest()
        if tail is None:
            gone(name, log.directory)
        must_lead(tail, order.feed, order.fence, name)
        done = [file for epoch, file in with_epochs(log.directory, tail) if epoch <= settled]
        if not done:
            return 0
        now_ms = world.now_us() // 1000
        actions: list[Action] = [file.removed(now_ms, data_change=True) for file in done]
        actions.append(Txn(fence_app(order.feed), order.fence, now_ms))
        actions.append(Txn(settled_app(order.feed, order.shape.table), settled, now_ms))
        info = commit_info("DELETE", now_ms)
        if log.put(tail, info, actions) is not None:
            return len(done)
    raise SinkConflict(f"{name}: other writers won {_ATTEMPTS} commits in a row at {log.directory}; end them")
