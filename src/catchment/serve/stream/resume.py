"""What became of a shard's tables since a stream stood there: by DDL ahead in the log, and by other rules."""

import logging
from collections.abc import Collection

from msgspec.structs import replace

from catchment.model.errors import Unsupported
from catchment.model.named import by_cause, listed
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.ddl import Columns
from catchment.schema.events import SchemaEvents, stops
from catchment.schema.existence import existence
from catchment.serve.stream.tables import REMEDY, Chosen, known_now
from catchment.source.catalog import listed_tables
from catchment.source.definitions_at import described_where_needed
from catchment.source.log import read_facts
from catchment.source.session import connect

_log = logging.getLogger(__name__)


def altered_since(endpoint: Endpoint, state: ShardState) -> list[TableId]:
    """The tables that were altered while they were copied. Their chunks were asked for by the columns and the key of
    then. Raises SourceError."""
    if state.copied:
        return []
    position = state.position
    altered: set[TableId] = set()
    for event in SchemaEvents(state.copying).of(read_facts(endpoint, position.server, position, None).facts):
        altered |= {stop.table for stop in stops(event, state.copying)}
        if isinstance(event.effect, Columns):
            altered.add(event.effect.table)
    return [copy.table for copy in state.copies if copy.table in altered and copy != Copy(copy.table)]


def copied_again(state: ShardState, tables: Collection[TableId]) -> ShardState:
    """The state with nothing copied of these tables."""
    copies = (Copy(copy.table) if copy.table in tables else copy for copy in state.copies)
    return replace(state, copies=tuple(copies))


def rechosen(endpoint: Endpoint, state: ShardState, chosen: Chosen) -> ShardState:
    """The state with the tables that are chosen now: others go, and more are copied from their first row on.

    Those that the log ahead brings are left to it. Raises Unsupported where a parent goes whose children stay, and
    SourceError.
    """
    mine, position = {copy.table for copy in state.copies}, state.position
    kept = state.without([table for table in mine if not chosen(table)])
    for key in kept.keys or ():
        if not chosen(key.parent):
            raise Unsupported(
                f"shard {endpoint.shard}, {key.child}: the {key} changes its rows, and no log has that; the rules "
                f"leave out {key.parent}, which an earlier stream had: {REMEDY}"
            )
    with connect(endpoint, position.server) as session:
        there = [table for table in listed_tables(session, chosen) if table not in mine]
    if not there:
        return kept
    # Beside those that stay: some of them may be parents.
    known = known_now(endpoint, position.server, {*kept.known.tables, *there}, chosen)
    for why, tables in by_cause(
        (table, known.faults[table]) for table in there if table in known.faults
    ).items():
        _log.warning("the stream leaves out %s: %s", listed(tables), why)
    more = known.shapes.keys() & {*there}
    if not more:
        return kept
    facts = read_facts(endpoint, position.server, position, None).facts
    more -= {table for table, came in existence(SchemaEvents(()).of(facts), position).there.items() if came}
    copies = sorted((*kept.copies, *map(Copy, more)), key=lambda copy: copy.table)
    kept = replace(kept, copies=tuple(copies))
    return described_where_needed(endpoint, kept) if more else kept
