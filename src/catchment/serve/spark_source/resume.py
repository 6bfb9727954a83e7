"""Whether the shards' logs are still those in which a stream stands. A query asks that once, when it begins.

A query that finds nothing new reads no log, and an end of the log before the stream's position looks like "nothing
new". So do a log that was reset and another server at the address.
"""

from collections.abc import Mapping

from catchment import world
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.identity import must_go_on


def must_all_go_on(
    endpoints: Mapping[str, Endpoint], positions: Mapping[str, Position]
) -> dict[str, Position]:
    """Where each shard's log goes on: at its position, or at the head of the file after it that has another base name.
    Raises Diverged or Purged where one does not; ConnectionLost."""
    with world.pool(len(endpoints), "resume") as pool:
        found = pool.map(lambda shard: must_go_on(endpoints[shard], positions[shard]), endpoints)
        return dict(zip(endpoints, found, strict=True))
