"""A stream reads the log of a shard through one session, whatever the number of transactions is."""

from collections.abc import Iterator

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import Event, Row
from tests.promises.stream.sources import source_of, until_copied, up_to
from tests.world.servers.chosen import chosen_server

TRANSACTIONS = 60


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with chosen_server(server_id=191) as one:
        one.sql("CREATE DATABASE m", "CREATE TABLE m.t (id INT PRIMARY KEY)", "INSERT INTO m.t VALUES (0)")
        yield one


@pytest.mark.promise("a stream does not log in for each transaction")
def test_logins(server: PrivateServer) -> None:
    with (
        server.connect() as writer,
        writer.cursor() as cursor,
        catchment.stream(source_of({"-": server}), rules=["m.*"]) as stream,
    ):
        until_copied(stream)
        logins = []
        for key in range(1, TRANSACTIONS + 1):
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Connections'")
            logins.append(int(cursor.fetchall()[0][1]))
            cursor.execute(f"INSERT INTO m.t VALUES ({key})")

            def came(event: Event, key: int = key) -> bool:
                return isinstance(event, Row) and event.after == {"id": key}

            up_to(stream, came)
    # Once a second it asks where the log ends, and MySQL what is visible there.
    assert logins[-1] - logins[0] < TRANSACTIONS // 3
