"""The clock when a reading fails: who waits for a tick is told, and it goes on when the shard is back."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.flow.capture.connect import connect, identify
from catchment.model.errors import ConnectionLost
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.run import clock as clock_module
from catchment.run.clock import Clock, _Reader

NEVER = 1 << 63  # a number that no tick reaches


@contextmanager
def ticking(server: PrivateServer) -> Iterator[Clock]:
    endpoint = Endpoint("a", server.host, server.port, FEED_USER, server.password)
    with closing(connect(endpoint)) as session:
        clock = Clock({"a": endpoint}, {"a": identify(session, endpoint)}, 0.01, 0)
    clock.start({})
    try:
        yield clock
    finally:
        clock.stop()


def test_an_error_of_any_kind_ends_the_wait_for_a_tick(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(reader: _Reader) -> tuple[LogOffset, int]:
        raise RuntimeError("can't start new thread")

    with ticking(shard) as clock:
        assert clock.after(0, 10) is not None
        monkeypatch.setattr(_Reader, "read", broken)
        with pytest.raises(RuntimeError, match="can't start"):
            clock.after(NEVER, 10)


def test_a_shard_that_was_silent_for_long_is_read_again(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(reader: _Reader) -> tuple[LogOffset, int]:
        raise ConnectionLost("shard a is away")

    monkeypatch.setattr(clock_module, "SILENT_SECONDS_MAX", 0.1)
    with ticking(shard) as clock:
        assert clock.after(0, 10) is not None
        with monkeypatch.context() as away:
            away.setattr(_Reader, "read", lost)
            with pytest.raises(ConnectionLost):
                clock.after(NEVER, 10)
        for _ in range(1000):
            try:
                assert clock.after(NEVER, 0.01) is None
                break
            except ConnectionLost:
                time.sleep(0.01)
        assert clock.after(0, 10) is not None
