"""A small server of HTTP: right answers to good clients, soon done with the others."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.errors import ConfigError
from catchment.page import server as module
from catchment.page.requests import Answer, Request, parse, plain
from catchment.page.server import CONNECTIONS_MAX, Server
from tests.world.patience import PATIENCE_SECONDS, until


def echo(request: Request) -> Answer:
    if request.path == "/fault":
        raise LookupError("a fault of ours")
    return plain(HTTPStatus.OK, f"{request.method} {request.path}")


@contextmanager
def serving(
    port: int, address: str = "127.0.0.1", answer: Callable[[Request], Answer] = echo
) -> Iterator[Server]:
    server = Server("status.port", address, port, answer)
    try:
        yield server
    finally:
        server.stop()


def asked(port: int, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(headers.pop("at", "127.0.0.1"), port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_answers(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with serving(port):
        assert asked(port, "/a?b=c") == (200, "GET /a\n")
        assert asked(port, "/a", "HEAD") == (200, "")
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert asked(port, "/a", method)[0] == 405, "it is read only"
        assert asked(port, "/fault")[0] == 500
        assert "a fault of ours" in caplog.text
        assert "a fault of ours" not in asked(port, "/fault")[1]


def test_every_answer_keeps_the_page_to_itself(port: int) -> None:
    with serving(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/")
        headers = connection.getresponse().headers
        connection.close()
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


def test_a_page_of_others_whose_name_leads_here_is_refused(port: int) -> None:
    with serving(port):
        assert asked(port, "/", Host=f"evil.example:{port}")[0] == 421
        assert asked(port, "/", Host="localhost.evil.example")[0] == 421
        assert asked(port, "/", Host="127.0.0.1.evil.example")[0] == 421
        for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "[::1]:80"):
            assert asked(port, "/", Host=host)[0] == 200, host


def test_an_address_for_all_is_asked_by_any_name(port: int) -> None:
    with serving(port, "0.0.0.0"):
        assert asked(port, "/", Host="db7.example")[0] == 200


def test_ipv6(port: int) -> None:
    with serving(port, "::1"):
        assert asked(port, at="::1")[0] == 200


def test_only_on_its_address(port: int) -> None:
    """127.0.0.2 stands for another address of the host: it is one on Linux."""
    with serving(port, "127.0.0.2"):
        assert asked(port, at="127.0.0.2")[0] == 200
        with pytest.raises(ConnectionRefusedError):
            asked(port)
        with pytest.raises(
            ConfigError, match=rf"status.port: cannot listen on 127.0.0.2:{port} \(Address already"
        ):
            Server("status.port", "127.0.0.2", port, echo)
    with serving(port, "127.0.0.2"):
        pass


@pytest.mark.parametrize("address", ["192.0.2.1", "no such host"])
def test_an_address_that_this_host_does_not_have(port: int, address: str) -> None:
    with pytest.raises(ConfigError, match=f"status.port: cannot listen on {address}:{port}"):
        Server("status.port", address, port, echo)


def test_slow_clients_are_given_up_and_hold_up_nobody_for_long(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than it serves at once: some say nothing, some say a byte now and then."""
    monkeypatch.setattr(module, "_READ_SECONDS", 0.2)
    with serving(port), ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(2 * CONNECTIONS_MAX)
        ]
        ended = threading.Event()

        def drip() -> None:
            while not ended.wait(0.05):
                for client in clients[::2]:
                    try:
                        client.send(b"G")
                    except OSError:
                        continue

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            until("there is room again", lambda: has_room(port))
            for client in clients:
                client.settimeout(PATIENCE_SECONDS)
                try:
                    while client.recv(100):
                        pass
                except ConnectionError:
                    continue
        finally:
            ended.set()
            dripping.join()


def has_room(port: int) -> bool:
    """Whether it answers; where it is full it says so by closing."""
    try:
        return asked(port)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_a_client_that_does_not_read_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WRITE_SECONDS", 0.2)
    large = plain(HTTPStatus.OK, "x" * 50_000_000)
    with (
        serving(port, answer=lambda request: large) as server,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.settimeout(PATIENCE_SECONDS)
        got = len(client.recv(1))
        until("it is given up", lambda: not server._open)
        try:
            while part := client.recv(1 << 20):
                got += len(part)
        except ConnectionError:
            pass
        assert got < 50_000_000


def test_the_end_of_the_run_waits_for_no_client(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the clients may be silent for longer than the test waits."""
    monkeypatch.setattr(module, "_READ_SECONDS", 10 * PATIENCE_SECONDS)
    with ExitStack() as stack:
        server = Server("status.port", "127.0.0.1", port, echo)
        for _ in range(10):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        until("all have been let in", lambda: len(server._open) == 10)
        stopping = threading.Thread(target=server.stop, daemon=True)
        stopping.start()
        until("the server has stopped", lambda: not stopping.is_alive())
    with pytest.raises(ConnectionRefusedError):
        asked(port)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_an_answer(head: bytes) -> None:
    found = parse(head)
    if isinstance(found, Request):
        assert found.method in ("GET", "HEAD")
        assert found.path.startswith("/")
    else:
        assert found.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.METHOD_NOT_ALLOWED)
