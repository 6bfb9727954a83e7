"""Arrow Flight: one table's rows in batches, by pyarrow's own client."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from catchment.serve.hub import turnstile
from catchment.serve.hub.hub import Hub
from catchment.serve.server.admission import Lock
from catchment.serve.server.feeds import Feeds, Served
from catchment.serve.stream.source import source_of as stream_source
from tests.promises.serve.server import FEED, TOKEN, feed_file, free_port, server_file, serving
from tests.promises.serve.test_shared import COPY, TABLES, write
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.patience import PATIENCE_SECONDS, until

BEARER = f"Bearer {TOKEN}"


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """One table with a row on every shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(*TABLES, database=name)
    return name


@contextmanager
def service(servers: Servers, directory: Path) -> Iterator[tuple[int, Hub]]:
    """The port of Flight, and the clients of the feed `shop`."""
    hub = Hub(stream_source(source_of(servers)), COPY)
    file = server_file(directory, feed_file(directory, {}, ["x.*"]), flight={"port": free_port()})
    with serving(file, Feeds({FEED: Served(Lock.of([TOKEN]), hub)})) as running:
        yield running.flight_port, hub


Rows = dict[tuple[str, Any], dict[str, Any]]


class Table:
    """A client that applies batches to `rows`, by shard and key."""

    def __init__(self, port: int, ticket: dict[str, Any], rows: Rows, token: str = BEARER) -> None:
        self._client = flight.connect(("127.0.0.1", port))
        options = flight.FlightCallOptions(headers=[(b"authorization", token.encode())])
        self._reader = self._client.do_get(flight.Ticket(json.dumps(ticket).encode()), options)
        self.rows = dict(rows)
        self.vgtid = ""
        self.said: list[dict[str, Any]] = []
        self.fault: Exception | None = None
        self.done = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for chunk in self._reader:
                if chunk.app_metadata is not None and len(chunk.app_metadata):
                    self._say(json.loads(chunk.app_metadata.to_pybytes()))
                for row in chunk.data.to_pylist():
                    self._apply(row)
        except Exception as error:
            self.fault = error
        self.done = True

    def _say(self, said: dict[str, Any]) -> None:
        self.said.append(said)
        if said["type"] == "vgtid":
            self.vgtid = said["text"]
        elif said["type"] == "restart":
            shard = f"{said['keyspace']}/{said['shard']}"
            self.rows = {key: row for key, row in self.rows.items() if key[0] != shard}

    def _apply(self, row: dict[str, Any]) -> None:
        kind, place = row["_change_type"], (row["_shard"], row["id"])
        if kind in ("delete", "update_preimage"):
            self.rows.pop(place, None)
        else:
            self.rows[place] = {name: value for name, value in row.items() if not name.startswith("_")}

    def close(self) -> None:
        self._reader.cancel()
        self._thread.join(PATIENCE_SECONDS)
        self._client.close()


@contextmanager
def table(port: int, rows: Rows | None = None, **ticket: Any) -> Iterator[Table]:
    found = Table(port, {"feed": FEED, **ticket}, rows or {})
    try:
        yield found
    finally:
        found.close()


def source_rows(servers: Servers, schema: str, columns: str) -> list[tuple[Any, ...]]:
    return sorted(
        (f"ks/{shard}", *row)
        for shard, server in servers.items()
        for row in server.sql(f"SELECT {columns} FROM t", database=schema)
    )


def rows(one: Table) -> list[tuple[Any, ...]]:
    held = one.rows.copy()  # at once: its thread goes on
    return sorted((shard, *row.values()) for (shard, _), row in held.items())


@pytest.mark.promise("Arrow Flight streams a copy and the changes")
def test_copy_and_changes(servers: Servers, schema: str, tmp_path: Path) -> None:
    """Two clients of one table share a reader, and have what SELECT shows."""
    with (
        service(servers, tmp_path) as (port, hub),
        table(port, table=f"{schema}.t") as one,
        table(port, table=f"{schema}.t") as two,
    ):
        until("the copy", lambda: rows(one) == rows(two) == source_rows(servers, schema, "id, val"))
        for server in servers.values():
            server.sql(
                "INSERT INTO t SELECT seq, 'n' FROM seq_2_to_3000",
                "DELETE FROM t WHERE id = 7",
                database=schema,
            )
        write(servers, schema, "b")
        until("the changes", lambda: rows(one) == rows(two) == source_rows(servers, schema, "id, val"))
        until("one reader", lambda: hub.readers == 1)
        kinds = {said["type"] for said in one.said}
        assert {"vgtid", "last_pk", "copy_completed"} <= kinds


