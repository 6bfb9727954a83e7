"""Shards whose log is lost: it was purged behind our position, reset, or is another one. Each gets a new first cut.

A run asks this of every shard when it takes up a feed. A loop that meets it later ends, and another one goes on.
Another server under the shard's address is none of these: its log tells nothing of ours.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from catchment import world
from catchment.epoch.begun_again import BegunAgain, begun_again
from catchment.feed.moved import Comparison
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, LogLost, LogRefused, SourceError, WireError
from catchment.model.log_fields import about
from catchment.model.position import LogOffset, Position
from catchment.model.retries import holds_up_a_shard
from catchment.model.source import Endpoint
from catchment.source.each_shard import each_shard
from catchment.source.first_cut import first_position
from catchment.source.identity import continued, must_go_on
from catchment.source.session import connect

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LostLog:
    """Why a shard's log does not go on. `at`: the place in it that an order set aside."""

    reason: str
    at: LogOffset | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """Where the logs of shards go on, and why others do not. `failed`: what kept shards from being looked at, which
    holds up these shards alone."""

    positions: dict[str, Position]
    lost: dict[str, LostLog]
    failed: dict[str, CatchmentError]


def looked_at(endpoints: Mapping[str, Endpoint], standing: Manifest) -> Looked:
    """Look at the log of each of these shards, where `standing` says that it was read to."""

    def look(shard: str) -> Position | CatchmentError:
        try:
            known = _as_named_now(endpoints[shard], standing.cut.shards[shard].position)
            return must_go_on(endpoints[shard], continued(endpoints[shard], known))
        except CatchmentError as error:
            if not (isinstance(error, LogLost) or holds_up_a_shard(error)):
                raise
            return error

    found = each_shard(endpoints, look)
    lost = {shard: error for shard, error in found.items() if isinstance(error, LogLost)}
    return Looked(
        {shard: at for shard, at in found.items() if isinstance(at, Position)},
        {shard: LostLog(str(error)) for shard, error in lost.items()},
        {s: error for s, error in found.items() if isinstance(error, CatchmentError) and s not in lost},
    )


def looked_again(endpoint: Endpoint, standing: Manifest) -> None:
    """Raise what keeps a shard's log from being looked at, if anything still does."""
    for error in looked_at({endpoint.shard: endpoint}, standing).failed.values():
        raise error


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


@dataclass(frozen=True, slots=True)
class NewCuts:
    """Where shards begin again, and what keeps others from that."""

    shards: dict[str, BegunAgain]
    failed: dict[str, CatchmentError]

    def epoch(self, standing: Manifest, number: int) -> Manifest:
        """The epoch in which they do."""
        return begun_again(standing, self.shards, number, world.now_us())


def new_cuts(
    standing: Manifest,
    endpoints: Mapping[str, Endpoint],
    lost: Mapping[str, LostLog],
    *,
    waits: bool = True,
) -> NewCuts:
    """A new first cut of each shard whose log is lost. `waits`: the tables of shards that begin again wait for an
    order."""

    def begin(shard: str) -> Position | CatchmentError:
        try:
            return begun(endpoints[shard], standing)
        except CatchmentError as error:
            if not holds_up_a_shard(error):
                raise
            return error

    found = each_shard(lost, begin)
    return NewCuts(
        {
            shard: BegunAgain(at, lost[shard].reason, waits, lost[shard].at)
            for shard, at in found.items()
            if isinstance(at, Position)
        },
        {shard: error for shard, error in found.items() if isinstance(error, CatchmentError)},
    )


def begun(endpoint: Endpoint, standing: Manifest) -> Position:
    """Where a shard can begin again now. Raises SourceError where it cannot."""
    server = standing.cut.shards[endpoint.shard].position.server
    try:
        with connect(endpoint, server, snapshots=True) as session:
            return first_position(session)
    except (WireError, LogRefused) as why:
        raise SourceError(
            f"shard {endpoint.shard}: it is to begin again in its newest log file, which cannot be read ({why}); FLUSH "
            "BINARY LOGS there, then run again"
        ) from why
