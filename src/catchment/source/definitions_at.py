"""The definitions of a shard's tables at a position of its log, for a log that does not describe itself."""

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from catchment.model.definition import Definition
from catchment.model.errors import NEW_FEED, SourceError, Unsupported
from catchment.model.position import LogOffset, Position
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Harmless, Stop
from catchment.schema.events import SchemaEvents, stops
from catchment.source.catalog import read_definition
from catchment.source.log import read_facts
from catchment.source.session import Session, connect

_DESCRIBES_ITSELF = "FULL"


def described(endpoint: Endpoint, state: ShardState) -> ShardState:
    """The shard's state with definitions of those of its tables that have none: its log stopped naming columns.

    What a table was like at the state's position is not known where the log has an ALTER of it from there on: that
    table gets a definition without columns, which stops it at its next row or statement, and no other table.
    Raises SourceError where the shard does not answer.
    """
    have = {one.table for one in state.definitions}
    known: dict[TableId, Definition] = {}
    with connect(endpoint, state.position.server) as session:
        for table in sorted(state.known.tables - have):
            try:
                known[table] = read_definition(session, table)
            except Unsupported:  # it has gone since, or has become another one
                known[table] = Definition.unknown(table)
    known |= {table: Definition.unknown(table) for table, _ in _altered(endpoint, state.position, known)}
    return replace(state, definitions=(*state.definitions, *known.values()))


def described_where_needed(endpoint: Endpoint, state: ShardState) -> ShardState:
    """As `described`; the state as it is where the log now names the columns of its rows."""
    with connect(endpoint, state.position.server) as session:
        if describes_itself(session):
            return state
    return described(endpoint, state)


def definitions_at(
    endpoint: Endpoint, position: Position, tables: Iterable[TableId]
) -> tuple[Definition, ...]:
    """What the catalog says of the tables, when the log shows that it has said so since `position`.

    The log is read from there to its end, on a dump opened after the catalog was read. Raises SourceError when a
    DDL among it concerns one of the tables.
    """
    with connect(endpoint, position.server) as session:
        known = {table: read_definition(session, table) for table in tables}
    _must_be_unaltered(endpoint, position, known)
    return tuple(known.values())


def definitions_needed(
    endpoint: Endpoint, position: Position, tables: Iterable[TableId]
) -> tuple[Definition, ...]:
    """As `definitions_at`, but none where the log now names the columns of its rows (binlog_row_metadata=FULL)."""
    with connect(endpoint, position.server) as session:
        if describes_itself(session):
            return ()
        known = {table: read_definition(session, table) for table in tables}
    _must_be_unaltered(endpoint, position, known)
    return tuple(known.values())


def describes_itself(session: Session) -> bool:
    """Whether the log now names the columns of its rows (binlog_row_metadata=FULL)."""
    row = session.row("SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'")
    return row is None or str(row[1]).upper() == _DESCRIBES_ITSELF


def _must_be_unaltered(endpoint: Endpoint, position: Position, known: Collection[TableId]) -> None:
    for table, at in _altered(endpoint, position, known):
        raise SourceError(
            f"shard {endpoint.shard}, {table}: it was altered at {at}, after {position.at}, and the log does not say "
            "what it was like before (binlog_row_metadata is not FULL): set binlog_row_metadata=FULL, then run again "
            f"a feed that has only begun, or start {NEW_FEED}"
        )


def _altered(
    endpoint: Endpoint, position: Position, tables: Collection[TableId]
) -> Iterator[tuple[TableId, LogOffset]]:
    """The tables that DDL of the log concerns from a position on, and where it is."""
    stretch = read_facts(endpoint, position.server, position.at, None)
    for event in SchemaEvents(tables).of(stretch.facts):
        did = event.effect
        if isinstance(did, Stop):
            yield from ((stop.table, event.at) for stop in stops(event, tables))
        elif not isinstance(did, Harmless):
            yield did.table, event.at
