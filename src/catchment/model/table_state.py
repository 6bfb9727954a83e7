"""Where a table of a feed stands, and what may happen to it: every legal move."""

from collections.abc import Collection
from enum import Enum

from catchment.model.epoch import Manifest
from catchment.model.shard import Copy
from catchment.model.table import TableId


class TableState(Enum):
    """Where a table stands; derived from a manifest."""

    WAITING = "waiting"  # not carried yet
    COPYING = "copying"  # exact on copied keys
    PAUSED = "paused"  # the same; no chunk is read
    FOLLOWING = "following"  # exact
    STALE = "stale"  # readers see an earlier epoch; nothing is read
    RENEWING = "renewing"  # the same; a new copy grows
    HALTED = "halted"  # the same; no chunk is read
    LEFT = "left"  # readers see its last epoch


class Cause(Enum):
    """What moves a table."""

    ENTERS = "enters"  # between two epochs, with no row copied
    COPIED = "copied"  # the last chunk is delivered
    DDL = "ddl"  # its effect on the rows is in no log
    LEAVES = "leaves"  # --leave, or dropped on every shard
    PAUSE = "pause"  # these are orders
    RESUME = "resume"
    RESTART = "restart"
    START = "start"


_OUT = {Cause.DDL: TableState.STALE, Cause.RESTART: TableState.STALE, Cause.LEAVES: TableState.LEFT}
MOVES: dict[TableState, dict[Cause, TableState]] = {
    TableState.WAITING: {Cause.ENTERS: TableState.COPYING},
    TableState.COPYING: {Cause.COPIED: TableState.FOLLOWING, Cause.PAUSE: TableState.PAUSED, **_OUT},
    TableState.PAUSED: {Cause.RESUME: TableState.COPYING, Cause.START: TableState.COPYING, **_OUT},
    TableState.FOLLOWING: {**_OUT},
    TableState.STALE: {
        Cause.ENTERS: TableState.RENEWING,
        Cause.START: TableState.STALE,
        Cause.RESTART: TableState.STALE,
        Cause.LEAVES: TableState.LEFT,
    },
    TableState.RENEWING: {Cause.COPIED: TableState.FOLLOWING, Cause.PAUSE: TableState.HALTED, **_OUT},
    TableState.HALTED: {Cause.RESUME: TableState.RENEWING, Cause.START: TableState.RENEWING, **_OUT},
    TableState.LEFT: {Cause.ENTERS: TableState.COPYING},  # taken again, or made again behind a DROP
}


def state_of(manifest: Manifest, table: TableId, shard: str = "") -> TableState:
    """Where a table stands, on all shards or on one."""
    copies = [
        copy
        for name, state in manifest.cut.shards.items()
        if not shard or name == shard
        for copy in state.copies
        if copy.table == table
    ]
    return state_with(manifest, table, copies)


def state_with(manifest: Manifest, table: TableId, copies: Collection[Copy]) -> TableState:
    """Where a table stands that has these copies in a manifest."""
    stale = manifest.stale_since(table) is not None
    if not copies:
        left = any(one.table == table and one.epoch for one in manifest.outside)
        return TableState.STALE if stale else TableState.LEFT if left else TableState.WAITING
    unfinished = [copy for copy in copies if not copy.done]
    if unfinished and all(copy.paused for copy in unfinished):
        return TableState.HALTED if stale else TableState.PAUSED
    if stale:
        return TableState.RENEWING
    return TableState.COPYING if unfinished else TableState.FOLLOWING
