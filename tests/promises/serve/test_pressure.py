"""Clients that do not read, and clients that are gone: nothing piles up for them, and nothing is kept."""

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from catchment.config import load_server
from catchment.serve.server import server as listening
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.admission import Lock
from catchment.serve.server.feeds import Feeds, Served
from catchment.serve.server.server import Server
from catchment.serve.server.telling import Message
from tests.promises.serve.server import FEED, METHOD, TOKEN, Caller, Running, feed_file, server_file, serving
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.proxy import Proxy

_MESSAGE = Message(pb.EventBatch(events=[pb.Event(vgtid=pb.VGtid(text="x" * (1 << 20)))]).SerializeToString())


# Messages of 1 MiB: a client of gRPC takes ahead what it finds that its connection holds, more on a busy machine.
HELD_MAX = 100


class Endless:
    """A hub whose clients are given one message of 1 MiB after another; `rests`: none."""

    def __init__(self, *, rests: bool = False) -> None:
        self.rests = rests
        self.pulled = self.open_now = self.opened = 0
        self._silence = threading.Event()

    def opening(self, ask: Any, telling: Any, name: str, stays: Any) -> Generator[None, None, "Endless"]:
        self.open_now += 1
        self.opened += 1
        yield from ()
        return self

    def pull(self) -> Iterator[Message]:
        if self.rests:
            self._silence.wait(0.1)
            return
        self.pulled += 1
        yield _MESSAGE

    def close(self, client: Any) -> None:
        self.open_now -= 1

    def standings(self) -> range:
        return range(self.open_now)

    def stop(self) -> None: ...


@contextmanager
def endless(directory: Path, hub: Endless) -> Iterator[Running]:
    file = server_file(directory, feed_file(directory, {}, ["x.*"]))
    served: Any = Served(Lock.of([TOKEN]), hub)  # type: ignore[arg-type]
    with serving(file, Feeds({FEED: served})) as server:
        yield server


def at_rest(hub: Endless) -> int:
    """How many messages were pulled once no more are for three seconds."""
    seen, since = hub.pulled, time.monotonic()
    deadline = since + PATIENCE_SECONDS
    while time.monotonic() - since < 3:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        if hub.pulled != seen:
            seen, since = hub.pulled, time.monotonic()
    return seen


@pytest.mark.promise("a server reads nothing for a client that does not read")
def test_who_does_not_read_is_not_pulled_for(tmp_path: Path) -> None:
    hub = Endless()
    with endless(tmp_path, hub) as server:
        batches = Caller(server.port).batches()
        next(batches)
        held = at_rest(hub)
        assert held < HELD_MAX
        for _ in range(100):
            next(batches)
        assert 100 < at_rest(hub) < 100 + HELD_MAX + held
        batches.cancel()
        until("it is noticed", lambda: hub.open_now == 0)
        assert server.feeds.clients == 0


def test_who_does_not_read_does_not_hold_up_the_end(tmp_path: Path) -> None:
    hub = Endless()
    with endless(tmp_path, hub) as server:
        next(Caller(server.port).batches())
        at_rest(hub)
    assert hub.open_now == 0


_READER = """
import sys
from tests.promises.serve.server import Caller
batches = Caller(int(sys.argv[1])).batches()
print(len(next(batches).events), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("rests", [False, True])
def test_who_is_killed_is_noticed(tmp_path: Path, rests: bool) -> None:
    hub = Endless()
    with endless(tmp_path, hub) as server:
        command = [sys.executable, "-c", _READER, str(server.port)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"1\n"
            hub.rests = rests
            client.kill()
        until("it is noticed", lambda: hub.open_now == 0)
        assert server.feeds.clients == 0


@pytest.mark.parametrize("rests", [False, True])
def test_whose_cable_is_pulled_is_noticed(
    tmp_path: Path, rests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_KEEPALIVE_MS", 1000)
    monkeypatch.setattr(listening, "_ANSWER_MS", 1000)
    hub = Endless()
    with endless(tmp_path, hub) as server, Proxy("127.0.0.1", server.port) as cable:
        batches = Caller(cable.port).batches()
        next(batches)
        hub.rests = rests
        at_rest(hub)  # gRPC has had answers to what it asks behind messages, and nothing else is under way
        cable.stall()
        until("it is noticed", lambda: hub.open_now == 0)
        assert server.feeds.clients == 0
        assert hub.opened == 1
        del batches


def test_who_has_no_token_and_sends_no_request_takes_no_thread(tmp_path: Path) -> None:
    """Such calls would wait for their requests, one thread each, and nobody else would be served."""
    with endless(tmp_path, Endless()) as server:
        channel = Caller(server.port).channel
        silent = channel.stream_stream(METHOD, lambda message: message, lambda message: message)
        never = threading.Event()

        def nothing() -> Iterator[bytes]:
            never.wait()
            yield b""

        for metadata in ((), (("authorization", "Bearer another-token-of-somebody"),)) * 150:
            with pytest.raises(grpc.RpcError) as ended:
                next(silent(nothing(), metadata=metadata, timeout=PATIENCE_SECONDS))
            assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        next(Caller(server.port).batches())
        never.set()


def test_a_second_server_on_a_port_is_refused(tmp_path: Path) -> None:
    from catchment.model.errors import ConfigError

    with endless(tmp_path, Endless()) as server:
        file = next(tmp_path.glob("serve-*.yaml"))
        with pytest.raises(ConfigError, match=f"port: cannot listen on 127.0.0.1:{server.port}"):
            Server(load_server(file), Feeds({}))


def test_a_stream_that_fails_is_told_by_a_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Endless):
        def pull(self) -> Iterator[Message]:
            raise ZeroDivisionError("by a secret")

    with endless(tmp_path, Broken()) as server:
        code, text = Caller(server.port).refusal()
    assert code is grpc.StatusCode.INTERNAL
    number = text.removeprefix("the server failed: number ").partition(" ")[0]
    assert text == f"the server failed: number {number} in the server's log says why"
    assert "secret" not in text
    assert f"{number}: stream of shop" in caplog.text
