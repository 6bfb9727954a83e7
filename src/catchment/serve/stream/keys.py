"""Which foreign keys a shard has where a stream stands. The catalog has those of now: statements ahead in the log may
have given them to a table, or taken others away."""

from dataclasses import dataclass

from msgspec.structs import replace

from catchment.model.foreign_key import below
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.events import SchemaEvents, stops
from catchment.schema.existence import existence
from catchment.schema.foreign_keys import dropped_keys
from catchment.serve.stream.family_turn import is_bare
from catchment.serve.stream.tables import Known
from catchment.source.log import read_facts


@dataclass(frozen=True, slots=True)
class KeysHere:
    """A shard's state with the keys there. `open`: tables of which they are not known before more of the log is read;
    no row of them may be told until then."""

    state: ShardState
    open: frozenset[TableId]


def with_keys(endpoint: Endpoint, state: ShardState, known: Known) -> KeysHere:
    """The keys of tables of which nothing is told, and of all where none were asked for yet. `known`: the tables as
    they are now. Raises CatchmentError."""
    asked = {copy.table for copy in state.copies if state.keys is None or is_bare(copy)} & known.shapes.keys()
    if not asked:
        return KeysHere(state if state.keys is not None else replace(state, keys=()), frozenset())
    position = state.position
    facts = read_facts(endpoint, position.server, position, None).facts
    events = tuple(SchemaEvents(asked).of(facts))
    there = existence(events, position)
    ahead = {table for table in asked if table in there.there or table.schema in there.schemas_gone}
    ahead |= {stop.table for event in events for stop in stops(event, asked)}
    ahead |= {table for table in asked for event in events if dropped_keys(event, table)}
    ahead |= below(known.keys, frozenset(ahead)) & asked
    kept = [key for key in state.keys or () if key.child not in asked]
    keys = [key for key in known.keys if key.child in asked - ahead]
    return KeysHere(replace(state, keys=(*kept, *keys)), frozenset(ahead))


def without_rows_to_come(state: ShardState) -> ShardState:
    """A state of which nothing was told yet: rows that children get while no view shows what becomes of them come with
    the copy."""
    children = {key.child for key in state.keys or ()}
    copies = (
        Copy(copy.table, rows_expected=copy.rows_expected) if copy.table in children else copy
        for copy in state.copies
    )
    return replace(state, copies=tuple(copies))
