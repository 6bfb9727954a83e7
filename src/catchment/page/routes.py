"""Which answer stands under which path."""

from collections.abc import Callable, Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from catchment.page.board import Board, Shown
from catchment.page.requests import Answer, Request, plain

_JSON = "application/json"
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
# Built once: msgspec 0.22 crashes the process where two threads build one at once.
_encoder = msgspec.json.Encoder()


def metrics_of(registry: CollectorRegistry) -> Callable[[Request], Answer]:
    """The metrics, under every path."""

    def answer(request: Request) -> Answer:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Answer(HTTPStatus.OK, kind, encode(registry))

    return answer


def page_of(board: Board, registry: CollectorRegistry) -> Callable[[Request], Answer]:
    """The page of a run, what it shows as JSON, its health, and its metrics."""
    metrics = metrics_of(registry)

    def answer(request: Request) -> Answer:
        match request.path:
            case "/status.json":
                return Answer(HTTPStatus.OK, _JSON, encoded(board.shown()))
            case "/healthz":
                return _probe([fault] if (fault := board.fault()) else [])
            case "/readyz":
                return _probe(board.unready())
            case "/metrics":
                return metrics(request)
            case path if path in _FILES:
                return file_answer(path)
        return plain(HTTPStatus.NOT_FOUND, "there are /, /status.json, /healthz, /readyz and /metrics")

    return answer


def _probe(faults: Sequence[str]) -> Answer:
    status = HTTPStatus.SERVICE_UNAVAILABLE if faults else HTTPStatus.OK
    return plain(status, "\n".join(faults) or "ok")


def file_answer(path: str) -> Answer:
    """One of the files of pages."""
    name, kind = _FILES[path]
    return Answer(HTTPStatus.OK, kind, _file(name))


def encoded(shown: Shown) -> bytes:
    """As JSON."""
    return _encoder.encode(shown)


@cache
def _file(name: str) -> bytes:
    return (files("catchment.page") / "files" / name).read_bytes()
