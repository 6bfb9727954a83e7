"""The page of a server, as HTML that a browser loads again every two seconds, and the answers beside it."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus

import msgspec
from prometheus_client import CollectorRegistry

from catchment.page.requests import Answer, Request, plain
from catchment.page.routes import file_answer, metrics_of
from catchment.serve.hub.following import ReaderStanding
from catchment.serve.hub.subscribers import SubscriberStanding
from catchment.serve.server.shown import FeedShown, ServerShown

_HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
    '<meta http-equiv="refresh" content="2"><title>Catchment serve</title>'
    '<link rel="icon" href="/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="/page.css"></head><body>\n'
)
_READERS = ("reader of", "clients", "turns told", "kept", "skew")
_SHARDS = ("shard", "last transaction told")
_CLIENTS = ("client", "reads by", "behind", "not taken", "messages")
_SUBSCRIBERS = ("subscriber", "acknowledged", "not acknowledged", "slip")
# Built once: msgspec 0.22 crashes the process where two threads build one at once.
_encoder = msgspec.json.Encoder()


def page_of(shown: Callable[[], ServerShown], registry: CollectorRegistry) -> Callable[[Request], Answer]:
    """The page, what it shows as JSON, health, and metrics."""
    metrics = metrics_of(registry)

    def answer(request: Request) -> Answer:
        match request.path:
            case "/":
                return Answer(HTTPStatus.OK, "text/html; charset=utf-8", html(shown()).encode())
            case "/status.json":
                return Answer(HTTPStatus.OK, "application/json", _encoder.encode(shown()))
            case "/healthz":
                return plain(HTTPStatus.OK, "ok")
            case "/metrics":
                return metrics(request)
            case "/page.css" | "/icon.svg":
                return file_answer(request.path)
        return plain(HTTPStatus.NOT_FOUND, "there are /, /status.json, /healthz and /metrics")

    return answer


def html(shown: ServerShown) -> str:
    """The page."""
    feeds = "".join(map(_feed, shown.feeds))
    return f"{_HEAD}<header><h1>Catchment serve</h1></header>\n<main>{feeds}</main></body></html>\n"


def _feed(feed: FeedShown) -> str:
    parts = [f"<h2>{escape(feed.name)}</h2>"]
    parts.append(_table(_READERS, map(_reader, feed.readers)))
    parts += [
        _table(_SHARDS, ((shard, _time(at)) for shard, at in one.shards.items())) for one in feed.readers
    ]
    clients = (
        (one.name, one.reading.value, _seconds(one.behind), _bytes(one.waiting_bytes), f"{one.given:,}")
        for one in sorted(feed.clients, key=lambda one: one.behind, reverse=True)
    )
    parts.append(_table(_CLIENTS, clients))
    parts.append(_table(_SUBSCRIBERS, map(_subscriber, feed.subscribers)))
    return f"<section>{''.join(parts)}</section>\n"


def _reader(one: ReaderStanding) -> Iterable[str]:
    return (one.rules, f"{one.clients:,}", f"{one.told:,}", _bytes(one.nbytes), _seconds(one.skew))


def _subscriber(one: SubscriberStanding) -> Iterable[str]:
    at = _time(one.acknowledged_us // 1_000_000)
    if one.slip is None:
        return (one.name, at, "it is not here", "")
    return (
        one.name,
        at,
        f"{one.slip.vgtids:,} vgtids, {_bytes(one.slip.nbytes)}",
        _seconds(one.slip.seconds),
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Nothing where there is no row."""
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        if body
        else ""
    )


def _time(seconds: int | None) -> str:
    return "none yet" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):,.1f} MiB" if count >= 1 << 20 else f"{count / 1024:,.1f} KiB"
