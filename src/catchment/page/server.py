"""A small server of HTTP for few clients. None can hold up the run: connections are few, and each has seconds."""

import ipaddress
import logging
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from catchment import world
from catchment.model.errors import ConfigError
from catchment.page.requests import (
    HEAD_BYTES_MAX,
    HEAD_END,
    Answer,
    Request,
    names_loopback,
    parse,
    plain,
)

CONNECTIONS_MAX = 32
_HANDLERS = 8
_READ_SECONDS = 3.0
_WRITE_SECONDS = 5.0
_FAULT_SECONDS = 0.1

_log = logging.getLogger(__name__)


class Server:
    """Answers requests on one address until it is stopped. `key`: the key of the feed file that names the port.

    Raises ConfigError where it cannot listen.
    """

    def __init__(self, key: str, address: str, port: int, answer: Callable[[Request], Answer]) -> None:
        self._answer = answer
        self._listener, place = _listening(key, address, port)
        self._local = ipaddress.ip_address(place).is_loopback
        self._wake, self._woken = socket.socketpair()
        self._lock = world.lock()
        self._open: set[socket.socket] = set()
        self._stopping = False
        self._pool = world.pool(_HANDLERS, key)
        self._thread = world.thread(key, self._accept)
        self._thread.start()

    def stop(self) -> None:
        """Answer no more, and give up the connections that are open."""
        self._stopping = True
        self._wake.send(b"x")
        self._thread.join()
        with self._lock:
            for client in self._open:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()
        for one in (self._listener, self._wake, self._woken):
            one.close()

    def _accept(self) -> None:
        while not self._stopping:
            ready, _, _ = select.select([self._listener, self._woken], [], [])
            if self._listener not in ready:
                continue
            try:
                client, _ = self._listener.accept()
            except OSError:  # who asked has gone, or this process has no file left
                world.sleep(_FAULT_SECONDS)
                continue
            with self._lock:
                full = len(self._open) >= CONNECTIONS_MAX
                if not full:
                    self._open.add(client)
            if full:
                client.close()
            else:
                self._pool.submit(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        try:
            with suppress(OSError):
                self._talk(client)
        finally:
            with self._lock:
                self._open.discard(client)
            client.close()

    def _talk(self, client: socket.socket) -> None:
        head = _head(client)
        if head is None:
            return
        request = parse(head)
        answer = request if isinstance(request, Answer) else self._answered(request)
        head_only = isinstance(request, Request) and request.head_only
        client.settimeout(_WRITE_SECONDS)  # for all of it: sendall does not begin again with each part
        client.sendall(answer.encoded(head_only=head_only))
        client.shutdown(socket.SHUT_WR)

    def _answered(self, request: Request) -> Answer:
        if self._local and not names_loopback(request):
            return plain(
                HTTPStatus.MISDIRECTED_REQUEST, "ask for localhost: this address is served to this host alone"
            )
        try:
            return self._answer(request)
        except Exception as error:
            _log.warning("a request for %r failed, and the feed goes on", request.path, exc_info=error)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; the run's log says why")


def _listening(key: str, address: str, port: int) -> tuple[socket.socket, str]:
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(CONNECTIONS_MAX)
        except OSError:
            listener.close()
            raise
    except OSError as fault:
        raise ConfigError(
            f"{key}: cannot listen on {address}:{port} ({fault.strerror}); choose a free port and an address of "
            "this host"
        ) from fault
    listener.setblocking(False)
    return listener, str(place[0])


def _head(client: socket.socket) -> bytes | None:
    """The head of a request; None of a client that does not send one in time, or sends too much."""
    deadline = world.steady_seconds() + _READ_SECONDS
    got = b""
    while HEAD_END not in got:
        left = deadline - world.steady_seconds()
        if left <= 0 or len(got) > HEAD_BYTES_MAX:
            return None
        client.settimeout(left)
        part = client.recv(HEAD_BYTES_MAX)
        if not part:
            return None
        got += part
    return got.partition(HEAD_END)[0]
