"""Which tables of a shard a stream has, and their shapes as the catalog has them now."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catchment import world
from catchment.config.table_patterns import check_rules, exclusion, pattern_of, takes
from catchment.model.epoch import Shapes, TableShape
from catchment.model.errors import ConfigError, Unsupported
from catchment.model.foreign_key import ForeignKey
from catchment.model.log_fields import about
from catchment.model.named import by_cause, listed
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.schema.chosen import Chosen as NamedTables
from catchment.schema.foreign_keys import columns_of
from catchment.schema.shape import first_shape, merge
from catchment.serve.rules.rule import Rule, first_of
from catchment.serve.rules.selection import Selection, compiled
from catchment.source.ask_ranges import collations_of
from catchment.source.catalog import listed_tables
from catchment.source.declared import read_tables
from catchment.source.foreign_keys import declared_keys
from catchment.source.session import Session, connect

_log = logging.getLogger(__name__)

ALL = ("/.*/",)
Given = str | Rule | Mapping[str, Any]
REMEDY = "make the key RESTRICT, take its parent, too, or leave the table out"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tables that a client wants, and what of their rows. `patterns`: as a feed file has them under `tables`.
    `within`: patterns of those that it may have.

    A table that a pattern excludes is left out. Else the first rule that takes it counts; then a pattern may take it
    whole. Raises ConfigError.
    """

    patterns: tuple[str, ...] = ALL
    rules: tuple[Rule, ...] = ()
    within: tuple[str, ...] = ALL

    def __post_init__(self) -> None:
        try:
            check_rules(self.patterns if not self.rules else ("*.*", *self.patterns))
        except ValueError as fault:
            raise ConfigError(f"rules: {fault}") from None

    @classmethod
    def of(cls, given: Iterable[Given], within: tuple[str, ...] = ALL) -> "Chosen":
        """Of patterns, rules, and mappings with the keys of rules."""
        patterns, rules = [], []
        for one in given:
            if isinstance(one, str):
                patterns.append(one)
            else:
                rules.append(one if isinstance(one, Rule) else _rule(one))
        return cls(tuple(patterns), tuple(rules), within)

    def __call__(self, table: TableId) -> bool:
        excluded = ("*.*", *(one for one in self.patterns if one.startswith("!")))
        if not takes(excluded, table) or not takes(self.within, table):
            return False
        rule = next((rule for rule in self.rules if rule.takes(table)), None)
        return takes(self.patterns, table) if rule is None else not rule.excludes

    def without(self, tables: Iterable[TableId]) -> "Chosen":
        """The same without some tables."""
        return replace(self, patterns=(*self.patterns, *(f"!{pattern_of(table)}" for table in tables)))

    @property
    def text(self) -> str:
        """As people see it."""
        rules = [f"{rule.match} {rule.filter}".strip() for rule in self.rules]
        return ", ".join([*rules, *self.patterns])

    def rule_of(self, table: TableId) -> Rule | None:
        """What is given of a table's rows; None: all as they are."""
        return first_of(self.rules, table)


def _rule(given: Mapping[str, Any]) -> Rule:
    try:
        return Rule(**given)
    except TypeError:
        raise ConfigError(
            f"rules: {str(dict(given))[:100]} is no rule; one has match, and may have filter, of and index"
        ) from None


class Known:
    """The tables of a shard as they are now: `shapes` of those whose rows can be told, also as one value (`whole`) and
    by their `names`; the foreign `keys` between them, and what rules give of them. `faults`: why the rows of others
    cannot be told.
    """

    def __init__(
        self,
        chosen: Chosen,
        shapes: Mapping[TableId, TableShape],
        collations: Mapping[TableId, Mapping[str, str]],
        faults: Mapping[TableId, str],
        keys: tuple[ForeignKey, ...] = (),
    ) -> None:
        self.shapes = shapes
        self.whole = Shapes(shapes.values())
        self.names = NamedTables(shapes)
        self.keys = keys
        self.faults = faults
        self._chosen = chosen
        self._collations = collations
        self._selections: dict[Table, Selection] = {}
        for shape in shapes.values():
            self.selection(shape.definition)

    def selection(self, table: Table) -> Selection | None:
        """What is given of a table of these columns; None: all. Raises ConfigError where its rule does not fit."""
        rule = self._chosen.rule_of(table.id)
        if rule is None or (not rule.filter.strip() and rule.of == 1):
            return None
        if table not in self._selections:
            self._selections[table] = compiled(rule, table, self._collations.get(table.id))
        return self._selections[table]

    def told(self, table: TableId) -> Table | None:
        """A table as its rows are told now; None where they cannot be."""
        shape = self.shapes.get(table)
        if shape is None:
            return None
        selection = self.selection(shape.definition)
        return shape.definition if selection is None else selection.table

    def selects(self, table: TableId) -> bool:
        """Whether a rule has columns or conditions of its own, which another definition may change."""
        return _selects(self._chosen, table)


