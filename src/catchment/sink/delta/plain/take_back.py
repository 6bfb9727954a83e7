"""Bring a plain table back to an earlier epoch: the lake's other records were put back from a copy."""

from typing import Any

from catchment import world
from catchment.model.errors import SinkConflict, SinkRestored
from catchment.sink.delta.layout import generation_app
from catchment.sink.delta.log.actions import Action, Txn, commit_info
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.complete import is_complete

_ATTEMPTS = 50


def carried_by(log: DeltaLog, app: str) -> int:
    """The epoch that a plain table is, 0 before the first. Raises SinkError."""
    on = log.newest()
    return 0 if on is None else on.transactions.get(app, 0)


def must_reach_back(log: DeltaLog, app: str, epoch: int) -> Snapshot:
    """The last version that carried at most an epoch. Raises SinkRestored where it is not there any more, SinkError."""
    then = log.carrying(app, epoch)
    if then is None or not is_complete(log.directory, then):
        raise SinkRestored(
            f"{log.directory} is newer than the epochs that the lake records, and its log or files do not reach "
            "back to them; put back the newest copy of the lake's directory _catchment, or remove both"
        )
    return then


def take_back(log: DeltaLog, app: str, epoch: int) -> None:
    """Make the newest version, in one commit, what the last one was that carried at most an epoch. Nothing is done
    where that is no later one.

    Raises SinkRestored where the log does not reach back to it, SinkConflict, SinkError.
    """
    for _ in range(_ATTEMPTS):
        on = log.newest()
        if on is None or on.transactions.get(app, 0) <= epoch:
            return
        then = must_reach_back(log, app, epoch)
        carries = [
            Txn(name, then.transactions.get(name, 0), _now_ms()) for name in (app, generation_app(app))
        ]
        if log.put(on, restore_info(then), [*carries, *restored(on, then)]) is not None:
            return
    raise SinkConflict(f"{log.directory}: other writers won {_ATTEMPTS} commits in a row; end them")


def restore_info(then: Snapshot) -> dict[str, Any]:
    """What the commit says that `restored` is for."""
    return {**commit_info("RESTORE", _now_ms()), "operationParameters": {"version": str(then.version)}}


def restored(on: Snapshot, then: Snapshot) -> list[Action]:
    """What makes an older version of the newest one."""
    found: list[Action] = []
    for path, file in on.files.items():
        if then.files.get(path) != file:
            found.append(file.removed(_now_ms(), data_change=True))
    found += [file.add for path, file in then.files.items() if on.files.get(path) != file]
    if then.protocol != on.protocol:
        found.append(then.protocol)
    if then.metadata != on.metadata:
        found.append(then.metadata)
    return found


def _now_ms() -> int:
    return world.now_us() // 1000
