"""Arrow Flight: one table's rows in batches, by pyarrow's own client."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from catchment.model.errors import Denied
from catchment.serve.flight import service as service_module
from catchment.serve.flight.service import FlightService
from catchment.serve.hub.hub import Hub
from catchment.serve.stream.source import source_of as stream_source
from tests.promises.serve.test_shared import COPY, TABLES, write
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.patience import PATIENCE_SECONDS, until

TOKEN = "Bearer let-me-in"


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """One table with a row on every shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(*TABLES, database=name)
    return name


class OneFeed:
    """The feed `shop`, and its token."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def admit(self, authorization: str) -> None:
        if authorization != TOKEN:
            raise Denied("no feed is open to this token")

    def hub(self, feed: str, authorization: str) -> Hub:
        if feed != "shop" or authorization != TOKEN:
            raise Denied("no such feed, or not its token")
        return self._hub


@contextmanager
def service(servers: Servers) -> Iterator[tuple[FlightService, Hub]]:
    hub = Hub(stream_source(source_of(servers)), COPY)
    with FlightService("grpc://127.0.0.1:0", OneFeed(hub), []) as running:
        try:
            yield running, hub
        finally:
            hub.stop()


class Table:
    """A client that applies batches; its rows are those of the last vgtid that it met, once `settle` is true."""

    def __init__(self, service: FlightService, ticket: dict[str, Any], token: str = TOKEN) -> None:
        self._client = flight.connect(("127.0.0.1", service.port))
        options = flight.FlightCallOptions(headers=[(b"authorization", token.encode())])
        self._reader = self._client.do_get(flight.Ticket(json.dumps(ticket).encode()), options)
        self.rows: dict[tuple[str, Any], dict[str, Any]] = {}
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
def table(service: FlightService, **ticket: Any) -> Iterator[Table]:
    found = Table(service, {"feed": "shop", **ticket})
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
def test_copy_and_changes(servers: Servers, schema: str) -> None:
    """Two clients of one table share a reader, and have what SELECT shows."""
    with (
        service(servers) as (running, hub),
        table(running, table=f"{schema}.t") as one,
        table(running, table=f"{schema}.t") as two,
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


def test_a_column_comes(servers: Servers, schema: str) -> None:
    """One shard has it before the others: the stream ends in front, and goes on with a wider schema."""
    first, *others = servers.values()
    with service(servers) as (running, _):
        with table(running, table=f"{schema}.t", vgtid="current") as one:
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
        with table(running, table=f"{schema}.t", vgtid=vgtid) as two:
            until(
                "x", lambda: sorted(str(row.get("x")) for row in two.rows.values()) == ["5", "None", "None"]
            )
            assert all(kept[place]["val"] == "b" for place in kept)
            # The stream before told it where a turn ended between the ALTER and its rows.
            assert [said["type"] for said in (*one.said, *two.said)].count("ddl") == 1
            for other in others:
                other.sql("ALTER TABLE t ADD COLUMN x INT", "UPDATE t SET x = 6", database=schema)
            until(
                "x of all", lambda: sorted(str(row.get("x")) for row in two.rows.values()) == ["5", "6", "6"]
            )


def test_a_selection(servers: Servers, schema: str) -> None:
    ticket = {"table": f"{schema}.t", "filter": "SELECT id, id + 1 AS more FROM t WHERE id < 10"}
    with service(servers) as (running, _), table(running, **ticket) as one:
        want = "id, id + 1"
        until("the copy", lambda: rows(one) == source_rows(servers, schema, want))


@pytest.mark.parametrize(
    ("ticket", "token", "said"),
    [
        ({"feed": "shop"}, TOKEN, "no .*table|missing required field"),
        ({"feed": "shop", "table": "t"}, TOKEN, "is no table"),
        ({"feed": "shop", "table": "nowhere.none"}, TOKEN, "no table of any shard"),
        ({"feed": "shop", "table": "mysql.user"}, TOKEN, "is no table|no table of any shard"),
        ({"feed": "shop", "table": "a.b", "vgtid": "{}"}, TOKEN, "."),
        ({"feed": "shop", "table": "a.b", "wish": 1}, TOKEN, "wish"),
        ({"feed": "shop", "table": "a.b"}, "Bearer wrong", "is open to this token"),
        ({"feed": "other", "table": "a.b"}, TOKEN, "not its token"),
        ({"feed": "shop", "table": "a.b"}, "", "is open to this token"),
    ],
)
def test_what_is_refused(
    servers: Servers, schema: str, ticket: dict[str, Any], token: str, said: str
) -> None:
    with service(servers) as (running, hub):
        client = flight.connect(("127.0.0.1", running.port))
        options = flight.FlightCallOptions(headers=[(b"authorization", token.encode())])
        with pytest.raises((flight.FlightError, ValueError, OSError), match=said) as error:
            client.do_get(flight.Ticket(json.dumps(ticket).encode()), options).read_all()
        assert "let-me-in" not in str(error.value)
        assert next(iter(servers.values())).password not in str(error.value)
        assert not hub.standings()


@pytest.mark.parametrize(
    "call",
    [
        lambda client, options: client.do_get(flight.Ticket(b"[" * (1 << 20)), options).read_all(),
        lambda client, options: list(client.list_flights(b"x", options)),
        lambda client, options: client.get_flight_info(flight.FlightDescriptor.for_path("t"), options),
        lambda client, options: list(client.do_action(flight.Action("x", b"x"), options)),
        lambda client, options: client.do_put(flight.FlightDescriptor.for_path("t"), pa.schema([]), options)[
            0
        ].close(),
    ],
    ids=["DoGet", "ListFlights", "GetFlightInfo", "DoAction", "DoPut"],
)
def test_nothing_is_decoded_for_one_without_a_token(
    call: Callable[[flight.FlightClient, flight.FlightCallOptions], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    monkeypatch.setattr(service_module, "ticket_of", asked.append)
    doors: Any = OneFeed(None)  # type: ignore[arg-type]
    with FlightService("grpc://127.0.0.1:0", doors, []) as running:
        client = flight.connect(("127.0.0.1", running.port))
        for headers in ([], [(b"authorization", b"Bearer wrong")]):
            with pytest.raises(flight.FlightUnauthenticatedError, match="open to this token"):
                call(client, flight.FlightCallOptions(headers=headers))
    assert asked == []


def test_a_client_that_is_gone_gives_its_reader_back(servers: Servers, schema: str) -> None:
    with service(servers) as (running, hub):
        with table(running, table=f"{schema}.t") as one:
            until("a vgtid", lambda: bool(one.vgtid))
            assert len(hub.standings()) == 1
        until("it is gone", lambda: not hub.standings())
