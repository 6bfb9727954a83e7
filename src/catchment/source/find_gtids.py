"""Where GTIDs stand in a server's log, whose files may have other names than those read before."""

from typing import NamedTuple

from catchment.model.errors import ConfigError, ConnectionLost, CutMissed, Diverged, ServerSaid
from catchment.model.gtidset import GtidSet
from catchment.model.position import Gtids, LogOffset, Position, Server, XaGroup, gtids_after
from catchment.model.source import Endpoint
from catchment.source.dump import announce, has_checksums, refusal
from catchment.source.log import read_facts
from catchment.source.offsets import log_end
from catchment.source.session import Session, connect, mapped
from catchment.wire.log.start import FirstGroup
from catchment.wire.packets.statements import dump_gtid_packet, dump_packet

_FILE_START = 4
_READ_BYTES = 1 << 16


class Located(NamedTuple):
    """A place in the log, and the XA groups between the start of its file and there. What the position says of
    XA transactions that are open there is not filled in."""

    position: Position
    xa: tuple[XaGroup, ...]


def locate(endpoint: Endpoint, gtids: str) -> Located:
    """The verified position on this server's log in front of the first group that `gtids` does not hold.

    `gtids` as the server writes them: a set (MySQL), or the newest of each domain (MariaDB). The server finds the
    file (COM_BINLOG_DUMP_GTID, slave_connect_state); that file is then read from its start to the place, by the chain
    rule. Raises Purged when the log no longer has all that is not held. Raises Diverged when the server lacks some of
    `gtids` or no place stands for them. Raises ConfigError when they cannot be read, SourceError where gtid_mode is not
    ON, ConnectionLost, CutMissed, CorruptLog.
    """
    server, known, at = _first_unknown(endpoint, gtids)
    stretch = read_facts(endpoint, server, LogOffset(at.file, _FILE_START), at)
    if not stretch.reached_stop:
        raise CutMissed(f"shard {endpoint.shard}: log {at.file} ends at {stretch.at}, before {at}")
    file = stretch.files[0]
    before = gtids_after(server.gtids(file.gtid_list or ""), stretch.newest, stretch.named)
    if not _holds(before, known):
        raise Diverged(
            f"shard {endpoint.shard}: of the GTIDs {known} some come behind {at}, in front of which groups are "
            f"missing from them (all up to there: {before}): no place in the log stands for them; name GTIDs that "
            "a replica or a feed had executed in the order of this log, or copy again"
        )
    position = Position(at=at, born=file.born, server=server, gtids=before, event=stretch.last_event)
    return Located(position, stretch.xa)


def _holds(before: Gtids, known: Gtids) -> bool:
    """Whether all that is known lies before the place in front of which nothing unknown lies."""
    if isinstance(before, GtidSet) and isinstance(known, GtidSet):
        return before.includes(known)
    return before == known


def _first_unknown(endpoint: Endpoint, gtids: str) -> tuple[Server, Gtids, LogOffset]:
    session = connect(endpoint)
    try:
        server = session.server
        try:
            known = server.gtids(gtids)
        except ValueError as error:
            raise ConfigError(f"shard {endpoint.shard}: {error}") from None
        end = log_end(session)
        announce(session)
        head = FirstGroup(checksums=has_checksums(session))
        request = _request(session, known)
        with mapped(endpoint):
            session.sock.sendall(request)
            while head.at is None and not head.ended:
                piece = session.sock.recv(_READ_BYTES)
                if not piece:
                    raise ConnectionLost(f"shard {endpoint.shard}: the log dump broke off before a group")
                head.feed(piece)
    except ServerSaid as error:
        raise refusal(error, endpoint, f"GTIDs {gtids}") from error
    finally:
        session.abandon()
    # Without a group to send, all up to the end that was asked before is known.
    return server, known, head.at or end


def _request(session: Session, known: Gtids) -> bytes:
    """What asks for the groups that are not known; MariaDB takes them as a variable of the session."""
    if isinstance(known, GtidSet):
        return dump_gtid_packet(known)
    session.run("SET @slave_connect_state = %s, @slave_gtid_strict_mode = 1", (str(known),))
    return dump_packet(LogOffset("", _FILE_START))
