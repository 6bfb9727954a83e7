"""The definitions of a shard's tables at a position of its log, for a log that does not describe itself."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.model.definition import Definition
from catchment.model.errors import NEW_FEED, SourceError
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Harmless
from catchment.schema.events import SchemaEvents
from catchment.source.catalog import read_definition
from catchment.source.log import read_facts
from catchment.source.session import Session, connect

_DESCRIBES_ITSELF = "FULL"


def described(standing: Cut, endpoint: Endpoint) -> Cut:
    """The cut with the definitions of a shard's tables as of then; raises SourceError as `definitions_at`."""
    shard = endpoint.shard
    state = standing.shards[shard]
    known = definitions_at(endpoint, state.position, [copy.table for copy in state.copies])
    return replace(standing, shards={**standing.shards, shard: replace(state, definitions=known)})


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
    stretch = read_facts(endpoint, position.server, position.at, None)
    for event in SchemaEvents(known).of(stretch.facts):
        did = event.effect
        if not isinstance(did, Harmless):
            raise SourceError(
                f"shard {endpoint.shard}, {did.table}: it was altered at {event.at}, after {position.at}, and the "
                "log does not say what it was like before (binlog_row_metadata is not FULL): set "
                f"binlog_row_metadata=FULL, then run again a feed that has only begun, or start {NEW_FEED}"
            )
