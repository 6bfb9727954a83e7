"""What shards say of tables that may enter: each shard is asked once for all of them, and its log is read once behind
that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catchment.model.errors import CutMissed, SourceError, Unsupported
from catchment.model.position import LogOffset, Position, reaches
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import RESERVED, Comments, Table, TableId, Wording
from catchment.schema.chosen import Chosen
from catchment.schema.ddl import named_by
from catchment.schema.events import text_of
from catchment.source.catalog import listed_tables, parted
from catchment.source.declared import read_declared
from catchment.source.foreign_keys import DeclaredKeys, declared_keys
from catchment.source.log import read_facts
from catchment.source.offsets import bytes_between, log_files
from catchment.source.session import connect
from catchment.wire.log.facts import Ddl, Fact, Statement


@dataclass(frozen=True, slots=True)
class Said:
    """What one shard says of the tables. `listed`: an estimate of the rows of each that it has, or why it cannot be
    carried. `log_files`: their sizes."""

    listed: Mapping[TableId, int | Unsupported]
    tables: Mapping[TableId, Table | Unsupported]
    wordings: Mapping[TableId, Wording]
    comments: Mapping[TableId, Comments]
    log_files: Mapping[str, int]


class Asked:
    """The answers of shards about some tables, each asked when it is needed first. Threads ask for different shards.

    `begins`: places from where somebody may ask for the log of a shard. Those count with no more log behind them than
    `log_budget` bytes.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        states: Mapping[str, ShardState],
        tables: Iterable[TableId],
        begins: Mapping[str, Iterable[Position]],
        log_budget: int,
    ) -> None:
        self._endpoints, self._states = endpoints, states
        self._tables = Chosen(tables)
        self._begins, self._log_budget = begins, log_budget
        self._said: dict[str, Said] = {}
        self._keys: dict[str, DeclaredKeys] = {}
        self._logs: dict[str, _Log] = {}

    def of(self, shard: str) -> Said:
        """What a shard says; raises CatchmentError."""
        if shard not in self._said:
            self._said[shard] = self._ask(shard)
        return self._said[shard]

    def _ask(self, shard: str) -> Said:
        state = self._states[shard]
        with connect(self._endpoints[shard], state.position.server) as session:
            listed = listed_tables(session, lambda one: one in self._tables)
            here = [table for table, found in listed.items() if not isinstance(found, Unsupported)]
            faults, declared = parted(read_declared(session, here, RESERVED))
            return Said(
                listed,
                {**faults, **{table: one.table for table, one in declared.items()}},
                {table: one.wording for table, one in declared.items()},
                {table: one.comments for table, one in declared.items()},
                log_files(session),
            )

    def keys(self, shard: str) -> DeclaredKeys:
        """The foreign keys of the tables and of those that the feed carries; raises CatchmentError."""
        if shard not in self._keys:
            state, said = self._states[shard], self.of(shard)
            tables = {*said.wordings, *(copy.table for copy in state.copies)}
            with connect(self._endpoints[shard], state.position.server) as session:
                self._keys[shard] = declared_keys(session, tables)
        return self._keys[shard]

    def table(self, shard: str, table: TableId, *, must_have: bool) -> tuple[Table, Copy, Wording] | None:
        """A table as the catalog of a shard has it, its copy, its wording; None where the shard has none and need not.
        Raises CatchmentError."""
        said = self.of(shard)
        estimate = said.listed.get(table)
        if isinstance(estimate, Unsupported):
            raise estimate
        if estimate is None and must_have:
            raise CutMissed(f"shard {shard}: it has no table {table} any more")
        if estimate is None:
            return None
        found = said.tables[table]
        if isinstance(found, Unsupported):
            raise found
        return found, Copy(table, rows_expected=estimate), said.wordings[table]

    def has_keys(self, shard: str, table: TableId) -> bool:
        """Whether a table is a child of a foreign key that changes rows which its log does not tell."""
        return bool(self.keys(shard).among({table: {}}))

    def statements(self, shard: str, start: LogOffset | Position, table: TableId) -> list[Ddl | Statement]:
        """Those of a shard's log that may mean a table, from a place to its end, as read behind the catalog. Raises
        SourceError."""
        begin = _at(start)
        known = self._logs.get(shard) or self._read_from_the_first(shard, start)
        if not reaches(begin, known.begin):
            known = self._read(shard, start)
        # A log may go on under another name: then it is not told what comes first, and nothing is left out.
        return [one for one in known.of(table) if one.at == begin or not reaches(begin, one.at)]

    def _read_from_the_first(self, shard: str, start: LogOffset | Position) -> "_Log":
        """The log from the first place that anybody will ask for, where it can be read from there."""
        first, position, sizes = start, self._states[shard].position, self.of(shard).log_files
        for one in self._begins.get(shard, ()):
            near = bytes_between(sizes, one.at, position.at) <= self._log_budget
            if near and one.server == position.server and reaches(_at(first), one.at):
                first = one
        try:
            self._logs[shard] = self._read(shard, first)
        except SourceError:
            if first is start:
                raise
            return self._read(shard, start)
        return self._logs[shard]

    def _read(self, shard: str, start: LogOffset | Position) -> "_Log":
        self.keys(shard)  # so that the log ends behind all that the catalog was asked
        facts = read_facts(self._endpoints[shard], self._states[shard].position.server, start, None).facts
        return _Log(_at(start), self._tables, facts)


class _Log:
    """The statements of a log from `begin` on, by the tables that they may mean."""

    def __init__(self, begin: LogOffset, tables: Chosen, facts: Iterable[Fact]) -> None:
        self.begin = begin
        self._of: dict[TableId, list[Ddl | Statement]] = {}
        for fact in facts:
            if isinstance(fact, Ddl | Statement):
                for table in named_by(text_of(fact), tables):
                    self._of.setdefault(table, []).append(fact)

    def of(self, table: TableId) -> Sequence[Ddl | Statement]:
        """The statements that may mean a table, in their order."""
        return self._of.get(table, ())


def _at(place: LogOffset | Position) -> LogOffset:
    return place.at if isinstance(place, Position) else place
