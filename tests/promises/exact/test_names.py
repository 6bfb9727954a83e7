"""Columns of whatever name the server takes, those among them that Catchment, its engines and its readers use
themselves: from the copy to the settle, and in every way to read.
"""

import ast
import re
import string
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import catchment
from catchment.api.read import read
from catchment.api.views import views
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import SourceError, Unsupported
from catchment.model.table import RESERVED, without_case
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled

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
    return sorted(named - set(RESERVED))


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
        """Run the feed, and compare rows as Arrow, DuckDB, polars, its views and `verify` have them; then settle."""
        self.steps.run()
        for after_settle in (False, True):
            self._must_be_read_right()
            if not after_settle:
                settled(self.steps.feed)
        endpoints = {endpoint.shard: endpoint for endpoint in self.steps.feed.endpoints()}
        verdict = verification.verify(self.steps.feed, endpoints, Here())
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
    keys = [(*OURS[at : at + 8], "v") for at in range(0, len(OURS), 8)]
    tables = Tables(begin(), keys, key=8)
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


COLUMNS_MAX = 900  # of a table; InnoDB takes 1017


@pytest.mark.wide
def test_columns_named_as_any_word_of_the_code(begin: Begin) -> None:
    words = words_of_the_code()
    assert {"_gtid", "_order", "_change_type", "numrecords"} <= set(words)
    tables = Tables(begin(), [words[at : at + COLUMNS_MAX] for at in range(0, len(words), COLUMNS_MAX)])
    tables.must_be_right()
    tables.change(10)
    tables.must_be_right()


ODD = (
    "\"'`\\ .,;:{}()[]<>=%?*/#@&|~^!-+$\t\n\r\x01\x7f\xa0\xad\u200b\u202e\u0301\u3000\ufeff\uffff_ßéÆñΣςжテ中"
)


def odd_names(random: Random, count: int) -> list[str]:
    """Names that a server takes, of one to 64 characters, different in more than case."""
    found: dict[str, str] = {}
    while len(found) < count:
        kind = random.choice((ODD, ODD + string.ascii_letters, "".join(map(chr, range(0x20, 0xD800)))))
        name = "".join(random.choices(kind, k=random.choice((1, 2, 5, 64)))).rstrip(
            string.whitespace + "\x0b\x0c"
        )
        if name not in ("", "*") and without_case(name) not in found:
            found[without_case(name)] = name
    return list(found.values())


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 60), *(pytest.param(s, 240, marks=pytest.mark.long) for s in (2, 3))]
)
def test_columns_with_odd_names(begin: Begin, seed: int, count: int) -> None:
    names = odd_names(Random(seed), count)
    tables = Tables(begin(), [names[at : at + 16] for at in range(0, count - 12, 16)], key=2)
    tables.must_be_right()
    tables.change(10)
    tables.add(names[count - 12 :])
    tables.change(20)
    tables.must_be_right()


HASHED = "CREATE TABLE t (id INT PRIMARY KEY, DB_ROW_HASH_1 INT, b TEXT{})"


@pytest.mark.parametrize("unique", ["", ", UNIQUE (b)"])
@pytest.mark.mariadb("MySQL has no UNIQUE key of long columns")
def test_a_column_named_as_one_that_mariadb_hides(begin: Begin, unique: str) -> None:
    steps = begin()
    steps.sql("a", HASHED.format(unique), "INSERT INTO t VALUES (1, 2, 'a')")
    steps.run()
    steps.sql("a", "INSERT INTO t VALUES (2, 3, 'b')", "UPDATE t SET DB_ROW_HASH_1 = 4 WHERE id = 1")
    steps.must_be_equal("t", "id", "DB_ROW_HASH_1", "b")
    steps.sql("a", "ALTER TABLE t ADD DB_ROW_HASH_7 BIGINT UNSIGNED", "UPDATE t SET DB_ROW_HASH_7 = 4")
    with pytest.raises(SourceError, match="DB_ROW_HASH_7"):
        steps.run()


@pytest.mark.mariadb("MySQL hides no column of that name")
def test_a_column_that_the_log_shows_as_a_hidden_one_is_refused(begin: Begin) -> None:
    steps = begin()
    steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, DB_ROW_HASH_1 BIGINT UNSIGNED)")
    with pytest.raises(
        Unsupported, match=r"column DB_ROW_HASH_1: MariaDB names .*rename the column or exclude"
    ):
        steps.run()


def test_a_column_that_mysql_takes_for_all_columns_is_refused(
    mysql_server: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": mysql_server}, fresh_schema(mysql_server))
    steps.sql("a", "CREATE TABLE t (`*` INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 2)")
    with pytest.raises(Unsupported, match=r"column \*: this MySQL takes the name for all columns"):
        steps.run()


@pytest.mark.parametrize(
    "name",
    [
        "_shard",
        "_EPOCH",
        "_\u017fhard",
        *(
            pytest.param(name, marks=pytest.mark.wide)
            for name in (*sorted({*RESERVED} - {"_shard"}), "_Shard")
        ),
    ],
)
def test_names_that_the_lake_shows_are_refused(
    begin: Begin, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin()
    steps.sql("a", f"CREATE TABLE t (id INT PRIMARY KEY, {quoted(name)} INT)")
    with pytest.raises(Unsupported, match=f"column {name}: the lake's tables use this name themselves"):
        steps.run()
    steps.sql("a", f"ALTER TABLE t DROP {quoted(name)}")
    steps.run()
    steps.sql("a", f"ALTER TABLE t ADD {quoted(name)} INT")
    steps.must_stop(caplog, "t", f"column {name} was added to .*: the lake's tables use this name themselves")


# Letters of which the servers do not know that one is the other in another case (seen: MariaDB 10.11, MySQL 8.0).
LETTERS = [("s", "\u017f"), ("\u0131", "i"), ("\u03bc", "\u00b5")]
ALIKE = [("\u023a", "\u2c65"), ("\u0180", "\u0243"), ("\u00df", "\u1e9e")]


def test_columns_that_some_reader_takes_for_one(begin: Begin) -> None:
    columns = [letter for pair in LETTERS for letter in pair]
    tables = Tables(begin(), [columns, columns[::-1]])
    tables.must_be_right()
    tables.add(["v", "\u03c3", "\u03c2"])
    tables.change(10)
    tables.must_be_right()
    for table in tables.columns:
        shape = read(tables.steps.feed, f"{tables.steps.schema}.{table}").shape
        assert len({without_case(column.physical) for column in shape.columns}) == len(tables.columns[table])


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_columns_that_differ_only_in_case_are_refused(
    begin: Begin, one: str, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin()
    steps.sql("a", f"CREATE TABLE t (id INT PRIMARY KEY, {one} INT, {other} INT)")
    with pytest.raises(SourceError, match=f"columns {one} and {other} differ only in the case of a letter"):
        steps.run()
    steps.sql("a", f"ALTER TABLE t DROP {one}")
    steps.run()
    steps.sql("a", f"ALTER TABLE t ADD {one} INT FIRST", "INSERT INTO t VALUES (1, 1, 1)")
    steps.must_stop(caplog, "t", f"columns {one} and {other} differ only in the case of a letter")
