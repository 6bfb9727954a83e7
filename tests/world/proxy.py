"""A TCP proxy between client and server that fails on command: cuts, stalls, misroutes."""

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.world.patience import PATIENCE_SECONDS

Address: TypeAlias = tuple[str, int]
Sees: TypeAlias = Callable[[bytes], bool]

_PIECE = 65536
_COM_QUERY, _COM_BINLOG_DUMP, _COM_STMT_EXECUTE = 0x03, 0x12, 0x17


def command(code: int, text: bytes = b"") -> Sees:
    """Recognizes a command packet (length of 3 bytes, sequence 0, code) that holds `text`; not under TLS."""
    return lambda piece: len(piece) > 4 and piece[3] == 0 and piece[4] == code and text in piece


dump_begins: Sees = command(_COM_BINLOG_DUMP)
"""Sees a client ask for the log."""


def query_begins(text: str) -> Sees:
    """Sees a text query that holds `text`."""
    return command(_COM_QUERY, text.encode())


def execute_begins() -> Sees:
    """Sees a prepared statement being executed."""
    return command(_COM_STMT_EXECUTE)


@dataclass
class _Cut:
    size: int
    after: Sees | None
    times: int
    reset: bool


class Proxy:
    """Listens on a free port of 127.0.0.1 (`host`, `port`) and passes connections on to the server given.

    Settings may be changed while connections run. Connections are numbered from 1 in the order in which they
    are accepted. Use as a context manager.
    """

    def __init__(self, host: str, port: int) -> None:
        self.accepted = 0
        self.cuts = 0
        self.refusing = False  # new connections are closed at once
        self.flowing = threading.Event()
        self.flowing.set()
        self._servers: Sequence[Address] = ((host, port),)
        self._misroutes: dict[int, Address] = {}
        self._cut: _Cut | None = None
        self._lock = threading.Lock()
        self._links: list[_Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()[:2]

    def cut(self, *, reset: bool = False) -> None:
        """Close all connections now: in order (FIN), or with `reset` as a broken network does (RST)."""
        for link in self._open_links():
            link.cut(reset)

    def cut_after(self, size: int, *, after: Sees | None = None, times: int = 1, reset: bool = False) -> None:
        """Cut a connection when it has carried `size` bytes to the client; the rest is lost.

        Bytes count from when the client sent what `after` sees (None: from the start of the connections
        accepted from now on). After `times` such cuts connections live again.
        """
        self._cut = _Cut(size, after, times, reset)

    def stall(self) -> None:
        """Pass no bytes on until `flow`; connections stay open."""
        self.flowing.clear()

    def flow(self) -> None:
        """End a `stall`."""
        self.flowing.set()

    def misroute(self, number: int, host: str, port: int) -> None:
        """Send connection `number` to another server; the next one has the number `accepted` + 1."""
        self._misroutes[number] = (host, port)

    def balance(self, servers: Sequence[Address]) -> None:
        """Send connections accepted from now on to these servers in turn."""
        self._servers = tuple(servers)

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._accept, daemon=True, name=f"proxy-{self.port}").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() would not
        self._listener.close()
        self.flowing.set()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            target = self._misroutes.get(self.accepted, self._servers[self.accepted % len(self._servers)])
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(target, timeout=PATIENCE_SECONDS)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                link = _Link(self, client, server)
                self._links = [one for one in self._links if one.open] + [link]
            link.start()

    def _open_links(self) -> "list[_Link]":
        with self._lock:
            return [link for link in self._links if link.open]

    def budget_at_start(self) -> int | None:
        """Bytes that a new connection may carry to its client."""
        return self._cut.size if self._cut and self._cut.after is None and self._cut.times else None

    def budget_after(self, piece: bytes) -> int | None:
        """Bytes that a connection may carry to its client after the client sent `piece`; None: no change."""
        cut = self._cut
        return cut.size if cut and cut.times and cut.after and cut.after(piece) else None

    def spend_cut(self) -> _Cut | None:
        """The cut that a connection with a spent budget must make; None when all were made by others."""
        with self._lock:
            if self._cut is None or not self._cut.times:
                return None
            self._cut.times -= 1
            self.cuts += 1
            return self._cut


class _Link:
    """One connection: two threads that carry bytes."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.open = True
        self._proxy = proxy
        self._client = client
        self._server = server
        self._budget = proxy.budget_at_start()
        self._ended = 0
        self._lock = threading.Lock()
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Carry bytes from now on."""
        threading.Thread(target=self._carry, args=(self._client, self._server), daemon=True).start()
        threading.Thread(target=self._carry, args=(self._server, self._client), daemon=True).start()

    def cut(self, reset: bool) -> None:
        """Close both ends."""
        with self._lock:
            if not self.open:
                return
            self.open = False
        for end in (self._client, self._server):
            if reset:  # lingering for 0 seconds: close() sends RST and drops what is not sent yet
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # a socket that a thread still reads is not closed by close(); SHUT_RD wakes it and sends nothing
            _shut(end, socket.SHUT_RD if reset else socket.SHUT_RDWR)
            end.close()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(_PIECE):
                self._proxy.flowing.wait()
                if source is self._client:
                    self._arm(piece)
                elif self._budget is not None and len(piece) >= self._budget:
                    cut, allowed = self._proxy.spend_cut(), self._budget
                    self._budget = None
                    if cut:
                        target.sendall(piece[:allowed])
                        return self.cut(cut.reset)
                elif self._budget is not None:
                    self._budget -= len(piece)
                target.sendall(piece)
            _shut(target, socket.SHUT_WR)
        except OSError:
            return self.cut(reset=False)
        with self._lock:
            self._ended += 1
            both = self._ended == 2
        if both:
            self.cut(reset=False)
        return None

    def _arm(self, piece: bytes) -> None:
        budget = self._proxy.budget_after(piece)
        if budget is not None:
            self._budget = budget


def _shut(end: socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        return  # closed by the peer already
