"""Columns of whatever name the server takes, those among them that Catchment, its engines and its readers use
themselves: from the copy to the settle, and in every way to read.
"""

import ast
import re
import string
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
import pytest

import catchment
from catchment.api.read import read
from catchment.api.views import views
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import SourceError, Unsupported
from catchment.model.table import RESERVED, without_case
from tests.promises.exact.cases import every_epoch, stale_since
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


class Named(NamedTuple):
    """Names of a table's INT columns, of which the first ones are the key; `later`: of those that are added."""

    columns: Sequence[str]
    key: int
    later: Sequence[str] = ()


class Tables:
    """Tables of such columns."""

    def __init__(self, steps: Steps, named: Iterable[Named]) -> None:
        self.steps = steps
        self._named = {f"t{number}": one for number, one in enumerate(named)}
        self.columns = {table: list(one.columns) for table, one in self._named.items()}
        for table, one in self._named.items():
            declared = ", ".join(
                f"{quoted(name)} INT{' NOT NULL' if at < one.key else ''}"
                for at, name in enumerate(one.columns)
            )
            keys = ", ".join(map(quoted, one.columns[: one.key]))
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

    def add(self) -> None:
        """Add the columns that come later, where a table has none of that name."""
        for table, one in self._named.items():
            here = self.columns[table]
            new = [name for name in one.later if name.lower() not in {known.lower() for known in here}]
            if new:
                self.steps.sql(
                    "a", f"ALTER TABLE {table} " + ", ".join(f"ADD COLUMN {quoted(n)} INT" for n in new)
                )
                here += new

    def must_be_followed(self) -> None:
        """Compare what was copied, and what rows and added columns make of it."""
        self.must_be_right()
        self.change(10)
        self.add()
        self.change(20)
        self.must_be_right()

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


COLUMNS_MAX = 900  # of a table; InnoDB takes 1017


def test_columns_named_as_any_word_of_the_code(begin: Begin) -> None:
    words = words_of_the_code()
    assert {"_gtid", "_order", "_change_type", "numrecords"} <= set(words)
    tables = (Named(words[at : at + COLUMNS_MAX], 1) for at in range(0, len(words), COLUMNS_MAX))
    Tables(begin(), tables).must_be_followed()


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


def odd_tables(seed: int, count: int) -> list[Named]:
    """Tables of columns with odd names, and more of them that come later."""
    names = odd_names(Random(seed), count)
    return [Named(names[at : at + 16], 2, names[count - 12 :]) for at in range(0, count - 12, 16)]


# Letters of which the servers do not know that one is the other in another case (seen: MariaDB 10.11, MySQL 8.0).
LETTERS = ("s", "\u017f", "\u0131", "i", "\u03bc", "\u00b5")


@pytest.mark.promise("a column may have any name that the server accepts, except the lake's own")
def test_columns_of_any_name(begin: Begin) -> None:
    """Those of ours, odd ones, and such that some reader takes for one."""
    steps = begin()
    named = [
        *(Named(letters, 1, ["v", "\u03c3", "\u03c2"]) for letters in (LETTERS, LETTERS[::-1])),
        *(Named((*OURS[at : at + 8], "v"), 8) for at in range(0, len(OURS), 8)),
        *(Named(names, 2, OURS) for names in (("id", "v"), ("_order", "_seq", "v"))),
        *odd_tables(1, 60),
    ]
    tables = Tables(steps, named)
    tables.must_be_followed()
    for table in ("t0", "t1"):
        shape = read(steps.feed, f"{steps.schema}.{table}").shape
        assert len({without_case(column.physical) for column in shape.columns}) == len(tables.columns[table])


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
def test_columns_with_odd_names(begin: Begin, seed: int) -> None:
    Tables(begin(), odd_tables(seed, 240)).must_be_followed()


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


ALIKE = (("\u023a", "\u2c65"), ("\u0180", "\u0243"), ("\u00df", "\u1e9e"))


def test_names_that_are_refused(begin: Begin) -> None:
    """When the feed begins one message says it of all; a table that gets such a column is stale."""
    steps = begin()
    own = {f"own{n}": name for n, name in enumerate((*sorted(RESERVED), "_EPOCH", "_\u017fhard", "_Shard"))}
    steps.sql("a", *(f"CREATE TABLE {t} (id INT PRIMARY KEY, {quoted(name)} INT)" for t, name in own.items()))
    with pytest.raises(Unsupported) as refused:
        steps.run()
    for table, name in own.items():
        said = f"{steps.schema}.{table} on shard a: column {name}: the lake's tables use this name themselves"
        assert said in str(refused.value), refused.value
    steps.sql("a", *(f"ALTER TABLE {table} DROP {quoted(name)}" for table, name in own.items()))
    alike = {f"alike{n}": pair for n, pair in enumerate(ALIKE)}
    for table, (one, other) in alike.items():
        steps.sql("a", f"CREATE TABLE {table} (id INT PRIMARY KEY, {one} INT, {other} INT)")
        with pytest.raises(
            SourceError, match=f"columns {one} and {other} differ only in the case of a letter"
        ):
            steps.run()
        steps.sql("a", f"ALTER TABLE {table} DROP {one}")
    steps.run()
    last = every_epoch(steps)[-1].manifest.epoch

    steps.sql("a", *(f"ALTER TABLE {table} ADD {quoted(name)} INT" for table, name in own.items()))
    for table, (one, _) in alike.items():
        steps.sql("a", f"ALTER TABLE {table} ADD {one} INT FIRST", f"INSERT INTO {table} VALUES (1, 1, 1)")
    steps.run()
    stale = stale_since(steps, last)
    assert stale.keys() == {*own, *alike}
    for table, name in own.items():
        assert f"column {name} was added to {steps.schema}.{table}: the lake's tables use" in stale[table], (
            stale[table]
        )
    for table, (one, other) in alike.items():
        assert f"columns {one} and {other} differ only in the case of a letter" in stale[table], stale[table]
