"""The first cut of a stream, where a client names positions instead of a vgtid."""

from collections.abc import Mapping

from msgspec.structs import replace

from catchment import world
from catchment.model.cut import Cut
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError, CutMissed, Unsupported
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.stream.tables import Chosen, must_be_usable, surveyed
from catchment.serve.stream.vgtid import COPY, CURRENT, Start, Starts, StreamCut
from catchment.source.catalog import list_tables
from catchment.source.definitions_at import described_where_needed
from catchment.source.find_gtids import locate
from catchment.source.first_cut import origin_of
from catchment.source.first_position import known_prepared
from catchment.source.origin import must_be_apart
from catchment.source.session import connect

_ATTEMPTS = 5


def first_cut(starts: Starts, endpoints: Mapping[str, Endpoint], chosen: Chosen) -> StreamCut:
    """Where the shards begin. Raises ConfigError, Unsupported, and SourceError where a shard cannot serve.

    A shard of `current`, or of tables to copy, stands a little behind now: its log is to be read to now without telling
    what it holds.
    """
    wanted = {shard: endpoints[shard] for shard in starts.shards}
    try:
        with world.pool(len(wanted), "begin") as pool:
            states = list(
                pool.map(lambda one: _state(one, starts.shards[one.shard], chosen), wanted.values())
            )
    except Unsupported:  # of the first table in the way; whoever asked is told of all
        must_be_usable(surveyed(wanted, chosen))
        raise
    shards = dict(zip(wanted, states, strict=True))
    must_be_apart({shard: state.position for shard, state in shards.items()})
    now = world.now_us()
    unshown = tuple(shard for shard, start in starts.shards.items() if start.gtid not in (COPY, CURRENT))
    return StreamCut(Cut(epoch_number(now // 1_000_000), now, shards), unshown)


def _state(endpoint: Endpoint, start: Start, chosen: Chosen) -> ShardState:
    if start.gtid not in (COPY, CURRENT):
        return _behind(endpoint, start.gtid, chosen)
    state = _origin(endpoint, chosen, copies=start.gtid == COPY)
    if start.gtid == CURRENT:
        return replace(state, copies=tuple(_done(copy) for copy in state.copies))
    if not start.tables:
        return state
    named = {_named(table, state) for table in start.tables}
    # Rows that come until now are not told: all rows that there are then come with the copy.
    copies = (
        Copy(copy.table, rows_expected=copy.rows_expected) if copy.table in named else _done(copy)
        for copy in state.copies
    )
    return replace(state, copies=tuple(copies))


def _origin(endpoint: Endpoint, chosen: Chosen, *, copies: bool) -> ShardState:
    """The shard with nothing copied. An ALTER that ends while it is looked at is no reason to refuse the client."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return origin_of(endpoint, chosen, reserved=(), copies=copies).state
        except CutMissed:
            continue
    return origin_of(endpoint, chosen, reserved=(), copies=copies).state


def _named(name: str, state: ShardState) -> TableId:
    """The table of that name, with or without its schema."""
    found = [copy.table for copy in state.copies if name in (str(copy.table), copy.table.name)]
    if len(found) != 1:
        why = f"is {' and '.join(map(str, found))}" if found else "is none of those that the rules take"
        raise ConfigError(f"vgtid: the table {name} to copy {why}; name one as schema.table")
    return found[0]


def _done(copy: Copy) -> Copy:
    return Copy(copy.table, done=True, rows_expected=copy.rows_expected)


def _behind(endpoint: Endpoint, gtids: str, chosen: Chosen) -> ShardState:
    """The shard behind these GTIDs, with nothing to copy; no SELECT relies on what is sealed there."""
    position, xa = locate(endpoint, gtids)
    position = replace(position, prepared=known_prepared(endpoint, position.at, xa))
    with connect(endpoint) as session:
        tables = list_tables(session, chosen)
    copies = tuple(Copy(table, done=True) for table in sorted(tables))
    return described_where_needed(endpoint, ShardState(position, position.at, copies))
