"""What clients get: the events of the stream in Python, exact at every vgtid, wherever they go on."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import catchment
from catchment.serve.stream.events import Ddl, Event, Field, Heartbeat, Row, VGtid
from tests.promises.serve.server import (
    TOKEN,
    Caller,
    Running,
    feed_file,
    port_of,
    process,
    server_file,
    serving,
    until_copied,
    up_to,
)
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.log_lines import without_times


def is_row(key: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Row) and event.after is not None and event.after["id"] == key


def told_alike(events: list[Event]) -> list[Any]:
    """Events without what differs from one stream to another: where and when it stood."""
    return [event for event in events if not isinstance(event, VGtid | Heartbeat)]


@pytest.mark.promise("a client over gRPC gets the events that a program in Python gets")
def test_the_same_events_as_in_python(servers: Servers, schema: str, caller: Caller) -> None:
    of_server, rules = caller.events(), [f"{schema}.t"]
    with catchment.stream(source_of(servers), rules=rules) as in_python:
        served, own = until_copied(of_server), until_copied(in_python)
        assert sorted(told_alike(served), key=str) == sorted(told_alike(own), key=str)
        for server in servers.values():
            server.sql(
                "UPDATE t SET v = 'z', id = 9 WHERE id = 1",
                "DELETE FROM t WHERE id = 2",
                "ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7",
                "INSERT INTO t VALUES (50, NULL, -1)",
                database=schema,
            )
        served, own = (up_to(stream, _times(is_row(50), len(servers))) for stream in (of_server, in_python))
        assert sorted(told_alike(served), key=str) == sorted(told_alike(own), key=str)
        assert {type(event) for event in served} >= {Ddl, Field, Row}


def _times(met: Callable[[Event], bool], times: int) -> Callable[[Event], bool]:
    """Whether it was met so many times by now."""
    left = [times]

    def done(event: Event) -> bool:
        left[0] -= met(event)
        return left[0] <= 0

    return done


@pytest.mark.promise("a client resumes at another server")
def test_sigterm_ends_streams_and_another_server_goes_on(
    tmp_path: Path, feed: Path, servers: Servers, schema: str
) -> None:
    first, second = server_file(tmp_path, feed), server_file(tmp_path, feed)
    with process(first) as running:
        caller = Caller(port_of(first))
        stream = caller.events()
        told = until_copied(stream)
        running.send_signal(signal.SIGTERM)
        with pytest.raises(grpc.RpcError) as ended:
            _drain(stream)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert ended.value.details() == (
            "this server stops; go on with the last vgtid, at another one or later"
        )
        assert running.wait(30) == 0
        assert running.stderr is not None
        assert (
            without_times(running.stderr.read())
            == "catchment: stopping; clients go on with their last vgtids\n"
        )
    for server in servers.values():
        server.sql("INSERT INTO t VALUES (60, 'x')", database=schema)
    last = told[-1]
    assert isinstance(last, VGtid)
    with process(second):
        rest = Caller(port_of(second)).events(vgtid=last.text)
        found = up_to(rest, is_row(60))
    assert all(is_row(60)(event) for event in found if isinstance(event, Row))


def _drain(stream: Iterator[Any]) -> None:
    for _ in stream:
        pass


def test_rules_and_flags(server: Running, caller: Caller, schema: str) -> None:
    rules = [{"match": "t", "filter": "select id from t where id >= 2"}]
    stream = caller.events(rules=rules, flags={"heartbeat_interval": 0.2})
    rows = [event.after for event in until_copied(stream) if isinstance(event, Row)]
    assert rows == [{"id": 2}, {"id": 3}] * 3
    assert isinstance(next(event for event in stream if not isinstance(event, VGtid)), Heartbeat)


def test_only_the_feeds_tables(caller: Caller, schema: str) -> None:
    """Also where a rule takes more, and where a client says that it was told of them."""
    told = until_copied(caller.events(rules=[{"match": f"{schema}.*"}]))
    assert {event.table.name for event in told if isinstance(event, Row)} == {"t"}
    last = told[-1]
    assert isinstance(last, VGtid)
    forged = last.text.replace('"name":"t"', '"name":"hidden"').replace('"done":true', '"done":false')
    assert forged != last.text
    again = until_copied(caller.events(vgtid=forged, rules=[{"match": f"{schema}.*"}]))
    assert {event.table.name for event in again if isinstance(event, Field)} <= {"t"}


def test_a_subscriber_begins_where_it_has_acknowledged_at_another_server(
    tmp_path: Path, servers: Servers, schema: str
) -> None:
    feed = feed_file(tmp_path, servers, [f"{schema}.t"], state=str(tmp_path / "state.db"))
    kept = [{"file": str(feed), "tokens": [TOKEN], "subscribers": True}]
    with (
        serving(server_file(tmp_path, feeds=kept)) as first,
        serving(server_file(tmp_path, feeds=kept)) as second,
    ):
        one, other = Caller(first.port), Caller(second.port)
        told = until_copied(one.events(subscriber="search"))
        last = told[-1]
        assert isinstance(last, VGtid)
        assert other.acknowledge("search", last.text) is True
        assert other.acknowledge("search", last.text) is False
        for server in servers.values():
            server.sql("INSERT INTO t VALUES (70, 'x')", database=schema)
        found = up_to(other.events(subscriber="search"), is_row(70))
        assert all(is_row(70)(event) for event in found if isinstance(event, Row))
        code, text = one.refusal(subscriber="a name", vgtid="current")
        assert (code, text.partition(":")[0]) == (grpc.StatusCode.INVALID_ARGUMENT, "subscriber")
        with pytest.raises(grpc.RpcError) as ended:
            one.acknowledge("nobody", last.text)
        assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_server_that_keeps_no_subscribers_says_so(caller: Caller) -> None:
    code, text = caller.refusal(subscriber="search")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == "subscriber: this server keeps none for the feed; give `subscribers: true` in its file"
