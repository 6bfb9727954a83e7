"""Columns of whatever name the server takes, those among them that Catchment, its engines and its readers use
themselves: from the copy to the fold, and in every way to read.
"""

import ast
import re
import string
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import duckdb
import pytest
from pyspark import SparkContext

import catchment
from catchment.api.read import read
from catchment.api.views import views
from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.flow.sink.fold import fold
from catchment.model.definition import HIDDEN
from catchment.model.table import RESERVED
from catchment.run import verify as verification
from tests.exact.steps import Steps, run_here

Begin = Callable[..., Steps]

# Of images of the log, of changes, of the Spark source, and those that DuckDB, Spark and Delta show beside columns.
OURS = (
    *("_side", "_op", "_seq", "_group", "side", "op", "seq", "group", "deleted", "shard", "epoch", "part"),
    *("_change_type", "_commit_version", "_commit_timestamp", "_gtid", "_order", "ordinal", "_metadata"),
    *("c", "n", "r", "b", "base", "changes", "rowid", "filename", "file_row_number", "file_index", "_base"),
    *("min._epoch", "max._epoch", "partition._part", "num_records", "path", "stats", "{base}", "{changes}"),
)


def quoted(name: str) -> str:
    """A name as the server takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def words_of_the_code() -> list[str]:
    """Every string of the product's source that a server takes as the name of a column, once in any case."""
    found = set()
    for module in Path(catchment.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value.lower())
    named = {word for word in found if re.fullmatch(r"[\w.]{1,64}", word, re.ASCII)}
    return sorted(named - set(RESERVED) - {HIDDEN.lower()})


class Tables:
    """Tables of INT columns of the given names; the first column, or the first two, are the key."""

    def __init__(self, steps: Steps, columns: Sequence[Sequence[str]], key: int = 1) -> None:
        self.steps = steps
        self.columns = {f"t{number}": list(names) for number, names in enumerate(columns)}
        for table, names in self.columns.items():
            declared = ", ".join(
                f"{quoted(name)} INT{' NOT NULL' if at < key else ''}" for at, name in enumerate(names)
            )
            keys = ", ".join(map(quoted, names[:key]))
            steps.sql("a", f"CREATE TABLE {table} ({declared}, PRIMARY KEY ({keys}))")
            steps.sql("a", *(self._insert(table, number) for number in range(1, 6)))

    def change(self, by: int) -> None:
        """Insert, update, move to another key, and delete."""
        for table, names in self.columns.items():
            key, last = quoted(names[0]), quoted(names[-1])
            self.steps.sql(
                "a",
                self._insert(table, by + 1),
                self._insert(table, by + 2),
                f"UPDATE {table} SET {last} = {by + 3} WHERE {key} = 2",
                f"UPDATE {table} SET {key} = {by + 4} WHERE {key} = 3",
                f"DELETE FROM {table} WHERE {key} = {by + 1}",
            )

    def add(self, names: Iterable[str]) -> None:
        """Add columns to every table that has none of that name."""
        for table in self.columns:
            here = self.columns[table]
            new = [name for name in names if name.lower() not in {known.lower() for known in here}]
            if new:
                self.steps.sql(
                    "a", f"ALTER TABLE {table} " + ", ".join(f"ADD COLUMN {quoted(n)} INT" for n in new)
                )
                here += new

    def must_be_right(self) -> None:
        """Run the feed, and compare rows as Arrow, DuckDB, polars, its views and `verify` have them; then fold."""
        self.steps.run()
        for folded in (False, True):
            self._must_be_read_right()
            if not folded:
                self._fold()
        endpoints = {endpoint.shard: endpoint for endpoint in self.steps.feed.endpoints()}
        verdict = verification.verify(self.steps.feed, endpoints, cast(SparkContext, None))
        assert verdict.differences == 0, verdict.found
        assert len(verdict.rows) == len(self.columns)

    def _must_be_read_right(self) -> None:
        with duckdb.connect() as connection:
            connection.execute(views(self.steps.feed))
            for table, names in self.columns.items():
                wanted = self._of_source(table)
                state = read(self.steps.feed, f"{self.steps.schema}.{table}")
                rows = state.arrow()
                assert rows.schema.names == ["_shard", "_epoch", *names]
                assert sorted(zip(*(rows[name].to_pylist() for name in names), strict=True)) == wanted
                chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
                for source in (f"({state.sql()})", f"{self.steps.schema}.{table}"):
                    assert sorted(connection.sql(f"SELECT {chosen} FROM {source}").fetchall()) == wanted
                frame = state.polars()
                assert sorted(zip(*(frame[name].to_list() for name in names), strict=True)) == wanted

    def _of_source(self, table: str) -> list[tuple[Any, ...]]:
        chosen = ", ".join(map(quoted, self.columns[table]))
        rows = self.steps.servers["a"].sql(f"SELECT {chosen} FROM {self.steps.schema}.{table}")
        return sorted(tuple(row) for row in rows)

    def _fold(self) -> None:
        feed = self.steps.feed
        newest = EpochsTable(feed.sink.path, feed.name).newest()
        assert newest is not None
        for shape in newest.manifest.shapes:
            fold(feed.sink.path, shape, feed.name, newest.fence)

    def _insert(self, table: str, number: int) -> str:
        names = self.columns[table]
        values = ", ".join(str(number * 1000 + at if at else number) for at, _ in enumerate(names))
        return f"INSERT INTO {table} ({', '.join(map(quoted, names))}) VALUES ({values})"


