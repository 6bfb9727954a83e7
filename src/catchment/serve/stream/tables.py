"""Which tables of a shard a stream has, and their shapes as the catalog has them now."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from catchment import world
from catchment.config.table_patterns import check_rules, exclusion, takes
from catchment.model.epoch import TableShape
from catchment.model.errors import ConfigError, Unsupported
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.schema.foreign_keys import columns_of
from catchment.schema.shape import first_shape, merge
from catchment.source.catalog import listed_tables, read_table
from catchment.source.foreign_keys import cascading
from catchment.source.session import Session, connect

ALL = ("/.*/",)
_REMEDY = "make the key RESTRICT, or leave the table out"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tables that a client wants, by rules as a feed file has them under `tables`. Raises ConfigError."""

    rules: tuple[str, ...] = ALL

    def __post_init__(self) -> None:
        try:
            check_rules(self.rules)
        except ValueError as fault:
            raise ConfigError(f"rules: {fault}") from None

    def __call__(self, table: TableId) -> bool:
        return takes(self.rules, table)


def must_all_be_usable(endpoints: Mapping[str, Endpoint], chosen: Callable[[TableId], bool]) -> None:
    """Raise Unsupported with all tables that a stream cannot have; ConfigError where no shard has a table."""
    with world.pool(len(endpoints), "survey") as pool:
        found = list(pool.map(lambda endpoint: _survey(endpoint, chosen), endpoints.values()))
    faults = {table: why for one in found for table, why in one.faults.items()}
    if not any(one.tables for one in found):
        raise ConfigError("rules: they take no table of any shard; check the names (schema.table)")
    if faults:
        lines = ["tables that cannot be streamed:"]
        lines += [f"  {table}: {why}" for table, why in sorted(faults.items())]
        lines.append("leave them out, by rules such as " + exclusion(min(faults)).removeprefix("- "))
        raise Unsupported("\n".join(lines))


def shapes_now(endpoint: Endpoint, server: Server, tables: Collection[TableId]) -> dict[TableId, TableShape]:
    """The tables as they are; those that are not there, or cannot be carried as they are now, are left out.

    The log tells what becomes of such a table. Raises SourceError.
    """
    if not tables:
        return {}
    with connect(endpoint, server) as session:
        there = listed_tables(session, lambda one: one in tables)
        found = {}
        for table, rows in there.items():
            try:
                if not isinstance(rows, Unsupported):
                    found[table] = _shape(endpoint.shard, read_table(session, table))
            except Unsupported:
                continue
        return {t: shape for t, shape in found.items() if t not in children(session, found.values())}


def children(session: Session, shapes: Collection[TableShape]) -> dict[TableId, str]:
    """Of these tables those whose rows foreign keys change in no log, and why."""
    return {
        one.key.child: f"its foreign key {one.key.name} {one.said} changes rows that are in no log; {_REMEDY}"
        for one in cascading(session, columns_of(shapes))
    }


@dataclass(frozen=True, slots=True)
class _Survey:
    tables: tuple[TableId, ...]
    faults: Mapping[TableId, str]


def _survey(endpoint: Endpoint, chosen: Callable[[TableId], bool]) -> _Survey:
    faults: dict[TableId, str] = {}
    shapes = []
    with connect(endpoint) as session:
        listed = listed_tables(session, chosen)
        for table, rows in listed.items():
            try:
                if isinstance(rows, Unsupported):
                    raise rows
                shapes.append(_shape(endpoint.shard, read_table(session, table)))
            except Unsupported as error:
                faults[table] = str(error)
        faults |= children(session, shapes)
    return _Survey(tuple(listed), faults)


def _shape(shard: str, table: Table) -> TableShape:
    return first_shape(merge({shard: table}), {shard: table})
