"""A source at rest: no shard's log has moved and no row is left to copy, so that there is nothing for a job to do.

What a turn owes then is the identity of each log (DESIGN 3), which the driver asks for by itself.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from catchment.model.epoch import Manifest, Tick
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_same_log

_THREADS = 16
# As long as the clock waits for a shard: the loop must notice that it is to stop.
_READ_SECONDS = 10


def is_at_rest(standing: Manifest, tick: Tick) -> bool:
    """Whether a job could find nothing: every log stands at a cut whose resets are known, and all rows are copied.

    Floors are for copying. So it does not matter that MySQL could seal the cut meanwhile, as it does without a log that
    moves; MariaDB seals nothing then.
    """
    return (
        standing.stood_at(tick)
        and all(progress.done for progress in standing.progress)
        and all(position.resets is not None for position in standing.cut.values())
    )


def looked_at(standing: Manifest, tick: Tick, endpoints: Mapping[str, Endpoint]) -> Manifest:
    """The manifest of a turn without an epoch: the cut with the counts of RESET statements as of now.

    A log that was reset, or a server that was replaced or went back to an older state of its data, is noticed by the
    count or by a restart. Raises as `must_be_same_log`, when all shards have answered.
    """

    def asked(shard: str) -> Position:
        position = standing.cut[shard]
        resets = must_be_same_log(endpoints[shard], position, read_seconds=_READ_SECONDS)
        return replace(position, resets=resets)

    with ThreadPoolExecutor(min(len(endpoints), _THREADS), thread_name_prefix="rest") as pool:
        cut = dict(zip(endpoints, pool.map(asked, endpoints), strict=True))
    return replace(
        standing,
        epoch=tick.number,
        previous=standing.epoch,
        time_us=tick.time_us,
        window_us=tick.window_us,
        cut=cut,
        deltas=(),
        changes=0,
        log_bytes=0,
        chunk_bytes=0,
    )
