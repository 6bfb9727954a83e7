"""Refuses children of foreign keys that change rows. InnoDB logs the parent alone, and this source reads the log of one
table: it has neither the parents nor the rows that go with them."""

from collections.abc import Mapping

from catchment import world
from catchment.model.cut import Cut
from catchment.model.errors import Unsupported
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.events import SchemaEvents
from catchment.schema.foreign_keys import dropped_keys
from catchment.source.foreign_keys import declared_keys
from catchment.source.log import read_facts
from catchment.source.session import Session, connect

_REMEDY = (
    "make the key RESTRICT, or take the table and its parents from a stream (catchment.stream), which carries both, or "
    "from the lake of a feed"
)


def must_be_no_child(session: Session, table: TableId) -> None:
    """Raise Unsupported where a foreign key changes rows of the table, as the catalog has it now; SourceError."""
    for one in declared_keys(session, [table]).keys.get(table, ()):
        raise Unsupported(
            f"shard {session.endpoint.shard}, {table}: its foreign key {one.key.name} {one.said} changes rows that are "
            f"in no log; {_REMEDY}"
        )


def must_have_been_no_child(endpoints: Mapping[str, Endpoint], cut: Cut, table: TableId) -> None:
    """The same from a cut on: a key that the catalog does not have any more may have changed rows after the cut."""

    def look(shard: str) -> None:
        state, endpoint = cut.shards[shard], endpoints[shard]
        if not state.copies:
            return  # the shard does not have the table
        with connect(endpoint, state.position.server) as session:
            must_be_no_child(session, table)
        _must_have_dropped_none(endpoint, state, table)

    with world.pool(len(cut.shards), "keys") as pool:
        list(pool.map(look, cut.shards))


def _must_have_dropped_none(endpoint: Endpoint, state: ShardState, table: TableId) -> None:
    """Raise Unsupported where the log after a state has a statement that drops a key of the table."""
    position = state.position
    facts = read_facts(endpoint, position.server, position, None).facts
    for event in SchemaEvents([table]).of(facts):
        if dropped := sorted(dropped_keys(event, table)):
            raise Unsupported(
                f"shard {endpoint.shard}, {table} at {event.at}: its foreign key {dropped[0]} was dropped there, and "
                "it may have changed rows before, which are in no log; begin after that statement"
            )
