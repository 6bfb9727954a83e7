"""One dump of a shard's log, on a session of its own, fed to the decoder as it is pulled.

It takes server id 0 and the non-blocking flag. Such a dump is not killed by another replica and kills none, and it ends
with an end-of-log packet (MariaDB: COM_BINLOG_DUMP). One that a person or a shutdown kills ends with that, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from catchment.model.errors import (
    COPY_AGAIN,
    ConnectionLost,
    CutMissed,
    Diverged,
    LogRefused,
    Purged,
    ServerSaid,
    SourceError,
    Unsupported,
    WireError,
)
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset, Server
from catchment.model.source import Endpoint
from catchment.source.session import Session, connect, mapped
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.packets.statements import dump_packet

_MARIADB_CAPABILITY_GTID = 4
# A dump of little log is the rule: it does not pay for the memory that one of much log is read into.
_FIRST_BYTES, _READ_BYTES = 1 << 14, 1 << 20
# A server that sends nothing for so long is away: a dump never waits for rows or locks of tables.
_SILENT_SECONDS_MAX = 60
# So long may nobody pull: while the socket is full, the server waits, by default for one minute (net_write_timeout).
_PAUSE_SECONDS_MAX = 600
_ER_MASTER_FATAL = 1236
_ACCESS = {1045, 1227}
_BROKEN_OFF = "truncated in the middle of event"
# A place behind the end of a file: MariaDB, MySQL.
_BEHIND_THE_END = ("impossible position", "position > file size")


class Dump:
    """One dump. Nothing is read while nobody pulls; then the sockets fill up, and the server waits.

    `start`: where it began. `broken_off`: the server says that a file ends inside an event; a crash left it so, and no
    dump passes its end.
    """

    def __init__(self, session: Session, start: LogOffset, decoder: LogDecoder) -> None:
        self.start = start
        self.broken_off = False
        self._session = session
        self._decoder = decoder
        decoder.folds = session.folds
        self._buffer = memoryview(bytearray(min(_FIRST_BYTES, _READ_BYTES)))

    def pull(self) -> int:
        """Read the socket once, and decode that: how many bytes came, 0 when the dump is over.

        It is over when the decoder has reached its stop or the log's end. Raises Purged, Diverged, ConnectionLost,
        CutMissed, CorruptLog, and what the decoder's `on_ddl` raises.
        """
        decoder, endpoint = self._decoder, self._session.endpoint
        if self.broken_off or decoder.ended or decoder.reached_stop:
            return 0
        with mapped(endpoint):
            size = self._session.sock.recv_into(self._buffer)
        if size == 0:
            raise ConnectionLost(f"shard {endpoint.shard}: the log dump broke off at {decoder.at}")
        try:
            decoder.feed(self._buffer[:size])
        except (WireError, Unsupported) as error:
            error.place = str(decoder.at)
            raise
        except ServerSaid as error:
            if error.code != _ER_MASTER_FATAL or _BROKEN_OFF not in error.message:
                refused = refusal(error, endpoint, self.start)
                refused.place = str(decoder.at)
                raise refused from error
            self.broken_off = True
        except Diverged as error:
            raise Diverged(
                f"shard {endpoint.shard}: {error}: the log is another one; {COPY_AGAIN}"
            ) from error
        if size == len(self._buffer) < _READ_BYTES:
            self._buffer = memoryview(bytearray(_READ_BYTES))
        return size


def session_for_dump(endpoint: Endpoint, server: Server | None) -> Session:
    """A session that may still be asked, and then read a dump. Raises as `connect`."""
    return connect(endpoint, server, read_seconds=_SILENT_SECONDS_MAX)


def opened(endpoint: Endpoint, server: Server | None, session: Session | None = None) -> Session:
    """A session for one dump: `session`, of `session_for_dump`, if there is one. Raises as `connect`."""
    session = session or session_for_dump(endpoint, server)
    try:
        announce(session)
    except BaseException:
        session.abandon()
        raise
    return session


@contextmanager
def dumping(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset,
    decoder: LogDecoder,
    session: Session | None = None,
) -> Iterator[Dump]:
    """A dump from `start` into `decoder`. Its session is given up on every way out: a dump is its last command.

    `session`: as for `opened`. Raises as that, and CutMissed where no dump can start.
    """
    session = opened(endpoint, server, session)
    try:
        if start.offset > DUMP_OFFSET_MAX:
            raise CutMissed(
                f"shard {endpoint.shard}: no dump can start at {start}, beyond 4 GiB; the server begins a new file "
                "when a transaction has passed that"
            )
        with mapped(endpoint):
            session.sock.sendall(dump_packet(start))
        yield Dump(session, start, decoder)
    finally:
        session.abandon()


def announce(session: Session) -> None:
    """Tell the server that the log may have what its events have in it, and that its reader may pause."""
    session.run(
        "SET @master_binlog_checksum = @@global.binlog_checksum,"
        " @source_binlog_checksum = @@global.binlog_checksum,"
        f" @mariadb_slave_capability = {_MARIADB_CAPABILITY_GTID},"
        f" SESSION net_write_timeout = {_PAUSE_SECONDS_MAX}"
    )


def has_checksums(session: Session) -> bool:
    """Whether the events of a dump have checksums, on a session that is announced."""
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
    return _fatal(text, endpoint, start)


def _fatal(text: str, endpoint: Endpoint, start: LogOffset | str) -> SourceError:
    if "Could not find first log" in text:
        name = start.file if isinstance(start, LogOffset) else "asked for"
        return Purged(
            f"shard {endpoint.shard}: log file {name} is no longer on the server (from {start}); "
            f"it was purged or the log was reset; {COPY_AGAIN}"
        )
    if "purged" in text:
        return Purged(
            f"shard {endpoint.shard}: log that comes next is no longer on the server (from {start}): {text}; "
            f"{COPY_AGAIN}"
        )
    if "GTID_MODE" in text.upper():
        return SourceError(f"shard {endpoint.shard}: no log from {start}: {text}; set gtid_mode=ON")
    if isinstance(start, str):
        return Diverged(
            f"shard {endpoint.shard}: its log does not go on from {start}: {text}; name GTIDs that this server has in "
            "its log"
        )
    if any(said in text for said in _BEHIND_THE_END):
        return Diverged(
            f"shard {endpoint.shard}: the log cannot be read from {start}, where it was read before: {text}; it was "
            f"reset (RESET MASTER), lost its end or is another server's; {COPY_AGAIN}"
        )
    return LogRefused(
        f"shard {endpoint.shard}: the server does not send its log from {start} on: {text}; correct what it names, "
        "then run again"
    )
