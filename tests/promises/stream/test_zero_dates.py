"""Rows whose key has no value for a client: a zero date, or a day that no calendar has, in a column of the key."""

from collections.abc import Callable
from datetime import datetime

import pytest

import catchment
from catchment.serve.stream.events import Event, Restart, Row, VGtid
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of, until_copied, up_to

ANY_DATE = "SET sql_mode = 'ALLOW_INVALID_DATES'"
TABLE = "CREATE TABLE t (n INT, at DATETIME NOT NULL, v INT, PRIMARY KEY (n, at))"
GOOD, LATER = datetime(2024, 1, 1), datetime(2024, 1, 2)


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """One shard's, with soft deletes as many applications have them."""
    name = fresh_schema(servers["-40"])
    servers["-40"].sql(TABLE, "INSERT INTO t VALUES (1, '2024-01-01', 1)", database=name)
    return name


def rows(events: list[Event]) -> list[tuple[object, object]]:
    return [
        (event.before and tuple(event.before.values()), event.after and tuple(event.after.values()))
        for event in events
        if isinstance(event, Row)
    ]


@pytest.mark.promise(
    "a stream gives no row of which the key has no value, and restarts its table until the row is corrected"
)
def test_a_row_without_a_key_restarts_its_table(servers: Servers, schema: str) -> None:
    server = servers["-40"]
    with catchment.stream(source_of({"-": server}), rules=[f"{schema}.*"]) as stream:
        assert rows(until_copied(stream)) == [(None, (1, GOOD, 1))]
        zero = "INSERT INTO t VALUES (2, '0000-00-00', 1), (2, '2023-02-30', 2)"
        server.sql(ANY_DATE, zero, database=schema)
        found = up_to(stream, lambda event: isinstance(event, Restart | Row))
        (restart,) = (event for event in found if isinstance(event, Restart))
        assert "key column 'at' holds a zero date or one that no calendar has, in 2 rows" in restart.reason
        assert not restart.gone
        assert rows(found) == []
        server.sql(
            ANY_DATE,
            "DELETE FROM t WHERE at = '0000-00-00'",
            "UPDATE t SET at = '2024-01-02' WHERE n = 2",
            database=schema,
        )
        assert rows(until_copied(stream)) == [(None, (1, GOOD, 1)), (None, (2, LATER, 2))]


def test_a_row_that_is_corrected_comes_as_one_that_is_new(servers: Servers, schema: str) -> None:
    """It was there before the stream began, which was told of no rows."""
    server = servers["-40"]
    zero = "INSERT INTO t VALUES (2, '0000-00-00', 1), (3, '0000-00-00', 2)"
    # On a server at rest a stream begins in front of the last transaction.
    server.sql(
        ANY_DATE, zero, "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1)", database=schema
    )
    with catchment.stream(source_of({"-": server}), vgtid="current", rules=[f"{schema}.*"]) as stream:
        assert isinstance(next(stream), VGtid)
        server.sql(
            ANY_DATE,
            "DELETE FROM t WHERE n = 3",
            "UPDATE t SET v = 3, at = '2024-01-02' WHERE n = 2",
            "UPDATE t SET v = 4 WHERE n = 2",
            database=schema,
        )
        found = up_to(stream, lambda event: isinstance(event, Row) and (event.after or {}).get("v") == 4)
    assert rows(found) == [(None, (2, LATER, 3)), ((2, LATER, 3), (2, LATER, 4))]
