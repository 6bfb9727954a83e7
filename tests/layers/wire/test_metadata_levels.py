"""Logs that do not describe themselves (binlog_row_metadata), read by definitions; of a table that does not fit no row
is decoded."""

import re
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.definition import DefinedColumn, Definition, hidden_name
from catchment.model.errors import Undescribed, Unsupported
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.catalog import read_definition
from catchment.source.session import connect
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import Unreadable
from tests.layers.wire.dumps import decoded, end_of_log, read_dump

T = TableId("m", "t")


def defined(server: PrivateServer, table: TableId = T) -> Definition:
    endpoint = Endpoint("a", server.host, server.port, "catchment", server.password)
    with connect(endpoint) as session:
        return read_definition(session, table)


@pytest.fixture(scope="module")
def plain() -> Any:
    """A server whose log does not describe itself."""
    with PrivateServer(server_id=9, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        server.sql("CREATE DATABASE m")
        yield server


def log_of(server: PrivateServer, *statements: str) -> tuple[bytes, LogOffset]:
    start = end_of_log(server)
    server.sql(*statements)
    return read_dump(server, start), start


def test_a_hash_column_that_only_the_log_shows(plain: PrivateServer) -> None:
    plain.sql("CREATE OR REPLACE TABLE m.t (id INT PRIMARY KEY, a TEXT, UNIQUE (a))")
    raw, start = log_of(plain, "INSERT INTO m.t VALUES (1, 'x')")
    (images,) = decoded(raw, start, wanted=[T], definitions={T: defined(plain)}).take_images()
    assert [c.name for c in images.table.columns] == ["id", "a", hidden_name("DB_ROW_HASH_1")]
    assert images.batch.column("a").to_pylist() == ["x"]


def test_labels_that_the_catalog_does_not_tell(plain: PrivateServer) -> None:
    """It shows characters beyond the basic plane as question marks; such a definition would give wrong text."""
    plain.sql("CREATE OR REPLACE TABLE m.t (id INT PRIMARY KEY, e ENUM('a','😀') CHARACTER SET utf8mb4)")
    with pytest.raises(
        Unsupported, match=r"m\.t, column e: a '\?' or U\+FFFD in the labels .* binlog_row_metadata=FULL"
    ):
        defined(plain)


DEFINED = "id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10), c DECIMAL(9,2), d BIT(5), e ENUM('x'), f TEXT, g CHAR(3)"


# What an ALTER does behind the definition, and what the rows of a MINIMAL log show of it.
UNSEEN = {
    "DROP a": "it has 7 columns, not 8",
    "ADD z INT": "it has 9 columns",
    "MODIFY a BIGINT NOT NULL": "column 2 has type code 8",
    "MODIFY a INT": "column 2 is nullable, unlike a",
    "MODIFY b VARCHAR(11)": r"b is varchar\(10\)",
    "MODIFY c DECIMAL(9,3)": r"c is decimal\(9,2\)",
    "MODIFY d BIT(6)": r"d is bit\(5\)",
    "MODIFY f LONGTEXT": "f is text",
    "MODIFY g CHAR(4)": r"g is char\(3\)",
    "MODIFY a INT UNSIGNED NOT NULL": "column 2 is unsigned",
    "MODIFY b VARCHAR(40) CHARACTER SET latin1": "column 3 is of character set latin1",
}
SAME_IN_FULL = ("MODIFY a INT", "MODIFY b VARCHAR(11)", "MODIFY f LONGTEXT", "MODIFY g CHAR(4)")


def unreadable(decoder: LogDecoder) -> Unreadable:
    """What it says of the one table of which it decodes no row."""
    assert not decoder.take_images()
    (found,) = (fact for fact in decoder.facts if isinstance(fact, Unreadable))
    return found


@pytest.mark.parametrize("level", ["MINIMAL", "FULL"])
def test_an_alter_that_no_one_saw_stops_its_table(
    plain: PrivateServer, level: str, subtests: pytest.Subtests
) -> None:
    tables = {alter: TableId("m", f"unseen{number}") for number, alter in enumerate(UNSEEN)}
    plain.sql(*(f"CREATE OR REPLACE TABLE {table} ({DEFINED})" for table in tables.values()))
    definitions = {table: defined(plain, table) for table in tables.values()}
    plain.sql(*(f"ALTER TABLE {table} {alter}" for alter, table in tables.items()))
    raw, start = log_of(
        plain,
        f"SET GLOBAL binlog_row_metadata = {level}",
        *(f"INSERT IGNORE INTO {table} (id) VALUES (1)" for table in tables.values()),
        "SET GLOBAL binlog_row_metadata = NO_LOG",
    )
    for alter, fault in UNSEEN.items():
        with subtests.test(alter):
            table = tables[alter]
            known = {table: definitions[table]}
            if level == "FULL" and alter in SAME_IN_FULL:
                assert decoded(raw, start, wanted=[table], definitions=known).take_images()
                continue
            said = fault if level == "MINIMAL" else "the log describes"
            found = unreadable(decoded(raw, start, wanted=[table], definitions=known))
            assert found.at.file == start.file
            assert found.table == table
            assert re.search(said, found.why)


def test_the_order_of_columns_is_compared(plain: PrivateServer) -> None:
    plain.sql("CREATE OR REPLACE TABLE m.t (id INT PRIMARY KEY, a INT, b INT)")
    known = defined(plain)
    turned = Definition(T, (known.columns[0], known.columns[2], known.columns[1]), ("id",), known.charset)
    raw, start = log_of(
        plain, "SET GLOBAL binlog_row_metadata = FULL", "INSERT INTO m.t VALUES (1, 2, 3)",
        "SET GLOBAL binlog_row_metadata = NO_LOG",
    )  # fmt: skip
    assert "the order of columns" in unreadable(decoded(raw, start, wanted=[T], definitions={T: turned})).why


def test_from_full_to_none_and_back(plain: PrivateServer) -> None:
    plain.sql("CREATE OR REPLACE TABLE m.t (id INT PRIMARY KEY, a INT UNSIGNED)")
    statements = []
    for number, level in enumerate(("FULL", "NO_LOG", "MINIMAL", "FULL", "NO_LOG")):
        statements += [
            f"SET GLOBAL binlog_row_metadata = {level}",
            f"INSERT INTO m.t VALUES ({number}, 4294967295)",
        ]
    raw, start = log_of(plain, *statements)
    (images,) = decoded(raw, start, wanted=[T], definitions={T: defined(plain)}).take_images()
    assert images.batch.column("id").to_pylist() == [0, 1, 2, 3, 4]
    assert set(images.batch.column("a").to_pylist()) == {4294967295}
    with pytest.raises(Undescribed, match=r"m\.t: the table map has no column names"):
        decoded(raw, start, wanted=[T])


def test_definitions_change_where_the_log_says_so(plain: PrivateServer) -> None:
    plain.sql("CREATE OR REPLACE TABLE m.t (id INT PRIMARY KEY, a INT, b INT)")
    before = defined(plain)
    raw, start = log_of(
        plain,
        "INSERT INTO m.t VALUES (1, 2, 3)",
        "ALTER TABLE m.t DROP a, ADD n INT FIRST",
        "INSERT INTO m.t VALUES (7, 2, 4)",
        "DROP TABLE m.t",
        "CREATE TABLE m.t (other TEXT)",
        "INSERT INTO m.t VALUES ('x')",
    )
    n = DefinedColumn("n", "int")
    after = Definition(T, (n, before.columns[0], before.columns[2]), ("id",), before.charset)

    def on_ddl(fact: Any) -> dict[TableId, Definition | None]:
        return {T: after} if fact.sql.startswith("ALTER") else {T: None}

    first, second = decoded(raw, start, wanted=[T], definitions={T: before}, on_ddl=on_ddl).take_images()
    assert first.batch.select(["id", "a", "b"]).to_pylist() == [{"id": 1, "a": 2, "b": 3}]
    assert second.batch.select(["n", "id", "b"]).to_pylist() == [{"n": 7, "id": 2, "b": 4}]
