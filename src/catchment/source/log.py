"""Reads a stretch of a shard's log: a dump on a session of its own, fed to the decoder.

It takes server id 0 and the non-blocking flag. Such a dump is not killed by another replica and kills none, and it ends
with an end-of-log packet (MariaDB: COM_BINLOG_DUMP). One that a person or a shutdown kills ends with that, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from catchment.model.errors import (
    NEW_FEED,
    ConnectionLost,
    CutMissed,
    Diverged,
    Purged,
    ServerSaid,
    SourceError,
)
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset
from catchment.model.source import Endpoint
from catchment.source.session import Session, mapped
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.packets.statements import dump_packet

_MARIADB_CAPABILITY_GTID = 4
_READ_BYTES = 1 << 20
_ER_MASTER_FATAL = 1236
_ACCESS = {1045, 1227}
_BROKEN_OFF = "truncated in the middle of event"


@dataclass(frozen=True)
class Dumped:
    """How a dump went. `broken_off`: the server says that a file ends inside an event; a crash left it so, and no dump
    passes its end."""

    read_bytes: int
    broken_off: bool


def dump(
    session: Session,
    start: LogOffset,
    decoder: LogDecoder,
    drain: Callable[[LogDecoder], bool],
) -> Dumped:
    """Feed the log from `start` to `decoder` until it has reached its stop or the log's end.

    `drain` is called whenever the decoder may hold a batch; when it returns True,
    no more is read. The session is abandoned: a dump is its last command. Raises Purged, Diverged, ConnectionLost,
    CutMissed, CorruptLog.
    """
    endpoint = session.endpoint
    if start.offset > DUMP_OFFSET_MAX:
        raise CutMissed(
            f"shard {endpoint.shard}: no dump can start at {start}, beyond 4 GiB; the server begins a new file when a "
            "transaction has passed that"
        )
    announce_checksums(session)
    try:
        return _dumped(session, start, decoder, drain)
    finally:
        session.abandon()


def _dumped(
    session: Session, start: LogOffset, decoder: LogDecoder, drain: Callable[[LogDecoder], bool]
) -> Dumped:
    endpoint, sock = session.endpoint, session.sock
    with mapped(endpoint):
        sock.sendall(dump_packet(start))
    buffer = bytearray(_READ_BYTES)
    view = memoryview(buffer)
    total = 0
    while not (decoder.ended or decoder.reached_stop):
        # The socket's errors are the shard's. Those of `drain`, which may write to a disk, are not.
        with mapped(endpoint):
            size = sock.recv_into(buffer)
        if size == 0:
            raise ConnectionLost(f"shard {endpoint.shard}: the log dump broke off at {decoder.at}")
        total += size
        try:
            decoder.feed(view[:size])
        except ServerSaid as error:
            if error.code == _ER_MASTER_FATAL and _BROKEN_OFF in error.message:
                return Dumped(total, broken_off=True)
            raise refusal(error, endpoint, start) from error
        except Diverged as error:
            raise Diverged(
                f"shard {endpoint.shard}: {error}: the log is another one; start {NEW_FEED} to copy again"
            ) from error
        if drain(decoder):
            break
    return Dumped(total, broken_off=False)


def announce_checksums(session: Session) -> bool:
    """Tell the server that the log may have what its events have in it; whether new ones have checksums."""
    session.run(
        "SET @master_binlog_checksum = @@global.binlog_checksum,"
        " @source_binlog_checksum = @@global.binlog_checksum,"
        f" @mariadb_slave_capability = {_MARIADB_CAPABILITY_GTID}"
    )
    row = session.row("SELECT @source_binlog_checksum")
    return row is not None and str(row[0]) != "NONE"


def refusal(error: ServerSaid, endpoint: Endpoint, start: LogOffset | str) -> SourceError:
    """What the server's refusal to send the log means (error 1236 has one number for many reasons)."""
    text = error.message
    if error.code in _ACCESS:
        return SourceError(
            f"shard {endpoint.shard} at {endpoint.host}:{endpoint.port}: user {endpoint.user!r} may not "
            f"read the log ({error.code}: {text}); GRANT REPLICATION SLAVE ON *.* to it"
        )
    if error.code != _ER_MASTER_FATAL:
        return ServerSaid(error.code, f"{text} (shard {endpoint.shard}, log from {start})")
    if "Could not find first log" in text:
        name = start.file if isinstance(start, LogOffset) else "asked for"
        return Purged(
            f"shard {endpoint.shard}: log file {name} is no longer on the server (from {start}); "
            f"it was purged or the log was reset: copy the tables again with {NEW_FEED}"
        )
    if "purged" in text:
        return Purged(
            f"shard {endpoint.shard}: log that comes next is no longer on the server (from {start}): {text}; copy the "
            f"tables again with {NEW_FEED}"
        )
    if "GTID_MODE" in text.upper():
        return SourceError(f"shard {endpoint.shard}: no log from {start}: {text}; set gtid_mode=ON")
    what = (
        f"the log cannot be read from {start}, where it was read before: {text}; it was reset (RESET MASTER), lost "
        f"its end or is another server's; start {NEW_FEED} to copy again"
    )
    if isinstance(start, str):
        what = f"its log does not go on from {start}: {text}; name GTIDs that this server has in its log"
    return Diverged(f"shard {endpoint.shard}: {what}")
