"""Children of which the rules leave a parent out: no log has what it does to them, so no row of them is told, and a
client hears why."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from catchment.serve.stream.events import Event, Restart, Row
from catchment.serve.stream.stream import Stream
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import source_of, until_copied, up_to

TABLES = (
    "CREATE TABLE p (id INT PRIMARY KEY)",
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p))",
    "CREATE TABLE g (id INT PRIMARY KEY, c INT)",
    "CREATE TABLE done (id INT PRIMARY KEY)",
    "INSERT INTO p VALUES (1), (2), (3)",
    "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO g VALUES (1, 1), (2, 2), (3, 3)",
)
KEY = "ALTER TABLE c ADD CONSTRAINT fc FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE"
BELOW = "ALTER TABLE g ADD CONSTRAINT fg FOREIGN KEY (c) REFERENCES c (id) ON DELETE SET NULL"
WHY = "its foreign key fc ON DELETE CASCADE changes rows that are in no log, and {schema}.p is not among the tables"


@dataclass
class Client:
    """Keeps the rows of one shard."""

    server: PrivateServer
    schema: str
    mirror: Mirror = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        self.mirror = Mirror({f"{self.schema}.{table}": ("id",) for table in ("p", "c", "g", "done", "late")})

    def stream(self, *left_out: str) -> Stream:
        rules = [f"{self.schema}.*", *(f"!{self.schema}.{table}" for table in left_out)]
        return catchment.stream(source_of({"-": self.server}), rules=rules, vgtid=self.mirror.text or None)

    def copy(self, stream: Stream, *statements: str) -> None:
        """Run statements, and take what is told until all tables are copied."""
        for statement in statements:
            self.server.sql(statement, database=self.schema)
        for event in until_copied(stream):
            self.mirror.take(event)

    def told(self, stream: Stream, *statements: str) -> list[Event]:
        """Run statements, and take what is told up to their end."""
        self.done += 1
        self.server.sql(*statements, f"INSERT INTO done VALUES ({self.done})", database=self.schema)

        def is_done(event: Event) -> bool:
            done = isinstance(event, Row) and event.table.name == "done" and event.after
            return bool(done) and event.after["id"] == self.done  # type: ignore[union-attr,index]

        found = up_to(stream, is_done)
        for event in found:
            self.mirror.take(event)
        return found

    def must_be_right(self, *tables: str) -> None:
        """The client's rows are those of the server, which rests."""
        for table in tables:
            want = {key for (key,) in self.server.sql(f"SELECT id FROM {table}", database=self.schema)}
            rows = self.mirror.rows.get(("-", f"{self.schema}.{table}"), {})
            assert {row["id"] for row in rows.values()} == want, table

    def must_have_none(self, table: str) -> None:
        assert not self.mirror.rows.get(("-", f"{self.schema}.{table}"))


def restarts(events: list[Event]) -> dict[str, str]:
    """The tables that began again, with the reasons."""
    return {event.table.name: event.reason for event in events if isinstance(event, Restart)}


@pytest.fixture
def client(servers: Servers, fresh_schema: Callable[..., str]) -> Client:
    server = servers["-40"]
    found = Client(server, fresh_schema(server))
    server.sql(*TABLES, database=found.schema)
    return found


@pytest.mark.promise("a stream tells no row of a child whose parent its rules leave out, and says why")
def test_keys_to_a_parent_that_is_left_out(client: Client) -> None:
    """They come while the stream follows, to a table with rows and with a table of its own; and one goes again."""
    with client.stream("p") as stream:
        client.copy(stream)
        said = restarts(client.told(stream, KEY, BELOW))
        assert said.keys() == {"c", "g"}
        assert WHY.format(schema=client.schema) in said["c"]
        assert f"{client.schema}.c is not among the tables" in said["g"]
        late = "CREATE TABLE late (id INT PRIMARY KEY, p INT, FOREIGN KEY fl (p) REFERENCES p (id) ON DELETE CASCADE)"
        said = restarts(client.told(stream, late, "INSERT INTO late VALUES (1, 1)"))
        assert said.keys() == {"late"}
        assert f"{client.schema}.p is not among the tables" in said["late"]
        client.told(stream, "DELETE FROM p WHERE id = 1")
        for table in ("c", "g", "late"):
            client.must_have_none(table)
        client.copy(
            stream, "DROP TABLE late", "ALTER TABLE c DROP FOREIGN KEY fc", "INSERT INTO c VALUES (9, 2)"
        )
        client.told(stream, "DELETE FROM p WHERE id = 2", "DELETE FROM c WHERE id = 9")
        client.must_be_right("c", "g", "done")


def test_rules_that_leave_a_parent_out_later(client: Client) -> None:
    """Where a stream begins, and where it goes on with other rules than before."""
    client.server.sql(KEY, BELOW, database=client.schema)
    with pytest.raises(Unsupported, match="p is not among the tables"):
        client.stream("p")
    with client.stream() as stream:
        client.copy(stream)
    with pytest.raises(
        Unsupported, match="p, which an earlier stream had: make the key RESTRICT, take its parent"
    ):
        client.stream("p")
    with client.stream("p", "c", "g") as stream:
        client.told(stream)


def test_rules_that_take_a_child_beside_its_parent_later(client: Client) -> None:
    client.server.sql(KEY, BELOW, database=client.schema)
    with client.stream("c", "g") as stream:
        client.copy(stream)
    with client.stream() as stream:
        client.copy(stream)
        client.told(stream, "DELETE FROM p WHERE id = 1")
        client.must_be_right("p", "c", "g")
