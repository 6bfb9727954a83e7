"""Requests and answers of HTTP, as far as a page needs them: GET and HEAD, one of them a connection. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

HEAD_BYTES_MAX = 8192
HEAD_END = b"\r\n\r\n"
_METHODS = ("GET", "HEAD")
_LOOPBACK = ("localhost", "[::1]")
_LOOPBACK_4 = re.compile(r"127(?:\.[0-9]{1,3}){3}")
# Nothing from elsewhere, nothing inline, and no page of others may hold this one.
_ALWAYS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self, *, head_only: bool) -> bytes:
        """As it goes over the wire."""
        headers = {
            **_ALWAYS,
            **self.headers,
            "Content-Type": self.kind,
            "Content-Length": str(len(self.body)),
        }
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines).encode("latin-1") + HEAD_END
        return head if head_only else head + self.body


def plain(status: HTTPStatus, text: str, **headers: str) -> Answer:
    """A line of text."""
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: the path without its query. Names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def head_only(self) -> bool:
        """Whether the body is left out of the answer."""
        return self.method == "HEAD"


def parse(head: bytes) -> Request | Answer:
    """A request, or what to answer one that cannot be served."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return plain(HTTPStatus.BAD_REQUEST, "not a request of HTTP/1.1")
    if words[0] not in _METHODS:
        return plain(HTTPStatus.METHOD_NOT_ALLOWED, "this page is read only", Allow=", ".join(_METHODS))
    pairs = (line.partition(":") for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Request(words[0], words[1].partition("?")[0], headers)


def names_loopback(request: Request) -> bool:
    """Whether the client knows this host by a name of the loopback. A page of others whose name was made to lead here
    does not (DNS rebinding)."""
    host = request.headers.get("host", "").lower()
    name = host[: host.index("]") + 1] if "]" in host else host.partition(":")[0]
    return name in _LOOPBACK or _LOOPBACK_4.fullmatch(name) is not None
