"""Whether a shard's log is still the one in which a position was verified (DESIGN 3, identity).

RESET MASTER begins a log anew under the same file names. A new file has another time of birth, but that time is in
seconds. A log that is reset twice within one second looks the same. So does a log whose position was verified in the
second in which its file was born. What no reset can undo is the server's count of RESET statements. Catchment asks for
it in every epoch before it reads the log. RESET QUERY CACHE and RESET SLAVE are counted too and leave the log alone.
Whoever then reads on reads the event in front of the position again (`Position.event`). That shows a log that was taken
back by other means, and holds on a server that logs GTIDs twice.
"""

from msgspec.structs import replace

from catchment.epoch.chain import must_continue
from catchment.model.epoch_number import second_text
from catchment.model.errors import COPY_AGAIN, CutMissed, Diverged, LogRefused, Purged, WireError
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset, Position, Prepared, Resets, gtids_after
from catchment.model.source import Endpoint
from catchment.source.dump import session_for_dump
from catchment.source.log import read_facts
from catchment.source.log_names import at_next_name
from catchment.source.offsets import ask_resets, log_files
from catchment.source.session import Session, connect
from catchment.source.stretch import Stretch

_FILE_START = 4
# Start = now - uptime, each cut to whole seconds.
_START_JITTER_SECONDS = 1


def must_be_same_log(endpoint: Endpoint, verified: Position) -> Resets:
    """Raise Diverged unless the shard's log is the one of `verified`; how often RESET was said as of now.

    Call it before reading log from there. Raises Purged when that log is gone, ConnectionLost.
    """
    with connect(endpoint, verified.server) as session:
        now = ask_resets(session)
    must_be_unbroken(endpoint, verified, now)
    return now


def same_log(endpoint: Endpoint, verified: Position) -> tuple[Session, Resets]:
    """As `must_be_same_log`, with the session that was asked: the caller reads the log on it, and gives it up."""
    session = session_for_dump(endpoint, verified.server)
    try:
        now = ask_resets(session)
        must_be_unbroken(endpoint, verified, now)
    except BaseException:
        session.abandon()
        raise
    return session, now


def must_be_unbroken(endpoint: Endpoint, verified: Position, now: Resets) -> None:
    """As `must_be_same_log`, where it was asked how often RESET was said; asks more only where that has changed."""
    before = verified.resets
    if before is None or _is_unbroken(before, now):
        return
    must_have_file(endpoint, verified)
    _must_be_unchanged(endpoint, verified, before, now, restarted=_restarted(before, now))


def must_have_file(endpoint: Endpoint, verified: Position) -> list[str]:
    """The names of the shard's log files, oldest first. Raises Purged or Diverged where that of `verified` is no longer
    among them, or that of an XA PREPARE that is open there.

    Waits behind a large commit, so it is not for every epoch.
    """
    with connect(endpoint, verified.server) as session:
        files = [LogOffset(name, 0) for name in log_files(session)]
    if any(file.file == verified.at.file for file in files):
        for prepared in verified.prepared:
            if prepared.committed is None and prepared.start.file not in [file.file for file in files]:
                raise purged_prepare(endpoint.shard, prepared)
        return [file.file for file in files]
    same = [file for file in files if file.base == verified.at.base]
    if same and all(file.number > verified.at.number for file in same):
        raise Purged(
            f"shard {endpoint.shard}: log file {verified.at.file} is no longer on the server, whose oldest "
            f"is {files[0].file}: it was purged; {COPY_AGAIN}"
        )
    if files and not same:
        # RESET MASTER keeps the name.
        raise Purged(
            f"shard {endpoint.shard}: log file {verified.at.file} is no longer on the server, which has no log file of "
            f"the name {verified.at.base} any more: it was restarted with another name for its log (log_bin), and its "
            f"index lists files from {files[0].file} on: those before were purged, or it was given a new index; "
            f"{COPY_AGAIN}; keep log files longer, and the index (log_bin_index) with them"
        )
    raise Diverged(
        f"{_was_reset(endpoint, verified)}: there is no file {verified.at.file} any more; {COPY_AGAIN}"
    )


def must_go_on(endpoint: Endpoint, verified: Position) -> Position:
    """Where the shard's log goes on after a position, for anyone who begins to read there: at the head of the next file
    where the log changed its base name there, else at the position. Raises Diverged or Purged where it does not go on.

    Counts of RESET may be of old, and an end before the position looks as if nothing had come. So the event in front is
    read again.
    """
    must_be_same_log(endpoint, verified)
    files = must_have_file(endpoint, verified)
    if verified.at.offset > DUMP_OFFSET_MAX:
        return verified
    try:
        stretch = read_facts(endpoint, verified.server, verified, verified.at)
    except (WireError, LogRefused) as why:
        raise Diverged(
            f"shard {endpoint.shard}: what ends at {verified.at} cannot be read, where it was read before: the log was "
            f"reset (RESET MASTER), or is damaged ({why}); {COPY_AGAIN}"
        ) from why
    must_continue(endpoint.shard, verified, stretch.files[0].born, None)
    return at_next_name(endpoint, verified, files)


