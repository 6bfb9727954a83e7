"""A table's log counts the erasures of its rows, so that no checkpoint brings back a bound of an erased row.

A writer of a checkpoint has read its version earlier, and an erasure may take bounds out of all entries and checkpoints
in between. The erasure counts itself in the log first, so the writer finds the count after it has put the checkpoint.
"""

from catchment import world
from catchment.sink.delta.log.actions import Txn, commit_info
from catchment.sink.delta.log.commit import commit, fenced, gone
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.fence import must_lead

_APP = "catchment/erased"


def erasures(on: Snapshot) -> int:
    """How many erasures the log counts up to a version."""
    return on.transactions.get(_APP, 0)


def counted(on: Snapshot) -> Txn:
    """What the commit of one more erasure carries, on top of a version."""
    return Txn(_APP, erasures(on) + 1, world.now_us() // 1000)


def count_erasure(log: DeltaLog, feed: str, fence: int, name: str) -> None:
    """Count one more erasure by an entry of its own.

    Raises LeaseLost after a later runner, SinkConflict when others won every attempt, SinkError when the lake refuses.
    """

    def attempt(on: Snapshot) -> Snapshot | None:
        must_lead(on, feed, fence, name)
        info = commit_info("ERASE", world.now_us() // 1000)
        return log.put(on, info, [fenced(feed, fence), counted(on)])

    commit(log, attempt, lambda: gone(name, log.directory))
