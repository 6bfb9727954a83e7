"""What the first cut of any server needs, and that of MySQL."""

from collections.abc import Sequence

from catchment import world
from catchment.epoch.xa import prepared_after
from catchment.model.errors import CutMissed, NothingVisible, Unsupported
from catchment.model.position import (
    DUMP_OFFSET_MAX,
    LogOffset,
    Position,
    Prepared,
    Server,
    XaGroup,
    Xid,
    gtids_after,
    reaches,
)
from catchment.model.source import Endpoint
from catchment.source.log import read_facts
from catchment.source.offsets import open_xa, snapshot_offset
from catchment.source.pending import must_know_pending
from catchment.source.session import Session
from catchment.source.stretch import Stretch

XA_WAIT_SECONDS = 10.0
SEAL_ATTEMPTS = 200
_PAUSE_SECONDS = 0.05
_NAMED_MAX = 5
_FILE_START = 4


def mysql_position(session: Session) -> Position:
    """A position of MySQL that is proven sealed, reached from the start of its file. `session`: one for snapshots.

    XA RECOVER is empty before and after, as on MariaDB. Raises NothingVisible when commits hang, and CutMissed.
    """
    endpoint, server = session.endpoint, session.server
    end: LogOffset | None = None
    for _ in range(SEAL_ATTEMPTS):
        if end is None:
            await_no_xa(session)
            end = snapshot_offset(session)
            pending = must_know_pending(session)
        now = must_know_pending(session)
        # XA prepared before the end was read, perhaps; or no dump can start there, until a new file begins.
        if pending.xids or now.xids or end.offset > DUMP_OFFSET_MAX:
            end = None
        elif pending.over(now):
            return _at(endpoint, server, end)
        world.sleep(_PAUSE_SECONDS)
    raise NothingVisible(
        f"shard {endpoint.shard}: no position of its log could be proven visible; does a commit hang "
        "(SHOW PROCESSLIST)?"
    )


def _at(endpoint: Endpoint, server: Server, end: LogOffset) -> Position:
    """The position at an offset, with the GTIDs of the whole log up to it."""
    log = scan(endpoint, server, LogOffset(end.file, _FILE_START), end)
    before = server.gtids(log.files[0].gtid_list or "")
    gtids = gtids_after(before, log.newest, log.named)
    prepared = known_prepared(endpoint, end, log.xa)
    return Position(end, log.files[0].born, server, gtids, prepared=prepared, event=log.last_event)


def scan(endpoint: Endpoint, server: Server, start: LogOffset, stop: LogOffset) -> Stretch:
    """Read the log between two offsets, for its facts; raises CutMissed when `stop` is no place in it."""
    stretch = read_facts(endpoint, server, start, stop)
    if not stretch.reached_stop:
        raise CutMissed(f"shard {endpoint.shard}: the log ends at {stretch.at}, before the snapshot {stop}")
    return stretch


def known_prepared(endpoint: Endpoint, at: LogOffset, groups: Sequence[XaGroup]) -> tuple[Prepared, ...]:
    """The XA transactions that are open at `at`, given the XA groups of a stretch of log with `at` inside it.

    Raises CutMissed when one of them was prepared before that log: a later cut will not see it.
    """
    met: tuple[Prepared, ...] = ()
    open_there = met
    for group in groups:
        before = reaches(at, group.end)
        try:
            met = prepared_after(endpoint.shard, met, [group], at)
        except Unsupported as error:
            if not before:
                raise CutMissed(str(error)) from error
        if before:
            open_there = met
    return open_there


def await_no_xa(session: Session) -> None:
    """Wait until no XA transaction is prepared and open; raises Unsupported when one stays."""
    deadline = world.steady_seconds() + XA_WAIT_SECONDS
    while xids := open_xa(session):
        if world.steady_seconds() > deadline:
            raise Unsupported(
                f"shard {session.endpoint.shard}: {len(xids)} XA transactions are prepared and open "
                f"({', '.join(map(_name, xids[:_NAMED_MAX]))}); their rows are in no log that a new feed reads: "
                f"end each one on that shard, with XA COMMIT {xids[0]} or XA ROLLBACK {xids[0]}, then "
                "start the feed again"
            )
        world.sleep(0.1)


def _name(xid: Xid) -> str:
    return f"{xid} {xid.gtrid.decode(errors='replace')!r}"
