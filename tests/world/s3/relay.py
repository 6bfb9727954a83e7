"""The relay of the proxy: passes requests on to the server, and does to them what its rules say.

It passes on heads as clients sent them: signatures hold, since they are over the name of the proxy, which the client
was given and the server reads in `Host`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tests.world.s3.faults import Fault, Rule, Rules
from tests.world.s3.kinds import Kind, key_of, kind_of
from tests.world.s3.messages import GONE, Answer, Request, read_answer, read_request

_BUFFER = 1 << 20
_DELIVERIES = {None: 1, Fault.LOSE: 1, Fault.LOSE_WITH_ERROR: 1, Fault.TWICE: 2}


@dataclass(frozen=True)
class Seen:
    """A request that a client sent: what it asked, which fault met it, what the server said at each delivery, and
    the status that the client was told (None: its connection ended).
    """

    method: str
    kind: Kind
    key: str
    fault: Fault | None
    delivered: tuple[int, ...]
    answered: int | None


class Relay:
    """Listens on a free port of 127.0.0.1 for the server on another."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._rules = Rules()
        self._seen: list[Seen] = []
        self._accepted = 0
        self._late: list[Request] = []

    async def listen(self) -> int:
        """Accept clients from now on, at the port given back."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_BUFFER)
        return int(self._listener.sockets[0].getsockname()[1])

    def rule(self, *rules: Rule) -> None:
        """Follow these rules, and no others, from now on."""
        self._rules = Rules(rules)

    def seen(self) -> list[Seen]:
        """The requests answered or dropped since the start or `forget`, in that order."""
        return self._seen

    def connections(self) -> int:
        """How many connections were accepted since then."""
        return self._accepted

    def forget(self) -> None:
        """Count from 0, and drop what Fault.LATE kept."""
        self._seen, self._late, self._accepted = [], [], 0

    async def deliver_late(self) -> list[int]:
        """Give the server what Fault.LATE kept, in order; what it said."""
        late, self._late = self._late, []
        server = _Line(self._server_port)
        try:
            return [(await server.ask(request)).status for request in late]
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._accepted += 1
        server = _Line(self._server_port)
        try:
            while request := await read_request(reader, writer):
                answer = await self._answer(request, server)
                if answer is None:
                    return
                writer.writelines((answer.head, answer.body))
                await writer.drain()
                if answer.last:
                    return
        except GONE:
            return  # the client went away
        finally:
            server.close()
            writer.close()

    async def _answer(self, request: Request, server: "_Line") -> Answer | None:
        """What the client reads; None: the end of its connection."""
        kind, key = kind_of(request), key_of(request)
        fate = self._rules.fate(kind, key)
        if fate.delay:
            await asyncio.sleep(fate.delay)
        answers: list[Answer] = []
        try:
            for _ in range(_DELIVERIES.get(fate.fault, 0)):
                answers.append(await server.ask(request))
            told = _told(fate.fault, request.method, answers)
        except GONE:
            told = None  # the server went away
        if fate.fault is Fault.LATE:
            self._late.append(request)
        delivered = tuple(answer.status for answer in answers)
        self._seen.append(
            Seen(request.method, kind, key, fate.fault, delivered, told.status if told else None)
        )
        return told


class _Line:
    """A connection to the server, for one client's requests."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> Answer:
        """The server's answer. Raises one of GONE."""
        if self._ends is None or self._ends[0].at_eof():  # the server ends connections that lay idle
            self.close()
            self._ends = await asyncio.open_connection("127.0.0.1", self._port, limit=_BUFFER)
        reader, writer = self._ends
        writer.writelines((request.head, request.body))
        await writer.drain()
        return await read_answer(reader, request.method)

    def close(self) -> None:
        if self._ends:
            self._ends[1].close()


def _told(fault: Fault | None, method: str, answers: Sequence[Answer]) -> Answer | None:
    match fault:
        case Fault.SLOW_DOWN:
            return _error(503, "SlowDown", method)
        case Fault.ERROR | Fault.LOSE_WITH_ERROR:
            return _error(500, "InternalError", method)
        case Fault.CONFLICT:
            return _error(409, "ConditionalRequestConflict", method)
        case Fault.DROP | Fault.LOSE | Fault.LATE:
            return None
    return answers[-1]


def _error(status: int, code: str, method: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>by a rule of the test</Message></Error>".encode()
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return Answer(status, head.encode(), b"" if method == "HEAD" else body)
