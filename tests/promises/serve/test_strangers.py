"""Callers without a token: no entry point of a server does any work for them, or holds what they send."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from pyarrow import flight

from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.flight import NAME as FLIGHT
from tests.promises.serve.server import (
    FEED,
    SERVICE,
    TOKEN,
    Caller,
    free_port,
    port_of,
    process,
    server_file,
    until_copied,
)
from tests.promises.serve.test_page import got
from tests.world.patience import PATIENCE_SECONDS, until

_MIB = 1 << 20
_LARGE = b"\x0a\x80\x80\x80\x1e" + b"[" * (60 * _MIB)  # field 1, with 60 MiB

METHODS = [
    *(f"/{SERVICE}/{method.name}" for method in pb.DESCRIPTOR.services_by_name["Streams"].methods),
    *(
        f"/{FLIGHT}/{name}"
        for name in ("Handshake", "ListFlights", "GetFlightInfo", "PollFlightInfo", "GetSchema")
    ),
    *(f"/{FLIGHT}/{name}" for name in ("DoGet", "DoPut", "DoExchange", "DoAction", "ListActions")),
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Check",
    "/no.such.Service/Method",
]


class Listening:
    """A server in a process of its own, with all that it can listen on."""

    def __init__(self, file: Path, pid: int, flight_port: int, page_port: int) -> None:
        self.pid, self.port, self.flight_port, self.page_port = pid, port_of(file), flight_port, page_port

    def most(self) -> int:
        """The most bytes of memory that it ever took."""
        (line,) = (one for one in Path(f"/proc/{self.pid}/status").read_text().splitlines() if "VmHWM" in one)
        return int(line.split()[1]) << 10

    def status(self, port: int, method: str, request: bytes, **metadata: str) -> grpc.StatusCode:
        """How a call ends that sends one message."""
        with grpc.insecure_channel(f"localhost:{port}") as channel:
            call: Any = channel.stream_stream(method, lambda message: message, lambda message: message)
            answers = call(iter([request]), metadata=tuple(metadata.items()), timeout=PATIENCE_SECONDS)
            with suppress(grpc.RpcError):
                list(answers)
            code: grpc.StatusCode = answers.code()
            return code


@pytest.fixture
def listening(tmp_path: Path, feed: Path) -> Iterator[Listening]:
    ports = free_port(), free_port()
    given = [{"file": str(feed), "tokens": [TOKEN], "subscribers": True}]
    file = server_file(tmp_path, feeds=given, flight={"port": ports[0]}, status={"port": ports[1]})
    with process(file) as running:
        yield Listening(file, running.pid, *ports)


@pytest.mark.promise("who has no token makes a server do nothing")
def test_every_method_turns_them_away_before_it_reads(listening: Listening) -> None:
    until_copied(Caller(listening.port).events())
    rest = listening.most()
    for port in (listening.port, listening.flight_port):
        for method in METHODS:
            for bearer in ({}, {"authorization": "Bearer another-token-of-somebody"}):
                found = listening.status(port, method, _LARGE, **bearer)
                assert found is grpc.StatusCode.UNAUTHENTICATED, (method, found)
    assert listening.most() - rest < 60 * _MIB
    until_copied(Caller(listening.port).events())


def test_a_request_with_a_token_has_a_limit(listening: Listening) -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for method in (f"/{SERVICE}/Stream", f"/{FLIGHT}/DoGet"):
        found = listening.status(listening.flight_port, method, _LARGE, **bearer)
        assert found is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert listening.status(listening.port, f"/{SERVICE}/Stream", b"", x="y" * _MIB) is not grpc.StatusCode.OK


@pytest.mark.parametrize(
    "call",
    [
        lambda client, options: client.do_get(flight.Ticket(b"{}"), options).read_chunk(),
        lambda client, options: list(client.list_flights(b"x", options)),
        lambda client, options: client.get_flight_info(flight.FlightDescriptor.for_path("t"), options),
        lambda client, options: client.get_schema(flight.FlightDescriptor.for_path("t"), options),
        lambda client, options: list(client.do_action(flight.Action("x", b"x"), options)),
        lambda client, options: client.list_actions(options),
    ],
    ids=["DoGet", "ListFlights", "GetFlightInfo", "GetSchema", "DoAction", "ListActions"],
)
def test_a_client_of_flight_is_told(
    listening: Listening, call: Callable[[flight.FlightClient, flight.FlightCallOptions], object]
) -> None:
    with flight.connect(("localhost", listening.flight_port)) as client:
        for headers in ([], [(b"authorization", b"Bearer wrong")]):
            # pyarrow raises an OSError of that name by GetSchema.
            with pytest.raises((flight.FlightUnauthenticatedError, OSError), match="open to this token"):
                call(client, flight.FlightCallOptions(headers=headers))


def test_the_page_reads_no_body_and_shows_no_secret(listening: Listening, feed: Path) -> None:
    """It asks for no token: it listens on loopback, and shows who reads how far."""
    until_copied(Caller(listening.port).events(subscriber="search"))
    shown = "".join(got(listening.page_port, path) for path in ("/", "/status.json", "/metrics", "/healthz"))
    assert FEED in shown
    assert TOKEN not in shown
    passwords = {line.split(": ", 1)[1] for line in feed.read_text().splitlines() if "password: " in line}
    assert passwords
    assert not any(one.strip("'\"{}") in shown for one in passwords)
    rest = listening.most()
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 62914560\r\n\r\n"
    for request in (head + b"x" * (60 * _MIB), b"GET /" + b"x" * (60 * _MIB)):
        with socket.create_connection(("127.0.0.1", listening.page_port)) as client:
            client.settimeout(PATIENCE_SECONDS)
            try:
                client.sendall(request)
                while client.recv(4096):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                continue
    until("it answers", lambda: got(listening.page_port, "/healthz") == "ok\n")
    assert listening.most() - rest < 60 * _MIB
