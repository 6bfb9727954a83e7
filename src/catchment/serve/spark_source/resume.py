"""Whether the shards' logs are still those in which a stream stands. A query asks that once, when it begins.

A query that finds nothing new reads no log, and an end of the log before the stream's position looks like "nothing
new". So do a log that was reset and another server at the address.
"""

from collections.abc import Mapping

from catchment import world
from catchment.epoch.chain import must_continue
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_same_log, must_have_file
from catchment.source.log import read_facts


def must_go_on(endpoints: Mapping[str, Endpoint], positions: Mapping[str, Position]) -> None:
    """Raise Diverged or Purged unless every shard's log goes on at its position; ConnectionLost."""
    with world.pool(len(endpoints), "resume") as pool:
        list(pool.map(lambda shard: _must_hold(endpoints[shard], positions[shard]), endpoints))


def _must_hold(endpoint: Endpoint, verified: Position) -> None:
    must_be_same_log(endpoint, verified)
    must_have_file(endpoint, verified)
    # Offsets of old do not tell the count of RESETs: then the file's birth has to.
    stretch = read_facts(endpoint, verified.server, verified, verified.at)
    must_continue(endpoint.shard, verified, stretch.files[0].born, None)
