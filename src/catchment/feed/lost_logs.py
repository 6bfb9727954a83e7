"""Shards whose log is lost: it was purged behind our position, reset, or is another one. Each gets a new first cut.

Whoever takes up a feed asks this of every shard. A loop that meets it later ends, and another one goes on. Another
server under the shard's address is none of these: its log tells nothing of ours.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from catchment import world
from catchment.epoch.begun_again import BegunAgain, begun_again
from catchment.feed.moved import Comparison
from catchment.model.epoch import Manifest
from catchment.model.errors import LogLost, LogRefused, SourceError, WireError
from catchment.model.log_fields import about
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.each_shard import each_shard
from catchment.source.first_cut import first_position
from catchment.source.identity import continued, must_go_on
from catchment.source.session import connect

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Looked:
    """Where the logs of shards go on, and why others do not."""

    positions: dict[str, Position]
    lost: dict[str, str]


def looked_at(endpoints: Mapping[str, Endpoint], standing: Manifest) -> Looked:
    """Look at the log of each of these shards, where `standing` says that it was read to.

    Raises OtherServer, ConnectionLost.
    """

    def look(shard: str) -> Position | LogLost:
        known = _as_named_now(endpoints[shard], standing.cut.shards[shard].position)
        try:
            return must_go_on(endpoints[shard], continued(endpoints[shard], known))
        except LogLost as error:
            return error

    found = each_shard(endpoints, look)
    return Looked(
        {shard: at for shard, at in found.items() if isinstance(at, Position)},
        {shard: str(error) for shard, error in found.items() if isinstance(error, LogLost)},
    )


def _as_named_now(endpoint: Endpoint, verified: Position) -> Position:
    """The position under the host name, port and server_id that MySQL has now. Its server_uuid has to be the same, and
    its log the one that was read. MariaDB has no uuid: an operator says that it is the same (`catchment adopt`).
    """
    if not verified.server.mysql:
        return verified
    with connect(endpoint) as session:
        found = session.server
    if found == verified.server or found.uuid != verified.server.uuid:
        return verified
    try:
        moved = Comparison(endpoint, verified).position()
    except LogLost:  # a clone, perhaps
        return verified
    _log.warning(
        "shard %s: the feed knew %s; now it is %s, with the same log",
        endpoint.shard,
        verified.server,
        found,
        extra=about(shard=endpoint.shard),
    )
    return moved


def with_new_cuts(
    standing: Manifest,
    endpoints: Mapping[str, Endpoint],
    lost: Mapping[str, str],
    epoch: int,
    *,
    waits: bool = True,
) -> Manifest:
    """The epoch in which shards begin again, and why each does. `waits`: their tables wait for an order. Raises
    SourceError where one cannot."""
    positions = each_shard(lost, lambda shard: _begun(endpoints[shard], standing))
    shards = {shard: BegunAgain(at, lost[shard], waits) for shard, at in positions.items()}
    return begun_again(standing, shards, epoch, world.now_us())


def _begun(endpoint: Endpoint, standing: Manifest) -> Position:
    server = standing.cut.shards[endpoint.shard].position.server
    try:
        with connect(endpoint, server) as session:
            return first_position(session)
    except (WireError, LogRefused) as why:
        raise SourceError(
            f"shard {endpoint.shard}: it is to begin again in its newest log file, which cannot be read ({why}); FLUSH "
            "BINARY LOGS there, then run again"
        ) from why
