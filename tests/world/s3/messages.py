"""HTTP/1.1 messages as they stand on the wire, each read whole.

But for one thing: a body that came in chunks is given with its length. The server leaves the end of such a body
unread when its last chunk came with the rest, and takes it for the next request.
"""

import asyncio
from dataclasses import dataclass

_LINE = b"\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BODILESS = (204, 304)


class Ended(Exception):
    """A connection ended where an answer should have been."""


GONE = (OSError, asyncio.IncompleteReadError, Ended)
"""What says that the other end of a connection is no more."""


@dataclass(frozen=True)
class Request:
    """A request; `head` is all before the body, with the empty line."""

    method: str
    target: str
    head: bytes
    body: bytes

    def has(self, name: str) -> bool:
        """Whether it has a header, whose name is given in small letters."""
        return header(self.head, name) is not None


@dataclass(frozen=True)
class Answer:
    """An answer; `last` when the server ends the connection after it."""

    status: int
    head: bytes
    body: bytes
    last: bool = False


def header(head: bytes, name: str) -> str | None:
    """The value of a header, whose name is given in small letters."""
    for line in head.split(_LINE)[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name.encode():
            return value.strip().decode("latin-1")
    return None


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request of a client, None at the end of its connection. Raises one of GONE."""
    head = await _head(reader)
    if head is None:
        return None
    method, target, _ = head.split(_LINE, 1)[0].decode("latin-1").split(" ")
    if header(head, "expect") is not None:  # answered here, since the server is asked when the body is there
        writer.write(_CONTINUE)
        head = _without(head, "expect")
    return Request(method, target, *await _framed(reader, head))


async def read_answer(reader: asyncio.StreamReader, method: str) -> Answer:
    """The answer to a request of a method. Raises one of GONE."""
    head = await _head(reader)
    if head is None:
        raise Ended
    status, body = int(head.split(b" ", 2)[1]), b""
    if method != "HEAD" and status not in _BODILESS:
        head, body = await _framed(reader, head)
    return Answer(status, head, body, (header(head, "connection") or "").lower() == "close")


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(_LINE + _LINE)
    except asyncio.IncompleteReadError as end:
        if end.partial:
            raise
        return None


async def _framed(reader: asyncio.StreamReader, head: bytes) -> tuple[bytes, bytes]:
    """A head that tells the length of its body, and the body."""
    if header(head, "transfer-encoding") is None:
        return head, await reader.readexactly(int(header(head, "content-length") or 0))
    pieces = []
    while size := int((await reader.readuntil(_LINE)).split(b";")[0], 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(len(_LINE))
    await reader.readexactly(len(_LINE))
    body = b"".join(pieces)
    length = f"content-length: {len(body)}\r\n\r\n".encode()
    return _without(head, "transfer-encoding").removesuffix(_LINE) + length, body


def _without(head: bytes, name: str) -> bytes:
    start = f"{name}:".encode()
    return _LINE.join(line for line in head.split(_LINE) if not line.lower().startswith(start))
