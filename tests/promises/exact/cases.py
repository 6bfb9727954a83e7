"""Many cases of a test as tables of one feed: each case has a table, which bears its name, and is compared by itself.

The statements of a case call its table `t`. Those of different cases reach a server in turns, each case in a session
of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.errors import NOT_ALL_COMPARED
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.sink.reading import TableState, double_quoted
from tests.promises.exact.steps import Steps
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

_TABLE = re.compile(r"\bt\b")
_ORIGIN = {"_shard", "_epoch"}
_NAMED_MAX = 3

Rows = Counter[str]
"""Rows as texts, and how often each is there."""


@dataclass(frozen=True)
class Kind:
    """Cases of one kind of DDL. `begin` makes and fills the table `t` of each; `cases` has the statements of one
    epoch, apart by semicolons, and `then` those of the next one. Two shards cannot run the cases of `single` in one
    epoch."""

    begin: Sequence[str]
    cases: Mapping[str, str]
    then: str
    single: Sequence[str] = ()


def every_epoch(steps: Steps) -> Sequence[EpochRow]:
    """The committed epochs of a feed."""
    return EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()


def first_since(steps: Steps, epoch: int) -> Manifest:
    """The first epoch behind another one."""
    return next(row.manifest for row in every_epoch(steps) if row.manifest.epoch > epoch)


def stale_since(steps: Steps, epoch: int) -> dict[str, str]:
    """The tables that were stale in an epoch behind another one, with the last reason."""
    later = (row.manifest for row in every_epoch(steps) if row.manifest.epoch > epoch)
    return {one.table.name: one.reason for manifest in later for one in manifest.stale}


def never_stale(steps: Steps) -> bool:
    """Whether every epoch had all tables as of itself."""
    rows = every_epoch(steps)
    return len(rows) > 1 and not any(row.manifest.stale for row in rows)


class Cases:
    """Tables of a feed, by their names with what makes them. `shards`: those of tables that some shards lack."""

    def __init__(
        self,
        steps: Steps,
        made: Mapping[str, Sequence[str]],
        shards: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self.steps = steps
        self._made = made
        self._shards = {table: tuple(shards.get(table, steps.servers)) for table in made}

    def begin(self) -> None:
        """Make the tables, and run the feed until it has copied them."""
        self.make()
        self.steps.run()

    def make(self) -> None:
        """Make the tables."""
        self._run_on(self._made, tuple(self.steps.servers))

    def turn(self, statements: Mapping[str, str | Sequence[str]], *shards: str) -> None:
        """Run statements on tables, several in a text apart by semicolons, and the feed for one epoch. `shards`: on
        those alone."""
        before = len(every_epoch(self.steps))
        self.write(statements, *shards)
        self.steps.run()
        assert len(every_epoch(self.steps)) == before + 1, "the statements of a turn are to be in one epoch"

    def write(self, statements: Mapping[str, str | Sequence[str]], *shards: str) -> None:
        """Run statements on tables, as `turn` does, while the feed rests."""
        lists = {table: one.split(";") if isinstance(one, str) else one for table, one in statements.items()}
        self._run_on(lists, shards or tuple(self.steps.servers))

    def compare(self, *tables: str) -> None:
        """Compare what Catchment's reader has of these tables, by default of all, with the shards."""
        expected = self._source()
        wrong = []
        for table, state in self._states():
            if tables and table not in tables:
                continue
            columns, rows = expected[table]
            found = state.arrow()
            if {*found.column_names} - _ORIGIN != columns:
                wrong.append(f"{table}: the lake has the columns {found.column_names}, the shards {columns}")
            else:
                wrong += _differences(table, _texts(found, {c: c for c in columns}), rows)
        assert not wrong, "\n".join(wrong)

    def settle(self) -> None:
        """Settle, then compare the plain tables as DuckDB's delta_scan and delta-rs read them, and Catchment's reader,
        with the shards."""
        settled(self.steps.feed)
        self.compare()
        expected = self._source()
        wrong = []
        with DeltaScan() as scan:
            for table, state in self._states():
                place = table_dir(Path(str(self.steps.feed.sink.path)), TableId(self.steps.schema, table))
                physical = {c.physical: c.column.name for c in state.shape.kept}
                for reader, found in (
                    ("delta_scan", scan.rows(place, ["_shard", *physical])),
                    ("delta-rs", by_delta_rs(place, ["_shard", *physical])),
                ):
                    rows = _texts(found, physical)
                    wrong += _differences(f"{table} by {reader}", rows, expected[table][1])
        assert not wrong, "\n".join(wrong)

    def must_be_followed(self, *without: str) -> None:
        """The shards agree by `verify`, too, which says so where a table is stale; and no table but these was ever
        stale, or has another copy than its first."""
        rows = every_epoch(self.steps)
        whole = 0 if not rows[-1].manifest.stale else NOT_ALL_COMPARED
        assert execute(["verify", str(self.steps.file)]) == whole
        stale = {one.table.name: one.reason for row in rows for one in row.manifest.stale}
        assert stale.keys() <= {*without}, stale
        began = {shape.table.name for shape in rows[-1].manifest.shapes if shape.generation}
        assert began <= {*without}, f"copied again: {began}"

    def _states(self) -> Iterator[tuple[str, TableState]]:
        names = [f"{self.steps.schema}.{table}" for table in self._shards]
        yield from zip(self._shards, read(self.steps.feed, names), strict=True)

    def _run_on(self, statements: Mapping[str, Sequence[str]], shards: Iterable[str]) -> None:
        for shard in shards:
            tables = [table for table in statements if shard in self._shards[table]]
            with ExitStack() as stack:
                cursors = {}
                for table in tables:
                    session = self.steps.servers[shard].connect(database=self.steps.schema)
                    cursors[table] = stack.enter_context(closing(session)).cursor()
                for together in zip_longest(*(statements[table] for table in tables)):
                    for table, statement in zip(tables, together, strict=True):
                        if statement and statement.strip():
                            cursors[table].execute(_TABLE.sub(table, statement))

    def _source(self) -> dict[str, tuple[set[str], Rows]]:
        """Of each table the columns that some shard has, and the rows of all."""
        found: dict[str, list[dict[str, object]]] = {table: [] for table in self._shards}
        columns: dict[str, set[str]] = {table: set() for table in self._shards}
        for shard, server in self.steps.servers.items():
            with closing(server.connect(database=self.steps.schema)) as session, session.cursor() as cursor:
                for table in (table for table, its in self._shards.items() if shard in its):
                    cursor.execute(f"SELECT * FROM {table}")
                    names = [str(column[0]) for column in cursor.description or ()]
                    columns[table] |= {*names}
                    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
                    found[table] += [{"_shard": shard, **row} for row in rows]
        return {
            table: (its, Counter(_text(row, its) for row in found[table])) for table, its in columns.items()
        }


