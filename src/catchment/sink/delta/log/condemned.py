"""Before files that no commit names are deleted, the log says so: no attempt may commit them from then on.

By the age of a file alone nobody knows that it is of an attempt that has lost. A process may be frozen for hours
between writing a file and committing it, and the clocks of hosts and storages differ. Who commits a file on a later
version than the one on which it was begun compares what both say (`condemned`), and gives up where that differs. Who
commits on the version that was read first, or not at all, needs no more: the cleaner's entry stands in its place.
"""

from collections.abc import Callable

from catchment import world
from catchment.model.errors import SinkConflict
from catchment.sink.delta.log.actions import Txn, commit_info
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot

_APP = "catchment/condemned"
_ATTEMPTS = 50


def condemned(on: Snapshot) -> int:
    """How often files were condemned up to a version."""
    return on.transactions.get(_APP, 0)


def condemn(log: DeltaLog, on: Snapshot, may_follow: Callable[[Snapshot], bool]) -> Snapshot | None:
    """Condemn all files that no version up to the one that is returned names; None where no entry of ours `may_follow`
    the newest version. Raises SinkConflict, SinkError."""
    for _ in range(_ATTEMPTS):
        if not may_follow(on):
            return None
        now_ms = world.now_us() // 1000
        carries = Txn(_APP, condemned(on) + 1, now_ms)
        after = log.put(on, commit_info("VACUUM START", now_ms), [carries])
        if after is not None:
            return after
        newest = log.newest()
        assert newest is not None, "another commit came first"
        on = newest
    raise SinkConflict(f"{log.directory}: other writers won {_ATTEMPTS} commits in a row; end them")
