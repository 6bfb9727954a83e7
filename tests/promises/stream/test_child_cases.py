"""What foreign keys do to children, case by case: a client is told of it in the transaction of the parent."""

import secrets
from collections.abc import Callable, Iterator
from itertools import takewhile

import pytest

import catchment
from catchment.config import CopyConfig
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import Begin, Commit, Event, Restart, Row
from catchment.serve.stream.stream import Stream
from catchment.serve.stream.tables import Given as GivenRule
from tests.promises.exact.test_cascades import CASES, COLUMNS, FOLLOW, ROWS, TABLES, of
from tests.promises.stream.conftest import Servers
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import copies_done, source_of, until_copied, up_to
from tests.world.canonical import canonical_row, key_of
from tests.world.servers.chosen import chosen_server, on_mysql
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
                rows = self.mirror.rows.get((event.shard, str(event.table)), {})
                had = rows.get(key_of(event.before, key))
                assert had == canonical_row(event.before) or not rows, f"{event}: the client had {had}"
            self.mirror.take(event)
        return events

    def told(self, stream: Stream, *statements: str) -> list[Event]:
        """Run statements, and take what is told up to their end."""
        self.cases += 1
        self.sql(*statements)
        self.sql(f"INSERT INTO done VALUES ({self.cases})")
        return self.take(up_to(stream, self._is_done))

    def copy_to_the_end(self, stream: Stream) -> None:
        """Take what is told until all tables are copied."""
        while not all(copies_done(self.mirror.text)):
            self.take(up_to(stream, lambda event: True))

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


@pytest.fixture(scope="module")
def nameless_server() -> Iterator[PrivateServer]:
    """A server whose log names no columns."""
    settings = {"binlog_row_metadata": "MINIMAL" if on_mysql() else "NO_LOG"}
    with chosen_server(server_id=124, password=secrets.token_hex(12), settings=settings) as server:
        yield server


@pytest.fixture(params=["mariadb", "nameless_server", "mysql_server", "mysql_97_server"])
def client(request: pytest.FixtureRequest, servers: Servers, fresh_schema: Callable[..., str]) -> Client:
    server: PrivateServer = (
        servers["-40"] if request.param == "mariadb" else request.getfixturevalue(request.param)
    )
    mysql = request.param.startswith("mysql")
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


@pytest.fixture
def here(servers: Servers, fresh_schema: Callable[..., str]) -> Client:
    """A client of a server whose tables have the rows of one case, `NAME`."""
    server = servers["-40"]
    found = Client(server, fresh_schema(server), mysql=False)
    found.sql(*TABLES, DONE, *of(NAME, *ROWS))
    return found


NAME = "a parent goes"


def restarted(events: list[Event]) -> dict[str, str]:
    """The tables that began again, with the reasons."""
    return {event.table.name: event.reason for event in events if isinstance(event, Restart)}