@pytest.fixture
def begin(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Begin:
    """A feed that has not begun, of one shard and an empty schema."""
    run_here(monkeypatch)

    def made(directory: Path = tmp_path) -> Steps:
        return Steps(directory, {"a": shard}, fresh_schema(shard))

    return made


def test_columns_named_as_ours(begin: Begin) -> None:
    orders = [OURS, OURS[::-1], *(("id", name) for name in OURS), *((name, "v") for name in OURS)]
    tables = Tables(begin(), orders)
    tables.must_be_right()
    tables.change(10)
    tables.must_be_right()


def test_columns_named_as_ours_and_added_later(begin: Begin) -> None:
    tables = Tables(begin(), [("id", "v"), ("_order", "_seq", "v")], key=2)
    tables.must_be_right()
    tables.change(10)
    tables.add(OURS)
    tables.change(20)
    tables.must_be_right()


def test_columns_named_as_any_word_of_the_code(begin: Begin) -> None:
    words = words_of_the_code()
    assert {"_gtid", "_order", "_change_type", "num_records"} <= set(words)
    tables = Tables(begin(), [words, words[::-1]])
    tables.must_be_right()
    tables.change(10)
    tables.must_be_right()


ODD = (
    "\"'`\\ .,;:{}()[]<>=%?*/#@&|~^!-+$\t\n\r\x01\x7f\xa0\xad\u200b\u202e\u0301\u3000\ufeff\uffff_ßéÆñΣςжテ中"
)


def folded(name: str) -> str:
    return name.upper().casefold()


def odd_names(random: Random, count: int) -> list[str]:
    """Names that a server takes, of one to 64 characters, different in more than case."""
    found: dict[str, str] = {}
    while len(found) < count:
        kind = random.choice((ODD, ODD + string.ascii_letters, "".join(map(chr, range(0x20, 0xD800)))))
        name = "".join(random.choices(kind, k=random.choice((1, 2, 5, 64)))).rstrip(
            string.whitespace + "\x0b\x0c"
        )
        if name and folded(name) not in found:
            found[folded(name)] = name
    return list(found.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_columns_with_odd_names(begin: Begin, seed: int) -> None:
    random = Random(seed)
    names = odd_names(random, 240)
    tables = Tables(begin(), [names[at : at + 20] for at in range(0, 200, 20)], key=2)
    tables.must_be_right()
    tables.change(10)
    tables.add(names[200:])
    tables.change(20)
    tables.must_be_right()
