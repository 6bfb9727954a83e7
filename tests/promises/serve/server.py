"""Servers of streams, in this process or in one of their own, and clients made from the protobuf."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import yaml

from catchment.config import load_server
from catchment.demo.server import PrivateServer
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.feeds import Feeds, feeds_of
from catchment.serve.server.server import Server
from catchment.serve.stream.events import CopyCompleted, Event, VGtid
from tests.promises.stream.sources import source_of
from tests.world.patience import PATIENCE_SECONDS
from tests.world.streamed import Reading

FEED = "shop"
TOKEN = "a-token-that-nobody-guesses"
SERVICE = "catchment.stream.v1.Streams"
METHOD = f"/{SERVICE}/Stream"


def free_port() -> int:
    """A port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def feed_file(
    directory: Path,
    servers: Mapping[str, PrivateServer],
    tables: Sequence[str],
    name: str = FEED,
    **more: Any,
) -> Path:
    """A feed file of these shards."""
    file = directory / f"{name}.yaml"
    feed = {"name": name, "source": source_of(servers), "tables": list(tables), "sink": {"path": "lake"}}
    file.write_text(yaml.safe_dump({**feed, **more}))
    return file


def server_file(directory: Path, *feeds: Path, tls: Any = False, **more: Any) -> Path:
    """A server's file on a free port; each feed has the token TOKEN."""
    port = free_port()
    file = directory / f"serve-{port}.yaml"
    served = [{"file": str(feed), "tokens": [TOKEN]} for feed in feeds]
    file.write_text(yaml.safe_dump({"port": port, "tls": tls, **({"feeds": served} | more)}))
    return file


@dataclass
class Caller:
    """A client of one server. Without `authority` the connection is plain."""

    port: int
    token: str = TOKEN
    feed: str = FEED
    authority: bytes | None = None
    options: Sequence[tuple[str, Any]] = ()
    calls: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = f"localhost:{self.port}"
        if self.authority is None:
            self.channel = grpc.insecure_channel(place, options=self.options)
        else:
            trusted = grpc.ssl_channel_credentials(self.authority)
            self.channel = grpc.secure_channel(place, trusted, options=self.options)

    def batches(self, **asked: Any) -> Any:
        """The messages of a stream, and a call that can be cancelled."""
        call = self.channel.unary_stream(
            METHOD,
            request_serializer=pb.StreamRequest.SerializeToString,
            response_deserializer=pb.EventBatch.FromString,
        )
        request = pb.StreamRequest(**{"feed": self.feed, **asked})
        self.calls.append(call(request, metadata=self._metadata(), timeout=PATIENCE_SECONDS))
        return self.calls[-1]

    def events(self, **asked: Any) -> Iterator[Event]:
        """The events of a stream."""
        reading = Reading()
        for batch in self.batches(**asked):
            yield from reading.events(batch)

    def acknowledge(self, subscriber: str, vgtid: str) -> bool:
        """Whether it is later than what was acknowledged before."""
        request = pb.AcknowledgeRequest(feed=self.feed, subscriber=subscriber, vgtid=vgtid)
        return bool(self._answer("Acknowledge", request, pb.AcknowledgeResponse).advanced)

    def subscribers(self) -> list[Any]:
        """Those of the feed."""
        request = pb.ListSubscribersRequest(feed=self.feed)
        return list(self._answer("ListSubscribers", request, pb.ListSubscribersResponse).subscribers)

    def remove(self, subscriber: str) -> bool:
        """Whether it was there."""
        request = pb.RemoveSubscriberRequest(feed=self.feed, subscriber=subscriber)
        return bool(self._answer("RemoveSubscriber", request, pb.RemoveSubscriberResponse).removed)

    def _answer(self, name: str, request: Any, answer: Any) -> Any:
        call = self.channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return call(request, metadata=self._metadata(), timeout=PATIENCE_SECONDS)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def refusal(self, **asked: Any) -> tuple[grpc.StatusCode, str]:
        """How a stream ends that gives nothing behind its first messages."""
        try:
            for _ in self.batches(**asked):
                pass
        except grpc.RpcError as ended:
            return ended.code(), ended.details() or ""
        raise AssertionError("a stream has no end")

    def close(self) -> None:
        """As a client that is killed: without a word to its streams."""
        self.channel.close()


@dataclass(frozen=True)
class Running:
    """A server in this process. `flight_port`: 0 without Arrow Flight."""

    server: Server
    feeds: Feeds
    port: int
    flight_port: int


@contextmanager
def serving(file: Path, feeds: Feeds | None = None) -> Iterator[Running]:
    """The server of a file, of its own feeds or of others."""
    config = load_server(file)
    served = feeds or feeds_of(config)
    server = Server(config, served)
    try:
        yield Running(server, served, config.port, config.flight.port if config.flight else 0)
    finally:
        server.stop()


@contextmanager
def process(file: Path) -> Iterator["subprocess.Popen[str]"]:
    """`catchment serve` once it listens; killed at the end if it still runs."""
    command = [sys.executable, "-m", "catchment.cli.main", "serve", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            assert line.startswith("serving "), (line, running.stderr and running.stderr.read())
            yield running
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGKILL)


def port_of(file: Path) -> int:
    """Where the server of a file listens."""
    return load_server(file).port


def until_copied(events: Iterator[Event]) -> list[Event]:
    """The events up to the vgtid at which all is copied."""
    return up_to(events, lambda event: isinstance(event, CopyCompleted) and event.table is None)


def up_to(events: Iterator[Event], done: Any) -> list[Event]:
    """The events up to the vgtid behind the first one of which `done` holds."""
    found: list[Event] = []
    met = False
    for event in events:
        found.append(event)
        met = met or done(event)
        if met and isinstance(event, VGtid):
            return found
    raise AssertionError("a stream has no end")
