"""Which dump follows one that is over, until the log has been read to where it was to be."""

from contextlib import AbstractContextManager

from catchment.model.errors import (
    COPY_AGAIN,
    NEW_FEED,
    ConnectionLost,
    CorruptLog,
    CutMissed,
    Diverged,
    Purged,
)
from catchment.model.position import LogOffset, Server, reaches
from catchment.model.source import Endpoint
from catchment.source.dump import Dump, dumping
from catchment.source.offsets import log_files, snapshot_offset, snapshot_session
from catchment.source.session import Session, connect
from catchment.wire.log.decoder import LogDecoder

_FILE_START = 4
_DUMPS_MAX = 200  # to the end of the log; each takes some milliseconds to log in


class Dumps:
    """Follows the dumps of one decoder, over those that end early and files that a crash has cut off inside an event.

    `to_the_end`: to where the log ends now, or beyond; else to the decoder's stop. `session`: for the first dump.
    Raises SourceError.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        server: Server | None,
        decoder: LogDecoder,
        *,
        to_the_end: bool,
        session: Session | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._server = server
        self._decoder = decoder
        self._to_the_end = to_the_end
        self._end = _visible_end(endpoint, server) if to_the_end else None
        self._crashed = False
        self._ended = 0
        self._session = session

    def dump(self, start: LogOffset) -> AbstractContextManager[Dump]:
        """A dump from there into the decoder. Raises as `dumping`."""
        session, self._session = self._session, None
        return dumping(self._endpoint, self._server, start, self._decoder, session)

    def must_follow(self, dump: Dump) -> None:
        """Raise CorruptLog where the file before that of a dump is cut off, and no server start began this one. Its
        format event says so (`created`), which comes before all others."""
        name = dump.start.file
        if self._crashed and any(file.name == name and file.created == 0 for file in self._decoder.files):
            raise CorruptLog(
                f"shard {self._endpoint.shard}: the log file before {name} breaks off inside an event, but no server "
                f"start began {name}: the log is damaged; start {NEW_FEED} to copy again"
            )

    def start_behind(self, dump: Dump) -> LogOffset | None:
        """Where the next dump starts, for which the decoder is made ready; None when no more is to be read.

        Raises CorruptLog as `must_follow`. Raises CutMissed when the server ends dumps before the end of the log,
        ConnectionLost when it did so inside a group.
        """
        decoder, endpoint = self._decoder, self._endpoint
        self.must_follow(dump)
        self._crashed = dump.broken_off
        if self._crashed:
            at = LogOffset(_next_file(endpoint, self._server, decoder.at), _FILE_START)
        elif not (self._to_the_end and decoder.ended) or _is_end(decoder, self._end, self._ended):
            return None
        else:
            self._ended += 1
            at = _going_on(endpoint, decoder, self._ended)
            self._end = self._end and _lower(self._end, _visible_end(endpoint, self._server))
        decoder.resume()
        return at


def _visible_end(endpoint: Endpoint, server: Server | None) -> LogOffset | None:
    """A place at or behind the end of all that is visible now; None where the server has no word for that.

    MySQL tells where its log ends, visible or not, and waits for that behind whoever rotates the log.
    """
    if server is not None and server.mysql:
        return None
    with snapshot_session(endpoint, server) as session:
        return snapshot_offset(session) if session.mysql_version is None else None


def _is_end(decoder: LogDecoder, end: LogOffset | None, dumps: int) -> bool:
    """Whether a dump that has ended did so at the end of the log, after `dumps` others.

    A dump whose thread is killed, by KILL QUERY or a shutdown, ends with the packet that says end of log (MariaDB,
    mysql_binlog_send; MySQL, Binlog_sender::run). So MySQL has to say it twice in turn.
    """
    return dumps > 0 if end is None else reaches(decoder.at, end)


def _going_on(endpoint: Endpoint, decoder: LogDecoder, dumps: int) -> LogOffset:
    """Where the next dump is to start."""
    if decoder.in_group:
        raise ConnectionLost(
            f"shard {endpoint.shard}: the server ended a dump inside the group at {decoder.at}"
        )
    if dumps > _DUMPS_MAX:
        raise CutMissed(
            f"shard {endpoint.shard}: dumps of the log end at {decoder.at}, again and again, before it does: does "
            "somebody kill their sessions (SHOW PROCESSLIST)?"
        )
    return decoder.at


def _lower(end: LogOffset, now: LogOffset | None) -> LogOffset:
    """An end that was read while the log was rotated can lie beyond all there is: a later one corrects it."""
    return now if now is not None and reaches(end, now) else end


def _next_file(endpoint: Endpoint, server: Server | None, at: LogOffset) -> str:
    """The file that comes after one in which an event breaks off.

    Raises Purged where the server no longer has that one. Raises Diverged where none comes after it: events of the file
    that a server writes are whole, so the dump began inside of one.
    """
    with connect(endpoint, server) as session:
        files = list(log_files(session))
    if at.file not in files:
        raise Purged(
            f"shard {endpoint.shard}: log file {at.file} is no longer on the server; it was purged or the log was "
            f"reset; {COPY_AGAIN}"
        )
    if at.file == files[-1]:
        raise Diverged(
            f"shard {endpoint.shard}: no event begins at {at}, where the log was read to before: it was reset (RESET "
            f"MASTER), or lost its end; {COPY_AGAIN}"
        )
    return files[files.index(at.file) + 1]
