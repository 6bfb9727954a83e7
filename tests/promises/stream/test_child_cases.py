"""What foreign keys do to children, case by case: a client is told of it in the transaction of the parent."""

from collections.abc import Callable, Iterator
from itertools import takewhile

import pytest

import catchment
from catchment.config import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import Begin, Commit, Event, Row
from catchment.serve.stream.stream import Stream
from tests.promises.exact.test_cascades import CASES, COLUMNS, ROWS, TABLES, of
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import source_of, until_copied, up_to
from tests.world.canonical import canonical_row, key_of
from tests.world.servers.launch import with_numbers

DONE = "CREATE TABLE done (id INT PRIMARY KEY)"
KEYS: dict[str, tuple[str, ...]] = {
    table: ("a", "b") if table == "q" else ("id",) for table in (*COLUMNS, "done")
}


class Client:
    """Keeps the rows of one shard, and compares each row that it is told of with the one that it had."""

    def __init__(self, server: PrivateServer, schema: str, *, mysql: bool) -> None:
        self.server, self.schema, self.mysql = server, schema, mysql
        self.keys = {f"{schema}.{table}": key for table, key in KEYS.items()}
        self.mirror = Mirror(self.keys)
        self.cases = 0

    def sql(self, *statements: str) -> None:
        """Run statements in one session."""
        words = map(with_numbers, statements) if self.mysql else statements
        self.server.sql(*words, database=self.schema)

    def take(self, events: list[Event]) -> list[Event]:
        """Take events; the same."""
        for event in events:
            if isinstance(event, Row) and event.before is not None:
                key = self.keys[str(event.table)]
                had = self.mirror.rows[event.shard, str(event.table)].get(key_of(event.before, key))
                assert had == canonical_row(event.before), f"{event}: the client had {had}"
            self.mirror.take(event)
        return events

    def told(self, stream: Stream, *statements: str) -> list[Event]:
        """Run statements, and take what is told up to their end."""
        self.cases += 1
        self.sql(*statements)
        self.sql(f"INSERT INTO done VALUES ({self.cases})")
        return self.take(up_to(stream, self._is_done))

    def _is_done(self, event: Event) -> bool:
        done = isinstance(event, Row) and event.table.name == "done" and event.after
        return bool(done) and event.after["id"] == self.cases  # type: ignore[union-attr,index]

    def must_be_right(self, name: str) -> None:
        """The client's rows are those of the server, which rests."""
        with self.server.connect(database=self.schema).cursor() as cursor:
            for table, columns in COLUMNS.items():
                cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
                want = {*cursor.fetchall()}
                rows = self.mirror.rows.get(("-", f"{self.schema}.{table}"), {}).values()
                have = {tuple(row[column] for column in columns) for row in rows}
                assert have == want, f"{name}, {table}: lacks {want - have}, has {have - want}"


@pytest.fixture(params=["mariadb", "mysql_server", "mysql_97_server"])
def client(
    request: pytest.FixtureRequest, servers: Servers, fresh_schema: Callable[..., str]
) -> Iterator[Client]:
    mysql = request.param != "mariadb"
    server: PrivateServer = request.getfixturevalue(request.param) if mysql else servers["-40"]
    found = Client(server, fresh_schema(server), mysql=mysql)
    found.sql(*TABLES, DONE, *(sql for name in CASES for sql in of(name, *ROWS)))
    return found


@pytest.mark.promise("what foreign keys do to children is told in the transaction of the parent")
def test_each_case(client: Client) -> None:
    source, rules = source_of({"-": client.server}), [f"{client.schema}.*"]
    with catchment.stream(source, rules=rules, copy=CopyConfig(chunk_rows_max=100)) as stream:
        client.take(until_copied(stream))
        client.must_be_right("the copy")
        for name, statements in CASES.items():
            events = client.told(stream, *of(name, *statements.split(";")))
            client.must_be_right(name)
            if name == "a parent goes":
                group = [*takewhile(lambda event: not isinstance(event, Commit), events)]
                assert isinstance(group[0], Begin)
                went = {event.table.name for event in group if isinstance(event, Row) and event.after is None}
                changed = {
                    event.table.name
                    for event in group
                    if isinstance(event, Row) and event.after and event.before
                }
                assert (went, changed) == ({"p", "c", "n", "g"}, {"n", "g"})
        assert not client.mirror.restarts
    with catchment.stream(source, rules=rules, vgtid=client.mirror.text) as stream:
        client.told(stream, "DELETE FROM p")
        client.must_be_right("behind a vgtid")
        assert not client.mirror.restarts, "nothing was written while nobody read"
