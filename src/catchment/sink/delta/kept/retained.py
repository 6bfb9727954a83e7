"""Which version of a plain table is a kept epoch, as far as the table's log has been thinned out."""

from bisect import bisect_right

import msgspec

from catchment.sink.delta.log.delta_log import DeltaLog


class Carried(msgspec.Struct, frozen=True):
    """A version of a table, and the epoch that it carries."""

    version: int
    epoch: int


def retained(log: DeltaLog, app: str, most: int) -> Carried | None:
    """The last version that carries at most an epoch, of those whose log is there; None where none does.

    A kept version of old has a checkpoint of its own; behind the last of them stand all entries. What is carried never
    falls. Raises SinkError.
    """
    newest = log.newest()
    if newest is None:
        return None
    if (carried := newest.transactions.get(app, 0)) <= most:
        return Carried(newest.version, carried)
    begins = log.checkpoints()
    place = bisect_right(begins, most, key=lambda version: _carried_at(log, app, version))
    found = Carried(begins[place - 1], _carried_at(log, app, begins[place - 1])) if place else Carried(-1, 0)
    while (after := _carried_by(log, app, found.version + 1)) is not None:
        if after and after > most:
            break
        found = Carried(found.version + 1, after or found.epoch)
    return None if found.version < 0 else found


def _carried_at(log: DeltaLog, app: str, version: int) -> int:
    """The epoch of a version that has a checkpoint."""
    told = _carried_by(log, app, version)
    if told:
        return told
    snapshot = log.at(version)
    return 0 if snapshot is None else snapshot.transactions.get(app, 0)


def _carried_by(log: DeltaLog, app: str, version: int) -> int | None:
    """The epoch that a commit says it brings, 0 where it brings none, None where its entry is gone."""
    lines = log.lines_of(version)
    if lines is None:
        return None
    return next((line.txn.version for line in lines if line.txn and line.txn.app_id == app), 0)