def test_what_happens_while_nobody_reads(here: Client) -> None:
    """Nothing shows any more which rows went: the children of what went are copied again, and no other table."""
    source, rules = source_of({"-": here.server}), [f"{here.schema}.*"]
    with catchment.stream(source, rules=rules) as stream:
        here.take(until_copied(stream))
    here.sql(*of(NAME, "DELETE FROM p WHERE id = #3"), "INSERT INTO done VALUES (0)")
    with catchment.stream(source, rules=rules, vgtid=here.mirror.text) as stream:
        found = restarted(here.take(until_copied(stream)))
        assert found.keys() == {"c", "g", "n"}
        assert all("no snapshot of the shard shows any more" in reason for reason in found.values())
        here.must_be_right("behind the copy")
        assert not restarted(here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #4")))
        here.must_be_right("a parent that went later")


def test_keys_that_come_and_go(here: Client) -> None:
    source, rules = source_of({"-": here.server}), [f"{here.schema}.*"]
    with catchment.stream(source, rules=rules) as stream:
        here.take(until_copied(stream))
        assert not restarted(here.told(stream, "ALTER TABLE c DROP FOREIGN KEY fc"))
        here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #3"))
        here.must_be_right("a key that is gone changes no row")
        here.told(stream, *of(NAME, "DELETE FROM c WHERE p = #3"))
        again = f"ALTER TABLE c ADD CONSTRAINT fc FOREIGN KEY (p) REFERENCES p (id) {FOLLOW}"
        assert restarted(here.told(stream, again)).keys() == {"c", "g"}
        here.copy_to_the_end(stream)
        assert not restarted(here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #4")))
        here.must_be_right("a key that came changes rows")
        many = (
            "DELETE FROM p WHERE id = #5",
            "ALTER TABLE c DROP FOREIGN KEY fc",
            "DELETE FROM p WHERE id = #6",
        )
        here.told(stream, *of(NAME, *many))
        here.copy_to_the_end(stream)
        here.must_be_right("a key that went while it changed rows")
        here.keys[f"{here.schema}.late"] = ("id",)
        come = (
            f"CREATE TABLE late (id INT PRIMARY KEY, p INT, FOREIGN KEY fl (p) REFERENCES p (id) {FOLLOW})",
            "INSERT INTO late VALUES (1, #7), (2, #8), (3, #9)",
            "DELETE FROM p WHERE id = #7",
        )
        here.told(stream, *of(NAME, *come))
        here.copy_to_the_end(stream)
        here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #8"))
        assert [row["id"] for row in here.mirror.rows["-", f"{here.schema}.late"].values()] == [3]


def test_keys_that_went_behind_a_position(here: Client) -> None:
    """The catalog does not have a key any more that changed rows behind the position: its child is copied."""
    source, rules = source_of({"-": here.server}), [f"{here.schema}.*"]
    asked = "SELECT @@gtid_executed" if on_mysql() else "SELECT @@gtid_binlog_pos"
    ((position,),) = here.server.sql(asked)
    here.sql(*of(NAME, "DELETE FROM p WHERE id = #3", "ALTER TABLE c DROP FOREIGN KEY fc"))
    with catchment.stream(source, rules=rules, vgtid=[{"gtid": position}]) as stream:
        found: dict[str, str] = {}
        while not found or not all(copies_done(here.mirror.text)):
            found |= restarted(here.take(up_to(stream, lambda event: True)))
        assert {"c", "g"} <= found.keys()
        here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #4"))
    with here.server.connect(database=here.schema).cursor() as cursor:
        for table in ("c", "g", "n"):
            cursor.execute(f"SELECT id FROM {table}")
            have = {row["id"] for row in here.mirror.rows["-", f"{here.schema}.{table}"].values()}
            assert have == {key for (key,) in cursor.fetchall()}, table


def test_keys_that_only_the_server_can_follow(here: Client) -> None:
    """A text is compared by its collation, so nobody else knows which rows went: the child is copied again."""
    here.keys |= {f"{here.schema}.up": ("id",), f"{here.schema}.low": ("id",)}
    here.sql(
        "CREATE TABLE up (id VARCHAR(9) PRIMARY KEY)",
        f"CREATE TABLE low (id INT PRIMARY KEY, up VARCHAR(9), p INT, FOREIGN KEY fu (up) REFERENCES up (id) {FOLLOW},"
        f" FOREIGN KEY fp (p) REFERENCES p (id) {FOLLOW})",
        "INSERT INTO up VALUES ('a'), ('b')",
        *of(NAME, "INSERT INTO low VALUES (1, 'A', NULL), (2, 'b', #3), (3, 'b', #4)"),
    )
    with catchment.stream(source_of({"-": here.server}), rules=[f"{here.schema}.*"]) as stream:
        here.take(until_copied(stream))
        assert not restarted(here.told(stream, *of(NAME, "DELETE FROM p WHERE id = #3")))
        found = restarted(here.told(stream, "DELETE FROM up WHERE id = 'a'"))
        assert found.keys() == {"low"}
        assert "only the server can compare" in found["low"]
        here.copy_to_the_end(stream)
    assert [row["id"] for row in here.mirror.rows["-", f"{here.schema}.low"].values()] == [3]


def test_rules_of_children(here: Client) -> None:
    """A row that a condition takes goes with its parent, and one that gets another value may come or go."""
    first = int(of(NAME, "#0")[0])
    rules: list[GivenRule] = [
        {"match": "c", "filter": f"select id, v, p from c where p <= {first + 3}"},
        {"match": "n", "filter": "select id, p from n where p is not null"},
        f"{here.schema}.*",
    ]
    with catchment.stream(source_of({"-": here.server}), rules=rules) as stream:
        here.take(until_copied(stream))
        here.told(
            stream, *of(NAME, "DELETE FROM p WHERE id = #3", "UPDATE p SET id = #2 + 500 WHERE id = #2")
        )
    with here.server.connect(database=here.schema).cursor() as cursor:
        for table, columns, condition in (
            ("c", "id, v, p", f"p <= {first + 3}"),
            ("n", "id, p", "p IS NOT NULL"),
        ):
            cursor.execute(f"SELECT {columns} FROM {table} WHERE {condition}")
            want = {*cursor.fetchall()}
            assert want
            assert {
                tuple(row.values()) for row in here.mirror.rows["-", f"{here.schema}.{table}"].values()
            } == want