@dataclass(frozen=True, slots=True)
class Definitions:
    """The tables of some shards as their rows are told at some moment."""

    shards: tuple[Known, ...]

    def of(self, table: TableId) -> list[Table]:
        """A table, by the shards that have it."""
        return [told for known in self.shards if (told := known.told(table)) is not None]

    def all(self) -> list[Table]:
        """Every table, by the shards that have it."""
        return [
            told for known in self.shards for table in known.shapes if (told := known.told(table)) is not None
        ]


def must_take_tables(endpoints: Mapping[str, Endpoint], chosen: Chosen) -> None:
    """Raise ConfigError where no shard has a table for the rules, or for one of them."""
    with world.pool(len(endpoints), "listed") as pool:
        there = {
            table
            for tables in pool.map(lambda one: _listed(one, chosen), endpoints.values())
            for table in tables
        }
    idle = [
        rule.match
        for rule in chosen.rules
        if not rule.excludes and not any(rule.takes(table) for table in there)
    ]
    if idle or not there:
        what = f"rule {idle[0]}" if idle else f"rules ({chosen.text})"
        raise ConfigError(
            f"{what}: no shard has such a table; a name or a glob is schema.table, a regular expression has to match "
            r"the whole of schema.table, as /shop\.log_.*/ does"
        )


def must_be_usable(known: Iterable[Known]) -> None:
    """Raise Unsupported with all tables of these shards that a stream cannot have."""
    faults = {table: why for one in known for table, why in one.faults.items()}
    if faults:
        lines = ["tables that cannot be streamed:"]
        lines += [f"  {table}: {why}" for table, why in sorted(faults.items())]
        lines.append("leave them out, by rules such as " + exclusion(min(faults)).removeprefix("- "))
        raise Unsupported("\n".join(lines))


def usable(endpoints: Mapping[str, Endpoint], chosen: Chosen) -> Chosen:
    """The tables that can be streamed from these shards; logs the others. Raises Unsupported where none can be."""
    known = surveyed(endpoints, chosen)
    faults = {table: why for one in known for table, why in one.faults.items()}
    if not {table for one in known for table in one.shapes} - faults.keys():
        must_be_usable(known)
    for why, tables in by_cause(sorted(faults.items())).items():
        _log.warning("the stream leaves out %s: %s", listed(tables), why, extra=about(tables=tables))
    return chosen.without(sorted(faults))


def surveyed(endpoints: Mapping[str, Endpoint], chosen: Chosen) -> list[Known]:
    """All tables that are chosen, on each shard as they are now."""

    def survey(endpoint: Endpoint) -> Known:
        with connect(endpoint) as session:
            return _known(session, chosen, chosen)

    with world.pool(len(endpoints), "survey") as pool:
        return list(pool.map(survey, endpoints.values()))


def known_now(endpoint: Endpoint, server: Server, tables: Collection[TableId], chosen: Chosen) -> Known:
    """The tables as they are; those that are not there, or cannot be carried as they are now, are left out. A few
    statements and one for each table, of whose foreign keys nothing else tells.

    The log tells what becomes of such a table. Raises SourceError, and ConfigError for a rule that does not fit.
    """
    if not tables:
        return Known(chosen, {}, {}, {})
    with connect(endpoint, server) as session:
        return _known(session, lambda table: table in tables, chosen)


def _known(session: Session, tables: Callable[[TableId], bool], chosen: Chosen) -> Known:
    listed, shard = listed_tables(session, tables), session.endpoint.shard
    faults = {table: str(rows) for table, rows in listed.items() if isinstance(rows, Unsupported)}
    found: dict[TableId, TableShape] = {}
    for table, read in read_tables(session, listed.keys() - faults.keys()).items():
        if isinstance(read, Unsupported):
            faults[table] = str(read)
        else:
            found[table] = first_shape(merge({shard: read}), {shard: read})
    columns = columns_of(found.values())
    family = declared_keys(session, columns).usable_among(columns)
    faults |= {table: f"{why}; {REMEDY}" for table, why in family.refused.items()}
    shapes = {table: shape for table, shape in found.items() if table not in faults}
    # Nothing else of a rule than a SELECT compares texts.
    selected = [shape.definition for table, shape in shapes.items() if _selects(chosen, table)]
    collations = {table.id: collations_of(session, table) for table in selected}
    return Known(chosen, shapes, collations, faults, tuple(one.key for one in family.keys))


def _selects(chosen: Chosen, table: TableId) -> bool:
    rule = chosen.rule_of(table)
    return rule is not None and rule.selects


def _listed(endpoint: Endpoint, chosen: Chosen) -> Collection[TableId]:
    with connect(endpoint) as session:
        return listed_tables(session, chosen).keys()
