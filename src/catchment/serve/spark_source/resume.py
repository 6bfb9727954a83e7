"""Whether the shards' logs are still those in which a stream stands. A query asks that once, when it begins.

A query that finds nothing new reads no log, and an end of the log before the stream's position looks like "nothing
new". So do a log that was reset and another server at the address.
"""

from collections.abc import Mapping

from catchment import world
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.identity import must_go_on


def must_all_go_on(endpoints: Mapping[str, Endpoint], positions: Mapping[str, Position]) -> None:
    """Raise Diverged or Purged unless every shard's log goes on at its position; ConnectionLost."""
    with world.pool(len(endpoints), "resume") as pool:
        list(pool.map(lambda shard: must_go_on(endpoints[shard], positions[shard]), endpoints))
