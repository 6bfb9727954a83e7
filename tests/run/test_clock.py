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


def test_no_tick_is_taken_where_no_dump_can_start(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL tells the end of a transaction of more than 4 GiB until it begins the next file."""
    real = _Reader.read

    def beyond(reader: _Reader) -> tuple[LogOffset, int]:
        offset, taken = real(reader)
        return LogOffset(offset.file, offset.offset + 2**32), taken

    with ticking(shard) as clock:
        before = clock.after(0, 10)
        assert before is not None
        with monkeypatch.context() as large:
            large.setattr(_Reader, "read", beyond)
            time.sleep(0.1)
            last = clock.after(0, 10)
            assert last is not None
            assert clock.after(last.number, 0.3) is None
        after = clock.after(last.number, 10)
        assert after is not None
        assert after.offsets == before.offsets


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
