"""Sessions on the simulator's servers: they answer what Catchment asks, in the words and bytes of MariaDB."""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from catchment.model.errors import ConnectionLost, ServerSaid
from catchment.model.position import Server as ServerId
from catchment.model.source import Endpoint
from catchment.source.session import Session
from tests.world.sim import binlog
from tests.world.sim.answers import ANSWERS, range_of, table_of
from tests.world.sim.scheduler import SimWorld
from tests.world.sim.server import SCHEMA, Refused, Server

_LONGLONG = 8
_NON_BLOCKING = 1  # a flag of COM_BINLOG_DUMP
_OK = b"\0\0\0\2\0\0\0"
_EOF = b"\xfe\0\0\2\0"


_CONNECT_SECONDS = 10


class Network:
    """All servers by their ports. What is cut off refuses until then, what hangs does not answer until then."""

    def __init__(self, world: SimWorld, servers: dict[int, Server], select_seconds: float) -> None:
        self.world = world
        self.by_port = servers
        self.cut_until: dict[int, float] = {}
        self.hangs_until: dict[int, float] = {}
        self.select_seconds = select_seconds

    def login(self, endpoint: Endpoint, *, snapshots: bool, read_seconds: int) -> "SimSession":
        """A session with the server behind an endpoint; raises ConnectionLost."""
        return SimSession(self, endpoint, read_seconds)

    def linger(self, endpoint: Endpoint, seconds: float) -> None:
        """Wait while the way to the server hangs; raises ConnectionLost when that takes longer than `seconds`."""
        rest = self.hangs_until.get(endpoint.port, 0.0) - self.world.now
        if rest > 0:
            self.world.wait(lambda: endpoint.port not in self.hangs_until, min(rest, seconds))
            if rest > seconds and endpoint.port in self.hangs_until:
                raise ConnectionLost(f"shard {endpoint.shard}: timed out")

    def mend(self) -> None:
        """All servers can be reached, and answer at once."""
        self.cut_until.clear()
        self.hangs_until.clear()

    def reach(self, endpoint: Endpoint) -> Server:
        """The server, if it can be reached."""
        server = self.by_port[endpoint.port]
        if not server.up or self.cut_until.get(endpoint.port, 0.0) > self.world.now:
            raise ConnectionLost(f"shard {endpoint.shard}: cannot be reached")
        return server


