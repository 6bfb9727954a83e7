"""Proving a better floor for a group of chunks, before its first SELECT (DESIGN 3 and 4).

The plan's floor was proven by the epoch before, so a group would read that epoch's log once more. A moment
after the cut a new snapshot usually proves the cut itself.
"""

from catchment import world
from catchment.epoch.chain import went_backwards
from catchment.epoch.seal import FILE_START, newest_sealed
from catchment.model.errors import SourceError, WireError
from catchment.model.position import LogOffset, Position, Server, reaches
from catchment.model.source import Endpoint
from catchment.source.log import read_facts
from catchment.source.offsets import log_files, open_xa, snapshot_offset, snapshot_session
from catchment.source.pending import ask_pending
from catchment.source.session import Session, connect
from catchment.source.stretch import Stretch

# Less log than this is read twice more cheaply than proven unnecessary.
WORTH_BYTES = 256 << 10
SECONDS_MAX = 0.3
PAUSE_SECONDS = 0.02


def proven_floor(
    endpoint: Endpoint, server: Server, floor: LogOffset, cut: LogOffset, worth: int = WORTH_BYTES
) -> LogOffset:
    """The newest position up to the cut that is proven sealed now; the plan's floor when nothing more is. `worth`: of
    how much log between them it is tried.

    Where nothing is written behind the cut, the log in front of it is read, and its last group alone is not proven."""
    if floor.file == cut.file and cut.offset - floor.offset < worth:
        return floor
    deadline = world.steady_seconds() + SECONDS_MAX
    with snapshot_session(endpoint, server) as session:
        if server.mysql:
            return cut if _becomes_visible(session, deadline) else floor
        nearest = _by_what_follows(session, endpoint, server, floor, cut, deadline)
        if nearest == floor:
            nearest = _at_rest(session, endpoint, server, floor, cut)
        # An XA COMMIT becomes visible outside of the order of the log: which ones lie before the cut is known to the
        # segment's task alone.
        return floor if nearest == floor or open_xa(session) else nearest


def _by_what_follows(
    session: Session, endpoint: Endpoint, server: Server, floor: LogOffset, cut: LogOffset, deadline: float
) -> LogOffset:
    """The cut, where a snapshot beyond it proves it before the deadline; else the floor."""
    while world.steady_seconds() < deadline:
        snapshot = snapshot_offset(session)
        if snapshot.file != cut.file or went_backwards(cut, snapshot):
            return floor
        sealed = _sealed(endpoint, server, floor, cut, snapshot) if snapshot != cut else None
        if sealed is not None and reaches(sealed, cut):
            return cut
        world.sleep(PAUSE_SECONDS)
    return floor


def _at_rest(
    session: Session, endpoint: Endpoint, server: Server, floor: LogOffset, cut: LogOffset
) -> LogOffset:
    """What is sealed where nothing was written behind the cut: the log in front of its last group.

    In the file of the floor alone a snapshot is proof. So a checkpoint that names the cut's file comes first."""
    for _ in range(2):
        if snapshot_offset(session) != cut:
            break
        sealed = _sealed(endpoint, server, floor, floor, cut)
        if sealed is None or sealed.file == floor.file:
            return sealed or floor
        floor = sealed
    return floor


def floor_behind_purge(
    endpoint: Endpoint, server: Server, floor: LogOffset, cut: LogOffset
) -> LogOffset | None:
    """The head of the oldest log file, where that of the floor was purged; None where it is no floor.

    MariaDB purges no file with a commit that a recovery would need, so none with one that its engine lacks. That says
    nothing of an XA COMMIT: while XA RECOVER lists any, nothing is known.
    """
    if server.mysql:
        return None
    with connect(endpoint, server) as session:
        oldest = LogOffset(next(iter(log_files(session)), floor.file), FILE_START)
        if oldest.base != floor.base or oldest.number <= floor.number or not reaches(cut, oldest):
            return None
        return None if open_xa(session) else oldest


def sealed_behind(
    endpoint: Endpoint,
    start: Position,
    known: LogOffset | None,
    stretch: Stretch,
    at: LogOffset,
    *,
    shown: bool = True,
    hidden: LogOffset | None = None,
) -> LogOffset | None:
    """The newest position proven sealed when the log has been read from `start` to `at`, never older than `known`.

    `shown`: snapshots have shown both ends of the stretch. `hidden`: where the first XA COMMIT begins that may not be
    visible (epoch/xa.py). On MariaDB they prove as epoch/seal.py says; MySQL itself is asked. Raises SourceError.
    """
    if start.server.mysql:
        return sealed_by_mysql(endpoint, start.server, known, at)
    xa_over = hidden is None and bool(stretch.xa) and stretch.xa[-1].committed
    last = stretch.last if shown else None
    sealed = newest_sealed(known, start.at, at, last, stretch.checkpoints, xa_over=xa_over, hidden=hidden)
    in_new_file = sealed is not None and sealed.file == at.file and (known is None or known.file != at.file)
    if last is None or not in_new_file:
        return sealed
    # On a server at rest no other snapshot will come: this one is asked for after the checkpoint event was read.
    with snapshot_session(endpoint, start.server) as session:
        again = snapshot_offset(session)
    if again != at:
        return sealed
    return newest_sealed(sealed, None, again, last, (), xa_over=xa_over, hidden=hidden)


def sealed_by_mysql(
    endpoint: Endpoint, server: Server, known: LogOffset | None, at: LogOffset
) -> LogOffset | None:
    """`at` when all that MySQL has logged up to now becomes visible soon, else `known`. Raises SourceError."""
    if known == at:
        return known
    with snapshot_session(endpoint, server) as session:
        visible = _becomes_visible(session, world.steady_seconds() + SECONDS_MAX)
    return at if visible else known


def _becomes_visible(session: Session, deadline: float) -> bool:
    """Whether all that MySQL has logged up to now is visible before the deadline."""
    pending = now = ask_pending(session)
    while pending is not None and now is not None and world.steady_seconds() < deadline:
        now = ask_pending(session)
        if now is not None and pending.over(now):
            return True
        world.sleep(PAUSE_SECONDS)
    return False


def _sealed(
    endpoint: Endpoint, server: Server, floor: LogOffset, start: LogOffset, snapshot: LogOffset
) -> LogOffset | None:
    """What a snapshot proves, by the log between `start`, the cut or the floor, and it; None when that cannot be read.

    The cut is still on credit: where it is torn, a dump may begin inside an event and be refused or be
    garbage. The segment's task tells what such a cut is.
    """
    try:
        stretch = read_facts(endpoint, server, start, snapshot)
    except (SourceError, WireError):
        return None
    if not stretch.reached_stop:
        return None
    # The floor was proven before this snapshot was asked for.
    return newest_sealed(floor, None, snapshot, stretch.last, stretch.checkpoints)
