"""HTTP/1.1 messages as they stand on the wire, each read whole."""

import asyncio
from dataclasses import dataclass

_LINE = b"\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BODILESS = (204, 304)


class Unreadable(Exception):
    """A message of a kind that neither clients of S3 nor the server send."""


GONE = (OSError, asyncio.IncompleteReadError, Unreadable)
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
    """The next request of a client, None at the end of its connection. Raises Unreadable."""
    head = await _head(reader)
    if head is None:
        return None
    method, target, _ = head.split(_LINE, 1)[0].decode("latin-1").split(" ")
    if header(head, "transfer-encoding") is not None:
        raise Unreadable(f"{method} {target} does not say its length")
    if header(head, "expect") is not None:  # answered here, since the server is asked when the body is there
        writer.write(_CONTINUE)
        head = _LINE.join(line for line in head.split(_LINE) if not line.lower().startswith(b"expect:"))
    body = await reader.readexactly(int(header(head, "content-length") or 0))
    return Request(method, target, head, body)


async def read_answer(reader: asyncio.StreamReader, method: str) -> Answer:
    """The answer to a request of a method. Raises Unreadable, also where the server breaks off."""
    head = await _head(reader)
    if head is None:
        raise Unreadable("the server ended the connection without an answer")
    status = int(head.split(b" ", 2)[1])
    length = header(head, "content-length")
    if method == "HEAD" or status in _BODILESS:
        body = b""
    elif length is not None:
        body = await reader.readexactly(int(length))
    elif header(head, "transfer-encoding") is not None:
        body = await _chunks(reader)
    else:
        raise Unreadable(f"the answer to {method} does not say its length")
    return Answer(status, head, body, (header(head, "connection") or "").lower() == "close")


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(_LINE + _LINE)
    except asyncio.IncompleteReadError as end:
        if end.partial:
            raise
        return None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A body in chunks, as it came."""
    pieces = []
    while True:
        pieces.append(await reader.readuntil(_LINE))
        size = int(pieces[-1].split(b";")[0], 16)
        pieces.append(await reader.readexactly(size + len(_LINE)))
        if size == 0:
            return b"".join(pieces)
