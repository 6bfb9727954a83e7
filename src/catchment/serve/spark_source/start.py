"""Where a stream begins when GTIDs say so: behind a backup that was loaded by other means."""

import json
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from catchment import world
from catchment.model.cut import Cut
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.spark_source.stream_cut import ShardBatch, StreamCut
from catchment.source.catalog import list_tables
from catchment.source.definitions_at import definitions_needed
from catchment.source.find_gtids import locate
from catchment.source.first_position import known_prepared
from catchment.source.session import connect


def gtids_of_shards(text: str, shards: Sequence[str]) -> dict[str, str]:
    """The option `startingGtids`: JSON that maps each shard to its GTIDs, or, of a feed with one shard, the
    GTIDs themselves. Raises ConfigError.
    """
    try:
        named = json.loads(text) if text.lstrip().startswith("{") else dict.fromkeys(shards[:1], text)
    except ValueError as error:
        raise ConfigError(f"option startingGtids: not JSON: {error}") from None
    if set(named) != set(shards) or not all(isinstance(gtids, str) for gtids in named.values()):
        raise ConfigError(
            f"option startingGtids: it must name the GTIDs of every shard of the feed ({', '.join(shards)}), as JSON: "
            '{"SHARD": "GTIDS", ...}'
        )
    return dict(named)


def cut_at(endpoints: Mapping[str, Endpoint], table: TableId, gtids: Mapping[str, str]) -> StreamCut:
    """The cut behind these GTIDs, with nothing to copy; raises as `locate` and `definitions_at`."""
    with world.pool(len(endpoints), "start") as pool:
        states = pool.map(lambda shard: _state(endpoints[shard], table, gtids[shard]), endpoints)
        now = world.now_us()
        cut = Cut(epoch_number(now // 1_000_000), now, dict(zip(endpoints, states, strict=True)))
    return StreamCut(cut, {shard: ShardBatch(shown=False) for shard in endpoints})


def _state(endpoint: Endpoint, table: TableId, gtids: str) -> ShardState:
    position, xa = locate(endpoint, gtids)
    prepared = known_prepared(endpoint, position.at, xa)
    position = replace(position, prepared=prepared)
    with connect(endpoint) as session:
        here = bool(list_tables(session, lambda one: one == table))
    definitions = definitions_needed(endpoint, position, [table]) if here else ()
    # Nothing is copied, so that no SELECT relies on what is sealed.
    copies = (Copy(table, done=True),) if here else ()
    return ShardState(position, position.at, copies, definitions)