def must_follow(steps: Steps, *kinds: Kind, settles: bool, alone: bool) -> None:
    """Run the statements of every case in one epoch, and those that follow in the next; compare after each.

    `settles`: the plain tables have each epoch before the next one comes. `alone`: each case has a second table, which
    only the first shard has; else only those have one that all shards cannot run.
    """
    tables = {
        f"{re.sub('[^A-Za-z]+', '_', name)}_{count}": (kind, statements, list(steps.servers)[:count])
        for kind in kinds
        for name, statements in kind.cases.items()
        for count in (
            {1} if name in kind.single else {1, len(steps.servers)} if alone else {len(steps.servers)}
        )
    }
    assert len(tables) >= sum(len(kind.cases) for kind in kinds), "two cases have one name"
    cases = Cases(
        steps,
        {table: kind.begin for table, (kind, _, _) in tables.items()},
        {table: shards for table, (_, _, shards) in tables.items()},
    )
    cases.begin()
    if settles:
        settled(steps.feed)
    cases.turn({table: statements for table, (_, statements, _) in tables.items()})
    cases.compare()
    if settles:
        cases.settle()
    cases.turn({table: kind.then for table, (kind, _, _) in tables.items()})
    cases.compare()
    cases.settle()
    cases.must_be_followed()


def by_delta_rs(place: Path, columns: Sequence[str], version: int | None = None) -> pa.Table:
    """Columns of a plain table as delta-rs has them, which knows nothing of Catchment."""
    engine = QueryBuilder().register("plain", DeltaTable(place, version=version))
    return pa.table(engine.execute(f"SELECT {', '.join(map(double_quoted, columns))} FROM plain").read_all())


def _texts(rows: pa.Table, names: Mapping[str, str]) -> Rows:
    """The rows of a table under other names, as texts."""
    known = {"_shard": "_shard", **names}
    return Counter(
        _text({known[name]: value for name, value in row.items() if name in known}, set(names.values()))
        for row in rows.to_pylist()
    )


def _text(row: Mapping[str, object], columns: Iterable[str]) -> str:
    """A row of these columns, of which it may lack some: they are NULL. A decimal is its value, as a shard of which the
    column is not altered yet shows fewer digits."""
    values = {name: row.get(name) for name in ("_shard", *sorted(columns))}
    return str({n: v.normalize() if isinstance(v, Decimal) else v for n, v in values.items()})


def _differences(where: str, found: Rows, expected: Rows) -> list[str]:
    if found == expected:
        return []
    more, less = (sorted(one)[:_NAMED_MAX] for one in (found - expected, expected - found))
    return [f"{where}: it has {more}, and lacks {less}"]
