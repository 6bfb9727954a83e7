"""What a stream tells of DDL, and of columns that come with it."""

import pytest

import catchment
from catchment.serve.stream.events import CopyCompleted, Ddl, Restart
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import has, rows, source_of, until_copied, up_to


def test_ddl(servers: Servers, schema: str) -> None:
    """Columns that come with a value, and those that go; tables that are emptied, that come, and that go."""
    server = servers["-40"]
    with catchment.stream(source_of({"-": server}), rules=[f"{schema}.*"]) as stream:
        until_copied(stream)
        server.sql(
            "ALTER TABLE t1 ADD COLUMN n INT NOT NULL DEFAULT 5, DROP COLUMN val",
            "TRUNCATE TABLE t2",
            "ALTER TABLE t1 RENAME COLUMN n TO m",
            "INSERT INTO t1 VALUES (3, 7)",
            database=schema,
        )
        found = up_to(stream, has(7))
        told = [event for event in found if isinstance(event, Ddl)]
        assert [(one.table.name, one.added, one.dropped, one.renamed, one.emptied) for one in told] == [
            ("t1", {"n": 5}, ("val",), {}, False),
            ("t2", {}, (), {}, True),
            ("t1", {}, (), {"n": "m"}, False),
        ]
        assert told[0].statement.startswith("ALTER TABLE t1")
        server.sql("ALTER TABLE t1 MODIFY m VARCHAR(9) NOT NULL", database=schema)
        found = up_to(stream, lambda event: isinstance(event, CopyCompleted))
        assert [event.table.name for event in found if isinstance(event, Restart)] == ["t1"]
        assert rows(found) == [("t1", None, (1, "5")), ("t1", None, (2, "5")), ("t1", None, (3, "7"))]
        server.sql(
            "DROP TABLE t1",
            "CREATE TABLE t3 (a INT PRIMARY KEY)",
            "INSERT INTO t3 VALUES (8)",
            database=schema,
        )
        found = up_to(stream, has(8))
        assert [(one.table.name, one.gone) for one in found if isinstance(one, Restart)] == [("t1", True)]


@pytest.mark.mariadb("types of its own")
def test_columns_of_types_that_the_log_shows_as_binary(servers: Servers, schema: str) -> None:
    """The statement says what they are, also behind another name and where a column of bytes takes the name."""
    server, told = servers["-40"], "123e4567-e89b-12d3-a456-426614174000"
    with catchment.stream(source_of({"-": server}), rules=[f"{schema}.t1"]) as stream:
        until_copied(stream)
        server.sql(
            "ALTER TABLE t1 ADD COLUMN u UUID NULL, ADD COLUMN i INET6",
            f"INSERT INTO t1 VALUES (3, 'c', '{told}', '::7')",
            "ALTER TABLE t1 RENAME COLUMN u TO w",
            f"INSERT INTO t1 VALUES (4, 'd', '{told}', NULL)",
            "ALTER TABLE t1 DROP COLUMN i",
            "ALTER TABLE t1 ADD COLUMN i BINARY(16) NULL",
            f"INSERT INTO t1 VALUES (5, 'e', '{told}', REPEAT('b', 16))",
            database=schema,
        )
        found = up_to(stream, has("e"))
    assert rows(found) == [
        ("t1", None, (3, "c", told, "::7")),
        ("t1", None, (4, "d", told, None)),
        ("t1", None, (5, "e", told, b"b" * 16)),
    ]
