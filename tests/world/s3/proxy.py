"""A proxy before an S3 server that delays, refuses, loses and repeats requests by rules, and counts them.

It passes on what clients sent byte by byte: signatures hold, since they are over the name of the proxy, which the
client was given and the server reads in `Host`.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.world.patience import PATIENCE_SECONDS
from tests.world.s3.faults import Fault, Rule, Rules
from tests.world.s3.kinds import Kind, key_of, kind_of
from tests.world.s3.messages import GONE, Answer, Request, read_answer, read_request

_BUFFER = 1 << 20
_DELIVERIES = {None: 1, Fault.LOSE: 1, Fault.LOSE_WITH_ERROR: 1, Fault.TWICE: 2}
_Of = TypeVar("_Of")


@dataclass(frozen=True)
class Seen:
    """A request that a client sent: what it asked, which fault met it, what the server said at each delivery, and
    the status that the client read (None: its connection ended).
    """

    method: str
    kind: Kind
    key: str
    fault: Fault | None
    delivered: tuple[int, ...]
    answered: int | None


class S3Proxy:
    """Listens on a free port of 127.0.0.1 and passes requests on to the server on another.

    Use as a context manager.
    """

    def __init__(self, port: int) -> None:
        self.accepted = 0  # connections of clients
        self._server_port = port
        self._rules = Rules()
        self._seen: list[Seen] = []
        self._late: list[Request] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="s3-proxy")

    def rule(self, *rules: Rule) -> None:
        """Follow these rules, and no others, from now on; none: pass all on."""
        self._rules.put(*rules)

    def seen(self) -> list[Seen]:
        """The requests answered or dropped since the start or `forget`, in that order."""
        return list(self._seen)

    def counts(self) -> Counter[Kind]:
        """How many of each kind `seen` has."""
        return Counter(one.kind for one in self.seen())

    def methods(self) -> Counter[str]:
        """How many of each method `seen` has."""
        return Counter(one.method for one in self.seen())

    def forget(self) -> None:
        """Count from 0."""
        self._seen = []

    def deliver_late(self) -> list[int]:
        """Give the server now what Fault.LATE kept, in order; what it said."""
        return self._run(self._deliver_late())

    def __enter__(self) -> Self:
        self._thread.start()
        self._listener = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_BUFFER))
        self.endpoint = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _Of]) -> _Of:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    async def _end(self) -> None:
        self._listener.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._connections.add(this)
        self.accepted += 1
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
        except (*GONE, asyncio.CancelledError):
            return  # the client went away, or the block ends
        finally:
            self._connections.discard(this)
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

    async def _deliver_late(self) -> list[int]:
        late, self._late = self._late, []
        server = _Line(self._server_port)
        try:
            return [(await server.ask(request)).status for request in late]
        finally:
            server.close()


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