def test_a_column_comes(servers: Servers, schema: str, tmp_path: Path) -> None:
    """One shard has it before the others: the stream ends in front, and goes on with a wider schema."""
    first, *others = servers.values()
    with service(servers, tmp_path) as (port, _):
        with table(port, table=f"{schema}.t", vgtid="current") as one:
            write(servers, schema, "b")
            until("the changes", lambda: len(one.rows) == len(servers))
            vgtid = one.vgtid
            first.sql("ALTER TABLE t ADD COLUMN x INT", "UPDATE t SET x = 5", database=schema)
            for other in others:
                other.sql("UPDATE t SET val = 'c'", database=schema)
            until("the end", lambda: one.done)
            assert one.fault is None
            assert one.said[-1] == {"type": "schema_changed"}
            kept, vgtid = one.rows, one.vgtid or vgtid
        with table(port, kept, table=f"{schema}.t", vgtid=vgtid) as two:
            until(
                "x", lambda: sorted(str(row.get("x")) for row in two.rows.values()) == ["5", "None", "None"]
            )
            # The stream before told it where a turn ended between the ALTER and its rows.
            assert [said["type"] for said in (*one.said, *two.said)].count("ddl") == 1
            for other in others:
                other.sql("ALTER TABLE t ADD COLUMN x INT", "UPDATE t SET x = 6", database=schema)
            until(
                "x of all", lambda: sorted(str(row.get("x")) for row in two.rows.values()) == ["5", "6", "6"]
            )


def test_a_selection(servers: Servers, schema: str, tmp_path: Path) -> None:
    ticket = {"table": f"{schema}.t", "filter": "SELECT id, id + 1 AS more FROM t WHERE id < 10"}
    with service(servers, tmp_path) as (port, _), table(port, None, **ticket) as one:
        want = "id, id + 1"
        until("the copy", lambda: rows(one) == source_rows(servers, schema, want))


@pytest.mark.parametrize(
    ("ticket", "token", "said"),
    [
        ({"feed": "shop"}, BEARER, "no .*table|missing required field"),
        ({"feed": "shop", "table": "t"}, BEARER, "is no table"),
        ({"feed": "shop", "table": "nowhere.none"}, BEARER, "no shard has such a table"),
        ({"feed": "shop", "table": "mysql.user"}, BEARER, "is no table|no shard has such a table"),
        ({"feed": "shop", "table": "a.b", "vgtid": "{}"}, BEARER, "."),
        ({"feed": "shop", "table": "a.b", "wish": 1}, BEARER, "wish"),
        ({"feed": "shop", "table": "a.b"}, "Bearer wrong", "is open to this token"),
        ({"feed": "other", "table": "a.b"}, BEARER, "is open to this token"),
        ({"feed": "shop", "table": "a.b"}, "", "is open to this token"),
    ],
)
def test_what_is_refused(
    servers: Servers, schema: str, tmp_path: Path, ticket: dict[str, Any], token: str, said: str
) -> None:
    with service(servers, tmp_path) as (port, hub):
        client = flight.connect(("127.0.0.1", port))
        options = flight.FlightCallOptions(headers=[(b"authorization", token.encode())])
        with pytest.raises((flight.FlightError, ValueError, OSError), match=said) as error:
            client.do_get(flight.Ticket(json.dumps(ticket).encode()), options).read_all()
        assert TOKEN not in str(error.value)
        assert next(iter(servers.values())).password not in str(error.value)
        assert not hub.standings()


def test_a_client_that_is_gone_gives_its_reader_back(servers: Servers, schema: str, tmp_path: Path) -> None:
    with service(servers, tmp_path) as (port, hub):
        with table(port, table=f"{schema}.t") as one:
            until("a vgtid", lambda: bool(one.vgtid))
            assert len(hub.standings()) == 1
        until("it is gone", lambda: not hub.standings())


def test_columns_change_while_nobody_reads(servers: Servers, schema: str, tmp_path: Path) -> None:
    """One turn has rows with the old and with the new columns: a client that resumes before it gets past it."""
    altered = (
        "UPDATE t SET val = 'b'",
        "ALTER TABLE t DROP val",
        "ALTER TABLE t ADD y INT",
        "UPDATE t SET y = 7",
    )
    with service(servers, tmp_path) as (port, _):
        with table(port, table=f"{schema}.t") as one:
            until("the copy", lambda: any(said["type"] == "copy_completed" for said in one.said))
            until("its vgtid", lambda: len(one.rows) == len(servers) and one.said[-1]["type"] == "vgtid")
            vgtid, rows = one.vgtid, one.rows
        for server in servers.values():
            server.sql(*altered, database=schema)
        for _ in servers:
            with table(port, rows, table=f"{schema}.t", vgtid=vgtid) as two:
                until(
                    "all rows, or an end",
                    lambda: two.done or [row.get("y") for row in two.rows.values()] == [7] * len(servers),
                )
                assert two.fault is None
                if not two.done:
                    return
                vgtid, rows = two.vgtid or vgtid, two.rows
        raise AssertionError("it did not get over the change")


def test_a_client_that_leaves_the_line_gives_its_place_back(
    servers: Servers, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in ("COPYING", "CATCHING_UP"):
        monkeypatch.setattr(turnstile, most, 0)  # nobody is ever let in
    ticket = flight.Ticket(json.dumps({"feed": FEED, "table": f"{schema}.t"}).encode())
    options = flight.FlightCallOptions(timeout=0.5, headers=[(b"authorization", BEARER.encode())])
    with service(servers, tmp_path) as (port, hub):
        client = flight.connect(("127.0.0.1", port))
        for _ in range(3):
            with pytest.raises(flight.FlightTimedOutError):
                client.do_get(ticket, options)
        until("all of them have left", lambda: hub._opening == 0)
        assert not hub.standings()
