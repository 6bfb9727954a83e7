"""A stream of a shard whose log stops naming the columns of its rows."""

from collections.abc import Iterator
from typing import Any

import pytest

import catchment
from catchment.config.copying import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import Event, Restart, Row
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, has, source_of, until_copied, up_to, vgtid_of
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

ROWS = 300


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest, mysql_80_build: Build) -> Iterator[PrivateServer]:
    """A shard that names the columns of its rows, with a table."""
    made = (
        PrivateMySQL(mysql_80_build, server_id=192)
        if request.param == "mysql"
        else PrivateServer(server_id=192)
    )
    with made as one:
        one.sql("CREATE DATABASE m", "CREATE TABLE m.t (id INT PRIMARY KEY, a INT UNSIGNED, s VARCHAR(9))")
        values = ", ".join(f"({key}, {4294967295 - key}, 'copied')" for key in range(ROWS))
        one.sql(f"INSERT INTO m.t VALUES {values}")
        yield one


def unnamed(server: PrivateServer) -> None:
    """The log names no columns from here on."""
    level = "MINIMAL" if isinstance(server, PrivateMySQL) else "NO_LOG"
    server.sql(f"SET GLOBAL binlog_row_metadata = {level}")


def after(events: list[Event]) -> list[Any]:
    return [event.after for event in events if isinstance(event, Row)]


@pytest.mark.promise("a stream goes on where a log stops naming columns")
def test_it_goes_on_with_the_catalog(server: PrivateServer) -> None:
    source = source_of({"-": server})
    with catchment.stream(source, rules=["m.*"]) as stream:
        until_copied(stream)
        unnamed(server)
        server.sql("INSERT INTO m.t VALUES (1000, 4294967295, 'told')")
        found = up_to(stream, has("told"))
        assert after(found) == [{"id": 1000, "a": 4294967295, "s": "told"}]
        server.sql(
            "ALTER TABLE m.t ADD b INT UNSIGNED AFTER id", "INSERT INTO m.t VALUES (1001, 7, 8, 'altered')"
        )
        found = up_to(stream, has("altered"))
        assert after(found) == [{"id": 1001, "b": 7, "a": 8, "s": "altered"}]
    server.sql("INSERT INTO m.t VALUES (1002, 9, 10, 'resumed')")
    with catchment.stream(source, rules=["m.*"], vgtid=vgtid_of(found[-1])) as stream:
        found = up_to(stream, has("resumed"))
        assert after(found) == [{"id": 1002, "b": 9, "a": 10, "s": "resumed"}]


def test_it_is_resumed_after_the_names_have_gone(server: PrivateServer) -> None:
    """Its vgtid is one at which half of the table is copied."""
    source, mirror = source_of({"-": server}), Mirror({"m.t": ("id",)})
    with catchment.stream(source, rules=["m.*"], copy=CopyConfig(chunk_rows_max=50)) as stream:
        for event in up_to(stream, has("copied")):
            mirror.take(event)
    assert copies_done(mirror.text) == [False]
    unnamed(server)
    server.sql(
        "UPDATE m.t SET s = 'changed'",
        "DELETE FROM m.t WHERE id = 7",
        "INSERT INTO m.t VALUES (1000, 1, 'last')",
    )
    with catchment.stream(
        source, rules=["m.*"], vgtid=mirror.text, copy=CopyConfig(chunk_rows_max=50)
    ) as stream:
        for event in until_copied(stream):
            mirror.take(event)
        server.sql("UPDATE m.t SET s = 'end' WHERE id = 1000")
        for event in up_to(stream, has("end")):
            mirror.take(event)
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT id, a, s FROM m.t ORDER BY id")
        told = sorted((row["id"], row["a"], row["s"]) for row in mirror.rows["-", "m.t"].values())
        assert told == list(cursor.fetchall())


def test_a_table_that_was_altered_before_its_definition_is_read_restarts_alone(server: PrivateServer) -> None:
    server.sql("CREATE TABLE m.u (id INT PRIMARY KEY)")
    source, mirror = source_of({"-": server}), Mirror({f"m.{name}": ("id",) for name in ("t", "u")})
    with catchment.stream(source, rules=["m.*"]) as stream:
        for event in until_copied(stream):
            mirror.take(event)
    unnamed(server)
    server.sql(
        "INSERT INTO m.t VALUES (1000, 1, 'lost')",
        "ALTER TABLE m.t ADD b INT UNSIGNED AFTER id",
        "INSERT INTO m.t VALUES (1001, 7, 8, 'found')",
        "INSERT INTO m.u VALUES (1)",
    )
    with catchment.stream(source, rules=["m.*"], vgtid=mirror.text) as stream:
        found = up_to(stream, has("found"))
    for event in found:
        mirror.take(event)
    assert [event.table.name for event in found if isinstance(event, Restart)] == ["t"]
    assert sorted(mirror.rows["-", "m.t"]) == [*((key,) for key in range(ROWS)), (1000,), (1001,)]
    assert mirror.rows["-", "m.t"][1001,]["b"] == 7
    assert list(mirror.rows["-", "m.u"]) == [(1,)]