class SimSession(Session):
    """As `catchment.source.session.Session`, over no socket."""

    def __init__(self, network: Network, endpoint: Endpoint, read_seconds: int) -> None:
        # Session is PyMySQL's, which would connect.
        self._sock = self._rfile = None
        self._network = network
        self._read_seconds = read_seconds
        self.endpoint = endpoint
        network.world.step("login")
        network.linger(endpoint, _CONNECT_SECONDS)
        self._server = network.reach(endpoint)
        self._age = self._server.session_age
        self.server = ServerId(self._server.server_id, self._server.name, endpoint.port)
        self.server_version = "5.5.5-10.11.6-MariaDB-log"
        self._socket = SimSocket(self)

    def alive(self, *, linger: bool = True) -> Server:
        """The server, as long as the session lasts; raises ConnectionLost."""
        self._network.world.step("ask")
        if linger:
            self.linger()
        server = self._network.reach(self.endpoint)
        if server.session_age != self._age:
            raise ConnectionLost(f"shard {self.endpoint.shard}: the session is gone")
        server.settle()
        server.settle_late()
        return server

    def answer_late(self) -> None:
        """Let time pass, as a SELECT takes it whose rows are those of its begin."""
        network = self._network
        if network.select_seconds:
            network.world.sleep(network.select_seconds * network.world.rng.random())

    def linger(self) -> None:
        """Wait while the way to the server hangs; raises ConnectionLost."""
        self._network.linger(self.endpoint, self._read_seconds)

    @property
    def mysql_version(self) -> None:
        """It is MariaDB."""
        return None

    @property
    def sock(self) -> Any:
        """What stands in the place of a socket."""
        return self._socket

    def close(self) -> None:
        """Nothing is held."""

    def abandon(self) -> None:
        """Nothing is held."""

    def rows(self, sql: str, args: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The answer to a statement; raises ConnectionLost, ServerSaid for a statement that is not known here."""
        # Of a way that hangs, either the question is late or the answer.
        hangs = self._network.hangs_until.get(self.endpoint.port, 0.0) > self._network.world.now
        asked_late = not hangs or self._network.world.rng.random() < 0.5
        server = self.alive(linger=asked_late)
        for pattern, answer in ANSWERS:
            if pattern.search(sql):
                found = answer(server, sql, tuple(args or ()))
                if not asked_late:
                    self.linger()
                    self.alive()
                return found
        raise ServerSaid(1064, f"the simulator has no answer to {sql}")

    def readable(self, seconds: float, beside: Sequence[Session] = ()) -> Sequence[Session]:
        """The sessions of which bytes of a dump come in so many seconds, or which break off."""
        sessions = [self, *(one for one in beside if isinstance(one, SimSession))]
        self._network.world.step("wait")
        self._network.world.wait(lambda: any(one._comes() for one in sessions), seconds)
        return [one for one in sessions if one._comes()]

    def _comes(self) -> bool:
        network, port = self._network, self.endpoint.port
        if network.hangs_until.get(port, 0.0) > network.world.now:
            return False
        broken = not self._server.up or self._server.session_age != self._age
        return broken or network.cut_until.get(port, 0.0) > network.world.now or self._socket.holds()

    def named_row(self, sql: str, args: Sequence[Any] | None = None) -> dict[str, Any] | None:
        """EXPLAIN of a range."""
        server = self.alive()
        return {"rows": len(range_of(server, sql, tuple(args or ())))}


class SimSocket:
    """Takes the packets that Catchment writes itself, and gives those of the answer: dumps and prepared statements."""

    def __init__(self, session: SimSession) -> None:
        self._session = session
        self._pieces: Iterator[bytes] = iter(())
        self._left = b""
        self._ended = False
        self._sql = ""

    def sendall(self, data: bytes) -> None:
        """A command."""
        server = self._session.alive()
        command, body = data[4], data[5:]
        if command == 0x12:
            offset, flags, server_id = struct.unpack_from("<IHI", body)
            stands = not flags & _NON_BLOCKING and server_id != 0
            self._pieces = _numbered(_dumped(server, body[10:].decode(), offset, stands=stands))
        elif command == 0x16:
            self._sql = body.decode()
            self._pieces = _numbered(_prepared(self._sql, server))
        elif command == 0x17:
            # The rows are those that are visible now, however long the answer takes.
            server.before_select()
            self._pieces = _numbered(iter(list(_selected(self._sql, body, server))))
            self._session.answer_late()
            server.behind_select()

    def recv_into(self, buffer: bytearray) -> int:
        """Some bytes, as the network gives them."""
        piece = self.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def recv(self, size: int) -> bytes:
        """Some bytes; raises ConnectionResetError when the server is gone."""
        try:
            self._session.alive()
        except ConnectionLost as error:
            raise ConnectionResetError(str(error)) from error
        rng = self._session._network.world.rng
        want = min(size, rng.choice((200, 1000, 1 << 16)))
        while len(self._left) < want:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._left += piece
        found, self._left = self._left[:want], self._left[want:]
        return found

    def holds(self) -> bool:
        """Whether there is something to receive, or the end of it."""
        if not self._left and not self._ended:
            try:
                self._left = next(self._pieces)
            except (StopIteration, ConnectionResetError):
                self._ended = True
        return bool(self._left) or self._ended


def _numbered(payloads: Iterator[bytes]) -> Iterator[bytes]:
    """As packets; what is empty stays so."""
    number = 0
    for payload in payloads:
        number += bool(payload)
        yield binlog.packet(number, payload) if payload else b""


def _dumped(server: Server, file: str, offset: int, *, stands: bool) -> Iterator[bytes]:
    try:
        yield from server.dump(file, offset, stands=stands)
    except Refused as error:
        yield b"\xff" + struct.pack("<H", error.code) + b"#HY000" + str(error).encode()


def _counted(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _definition(name: str) -> bytes:
    head = b"".join(map(_counted, ("def", SCHEMA, "", "", name, name)))
    return head + bytes([12]) + struct.pack("<HIBHB", 63, 20, _LONGLONG, 0, 0) + b"\0\0"


def _columns(sql: str) -> list[str]:
    return re.findall(r"`(\w+)`", sql.partition(" FROM ")[0])


def _prepared(sql: str, server: Server) -> Iterator[bytes]:
    columns, parameters = _columns(sql), sql.count("?")
    yield b"\0" + struct.pack("<IHHBH", 1, len(columns), parameters, 0, 0)
    if parameters:
        yield from (_definition("?") for _ in range(parameters))
        yield _EOF
    yield from map(_definition, columns)
    yield _EOF


def _selected(sql: str, body: bytes, server: Server) -> Iterator[bytes]:
    count = sql.count("?")
    values: list[int] = []
    if count:
        at = 9 + (count + 7) // 8 + 1 + 2 * count
        values = list(struct.unpack_from(f"<{count}q", body, at))
    columns = _columns(sql)
    table = table_of(server, sql)
    if any(column not in table.columns for column in columns):
        yield b"\xff" + struct.pack("<H", 1054) + b"#42S22Unknown column"
        return
    if server.rng.random() < 0.04:
        yield b"\xff" + struct.pack("<H", 1317) + b"#70100Query execution was interrupted"
        return
    yield bytes([len(columns)])
    yield from map(_definition, columns)
    yield _EOF
    for row in range_of(server, sql, values):
        chosen = [row[table.columns.index(column)] for column in columns]
        nulls = sum(1 << n + 2 for n, value in enumerate(chosen) if value is None)
        size = (len(columns) + 9) // 8
        packed = b"".join(struct.pack("<q", value) for value in chosen if value is not None)
        yield b"\0" + nulls.to_bytes(size, "little") + packed
    yield _EOF
