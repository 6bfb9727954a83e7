"""Where a set of GTIDs stands in a MySQL's log, whose files may have other names than those read before."""

import socket

from catchment.flow.capture.connect import connect, identify, mapped, mysql_version
from catchment.flow.capture.log import announce_checksums, refusal
from catchment.flow.capture.offsets import log_end
from catchment.flow.capture.stretch import read_stretch
from catchment.model.errors import ConnectionLost, CutMissed, Diverged, ServerSaid, Unsupported
from catchment.model.gtidset import GtidSet
from catchment.model.position import LogOffset, Position, Server
from catchment.model.source import Endpoint
from catchment.wire.logstart import FirstGroup
from catchment.wire.statements import dump_gtid_packet

_FILE_START = 4
_READ_BYTES = 1 << 16


def locate(endpoint: Endpoint, known: GtidSet) -> Position:
    """The verified position on this server's log in front of the first group that is not in `known`.

    The server finds the file (COM_BINLOG_DUMP_GTID); that file is then read from its start to the place, by the
    chain rule. Raises Purged when the log no longer has all that is not known, Diverged when `known` has GTIDs that
    the server lacks or that lie behind the place, Unsupported for MariaDB,
    SourceError where gtid_mode is not ON, ConnectionLost, CutMissed, CorruptLog.
    """
    server, at = _first_unknown(endpoint, known)
    stretch = read_stretch(
        endpoint,
        server,
        LogOffset(at.file, _FILE_START),
        at,
        keys={},
        before="key",
        on_images=lambda table, batch: None,
    )
    if not stretch.reached_stop:
        raise CutMissed(f"shard {endpoint.shard}: log {at.file} ends at {stretch.at}, before {at}")
    file = stretch.files[0]
    before = GtidSet.parse(file.gtid_list or "").union(stretch.named)
    if not before.includes(known):
        raise Diverged(
            f"shard {endpoint.shard}: of the GTIDs {known} some come behind {at}, in front of which groups are "
            f"missing from them (all up to there: {before}): no place in the log stands for them; name a set that "
            "a replica or a feed had executed in the order of this log, or copy again with a new feed"
        )
    return Position(at=at, born=file.born, server=server, gtids=before)


def _first_unknown(endpoint: Endpoint, known: GtidSet) -> tuple[Server, LogOffset]:
    connection = connect(endpoint)
    try:
        version = mysql_version(connection)
        if version is None:
            raise Unsupported(
                f"shard {endpoint.shard}: MariaDB has no sets of GTIDs; name file and offset of its log"
            )
        server = identify(connection, endpoint)
        end = log_end(connection, endpoint, version)
        head = FirstGroup(checksums=announce_checksums(connection, endpoint))
        with mapped(endpoint):
            sock: socket.socket = connection._sock  # type: ignore[attr-defined]
            sock.sendall(dump_gtid_packet(known))
            while head.at is None and not head.ended:
                piece = sock.recv(_READ_BYTES)
                if not piece:
                    raise ConnectionLost(f"shard {endpoint.shard}: the log dump broke off before a group")
                head.feed(piece)
    except ServerSaid as error:
        raise refusal(error, endpoint, f"GTIDs {known}") from error
    finally:
        connection._force_close()  # type: ignore[attr-defined]
    # Without a group to send, all up to the end that was asked before is known.
    return server, head.at or end