def continued(endpoint: Endpoint, verified: Position) -> Position:
    """Where the log goes on when the file of `verified` was purged and held nothing more. That is the head of the
    oldest file, if its list of GTIDs tells so. Else it is `verified`, and so on MySQL, where groups may have no GTID.

    Raises Purged where the list may say so of a log that held more. Without gtid_strict_mode a server logs the same
    GTIDs again when its log is played into it. It then stands at the last of them as before. RESET MASTER has GTIDs
    begin anew, and a restart hides that it was said.
    """
    if verified.server.mysql or verified.prepared or not str(verified.gtids):
        return verified
    with connect(endpoint, verified.server) as session:
        names = list(log_files(session))
        strict, now = _grows_only(session), ask_resets(session)
    if verified.at.file in names or not names:
        return verified
    oldest = LogOffset(names[0], _FILE_START)
    # In files of another name the number says nothing; the list of GTIDs and the counts of RESET say it all.
    if oldest.base == verified.at.base and oldest.number < verified.at.number:
        return verified
    head = read_facts(endpoint, verified.server, oldest, None, budget=1)
    if verified.server.gtids(head.files[0].gtid_list or "") != verified.gtids:
        return verified
    if not strict:
        raise Purged(
            f"shard {endpoint.shard}: log file {verified.at.file} is no longer on the server, whose oldest is "
            f"{oldest.file} and begins at the same GTIDs, {verified.gtids}; but with gtid_strict_mode=OFF GTIDs may "
            "come back, as when a log is played into its own server, so this does not show that nothing is missing; "
            f"{COPY_AGAIN}; set gtid_strict_mode=ON, or keep log files longer"
        )
    if verified.resets is None or not _is_unbroken(verified.resets, now):
        raise Purged(
            f"shard {endpoint.shard}: log file {verified.at.file} is no longer on the server, whose oldest is "
            f"{oldest.file} and begins at the same GTIDs, {verified.gtids}; but the server was restarted since, or "
            "RESET was said, and a log that was reset counts its GTIDs from the start, so this does not show that "
            f"nothing is missing; {COPY_AGAIN}; keep log files longer"
        )
    return replace(verified, at=oldest, born=head.files[0].born, event=None)


def _is_unbroken(before: Resets, now: Resets) -> bool:
    """Whether neither RESET was said nor the server restarted in between."""
    return now.count == before.count and not _restarted(before, now)


def _restarted(before: Resets, now: Resets) -> bool:
    return abs(now.started - before.started) > _START_JITTER_SECONDS


def _grows_only(session: Session) -> bool:
    """Whether MariaDB refuses to log a GTID that is not larger than the last one of its domain."""
    row = session.row("SELECT @@GLOBAL.gtid_strict_mode")
    return row is not None and int(row[0]) == 1


def purged_prepare(shard: str, prepared: Prepared) -> Purged:
    """The error for an open XA transaction whose rows are gone."""
    return Purged(
        f"shard {shard}: log file {prepared.start.file} is no longer on the server, and the rows of the XA "
        f"transaction {prepared.xid}, prepared at {prepared.start}, stand in it: log files must be kept as long as "
        f"XA transactions that they prepare are open; {COPY_AGAIN}"
    )


def _must_be_unchanged(
    endpoint: Endpoint, verified: Position, before: Resets, now: Resets, *, restarted: bool
) -> None:
    """RESET was said, or a restart hides whether it was. Then the file tells, unless it is too young."""
    head = _read(endpoint, verified, LogOffset(verified.at.file, _FILE_START))
    born = head.files[0].born
    if born != verified.born:
        raise Diverged(
            f"{_was_reset(endpoint, verified)}: its file {verified.at.file} began at "
            f"{second_text(born)}, the one that was read at {second_text(verified.born)}; {COPY_AGAIN}"
        )
    # A log that was reset after we asked was born then or later.
    if born < before.asked or (restarted and _is_there(endpoint, verified)):
        return
    raise Diverged(
        f"{_was_reset(endpoint, verified)}, or may have been: {now.count} RESET statements were counted "
        f"since the server's start, {before.count} before, and the file is as young as the position in it; "
        f"{COPY_AGAIN}"
    )


def _is_there(endpoint: Endpoint, verified: Position) -> bool:
    """Whether the file still has what ended at the position. That place may be inside of a group or an event in another
    log, so that it cannot be read there. Raises Diverged for another event there."""
    try:
        return _has_ended(endpoint, verified)
    except (CutMissed, LogRefused, WireError):
        return False


def _has_ended(endpoint: Endpoint, verified: Position) -> bool:
    """Whether the event ends at the position, where it is known, else a group with the GTIDs of the position."""
    if verified.event is not None:
        return read_facts(endpoint, verified.server, verified, verified.at).reached_stop
    at_head = verified.at.offset == _FILE_START
    stretch = _read(endpoint, verified, None if at_head else verified.at)
    found = verified.server.gtids(stretch.files[0].gtid_list or "")
    if not at_head:
        found = gtids_after(found, stretch.newest, stretch.named)
    return (at_head or stretch.reached_stop) and bool(str(found)) and found == verified.gtids


def _read(endpoint: Endpoint, verified: Position, stop: LogOffset | None) -> Stretch:
    """The log from the start of the position's file, for its facts."""
    start = LogOffset(verified.at.file, _FILE_START)
    return read_facts(endpoint, verified.server, start, stop)


def _was_reset(endpoint: Endpoint, verified: Position) -> str:
    return f"shard {endpoint.shard}: the log that was read up to {verified.at} was reset (RESET MASTER)"
