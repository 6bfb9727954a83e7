"""The clock when a reading fails: who waits for a tick is told, and it goes on when the shard is back."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from catchment import world
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.feed import clock as clock_module
from catchment.feed import shard_reader
from catchment.feed.clock import Clock
from catchment.feed.shard_reader import ShardReader
from catchment.model.errors import ConnectionLost, Diverged, HeldUp, OtherServer, SourceError
from catchment.model.position import LogOffset, Resets
from catchment.model.source import Endpoint
from catchment.source.offsets import snapshot_offset
from catchment.source.session import Session, connect
from tests.world.patience import PATIENCE_SECONDS, until

NEVER = 1 << 63  # a number that no tick reaches


@contextmanager
def ticking(server: PrivateServer, seconds: float = 0.01) -> Iterator[Clock]:
    endpoint = Endpoint("a", server.host, server.port, FEED_USER, server.password)
    with connect(endpoint) as session:
        clock = Clock({"a": endpoint}, {"a": session.server}, seconds, 0)
    clock.start({})
    try:
        yield clock
    finally:
        clock.stop()


def test_an_error_of_any_kind_ends_the_wait_for_a_tick(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(reader: ShardReader) -> tuple[LogOffset, int]:
        raise RuntimeError("can't start new thread")

    with ticking(shard) as clock:
        assert clock.after(0, PATIENCE_SECONDS) is not None
        monkeypatch.setattr(ShardReader, "read", broken)
        with pytest.raises(RuntimeError, match="can't start"):
            clock.after(NEVER, PATIENCE_SECONDS)


def test_a_clock_that_has_ended_leaves_nobody_waiting_for_an_answer(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a question about RESET would wait for half a minute, and a client that leaves would stay for as long."""

    def broken(reader: ShardReader) -> tuple[LogOffset, int]:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(clock_module, "SILENT_SECONDS_MAX", 1e6)
    with ticking(shard) as clock:
        assert clock.resets(["a"])
        monkeypatch.setattr(ShardReader, "read", broken)
        with pytest.raises(RuntimeError, match="can't start"):
            clock.after(NEVER, PATIENCE_SECONDS)
        with pytest.raises(RuntimeError, match="can't start"):
            clock.resets(["a"])


def test_while_nobody_asks_a_tick_is_taken_once_a_second(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[float] = []
    real = ShardReader.read

    def read(reader: ShardReader) -> tuple[LogOffset, int]:
        began.append(time.monotonic())
        return real(reader)

    monkeypatch.setattr(ShardReader, "read", read)
    with ticking(shard) as clock:
        assert clock.after(0, PATIENCE_SECONDS) is not None
        asked = len(began)
        until("three more ticks", lambda: len(began) >= asked + 3)
    assert min(after - before for before, after in pairwise(began[asked:])) > 0.9


def test_who_asks_right_behind_a_tick_waits_for_the_pace_alone(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That tick was tried just now, and yet another one has to come; with no question none would for an hour."""
    monkeypatch.setattr(clock_module, "_IDLE_SECONDS", 3600.0)
    with ticking(shard, 0.2) as clock:
        last = clock.after(0, PATIENCE_SECONDS)
        for _ in range(5):
            assert last is not None
            last = clock.after(last.number, PATIENCE_SECONDS)
        assert last is not None


def test_a_tick_behind_a_moment_began_behind_it(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another one is being taken then."""
    began: list[float] = []
    reading = threading.Event()
    real = ShardReader.read

    def read(reader: ShardReader) -> tuple[LogOffset, int]:
        began.append(time.monotonic())
        found = real(reader)
        reading.set()
        time.sleep(0.2)
        return found

    with ticking(shard, 0.5) as clock:
        first = clock.after(0, PATIENCE_SECONDS)
        assert first is not None
        monkeypatch.setattr(ShardReader, "read", read)
        assert reading.wait(PATIENCE_SECONDS)
        since = time.monotonic()
        tick = clock.after(first.number, PATIENCE_SECONDS, since=since)
        assert tick is not None
        assert began[0] < since
        assert any(at >= since for at in began)


def test_a_tick_that_was_dropped_is_no_answer(shard: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks where the logs end from a moment on gets no tick from before it, though the clock has tried since."""
    real = ShardReader.accept
    drops = [True, True]

    def accept(reader: ShardReader, offset: LogOffset) -> LogOffset | None:
        return None if drops and drops.pop() else real(reader, offset)

    with ticking(shard) as clock:
        first = clock.after(0, PATIENCE_SECONDS)
        assert first is not None
        monkeypatch.setattr(ShardReader, "accept", accept)
        tick = clock.after(0, PATIENCE_SECONDS, since=world.steady_seconds())
        assert tick is not None
        assert tick.number > first.number
        assert not drops


def test_no_tick_is_taken_where_no_dump_can_start(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL tells the end of a transaction of more than 4 GiB until it begins the next file."""
    real = ShardReader.read
    taken_beyond: list[int] = []

    def beyond(reader: ShardReader) -> tuple[LogOffset, int]:
        offset, taken = real(reader)
        taken_beyond.append(taken)
        return LogOffset(offset.file, offset.offset + 2**32), taken

    with ticking(shard) as clock:
        before = clock.after(0, PATIENCE_SECONDS)
        assert before is not None
        with monkeypatch.context() as large:
            large.setattr(ShardReader, "read", beyond)
            until("it is read", lambda: clock.after(NEVER, 0.01) or len(taken_beyond) > 1)
            last = clock.after(0, PATIENCE_SECONDS)
            assert last is not None
            seen = len(taken_beyond)
            until("it is read again", lambda: clock.after(last.number, 0.01) or len(taken_beyond) > seen + 2)
            assert clock.after(last.number, 0.0) is None
        after = clock.after(last.number, PATIENCE_SECONDS)
        assert after is not None
        assert after.offsets == before.offsets


def test_a_shard_that_was_silent_for_long_is_read_again(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(reader: ShardReader) -> tuple[LogOffset, int]:
        raise ConnectionLost("shard a is away")

    monkeypatch.setattr(clock_module, "SILENT_SECONDS_MAX", 0.1)
    with ticking(shard) as clock:
        assert clock.after(0, PATIENCE_SECONDS) is not None
        with monkeypatch.context() as away:
            away.setattr(ShardReader, "read", lost)
            with pytest.raises(ConnectionLost):
                clock.after(NEVER, PATIENCE_SECONDS)
        until("it is read again", lambda: _answers(clock))
        assert clock.after(0, PATIENCE_SECONDS) is not None


def _answers(clock: Clock) -> bool:
    try:
        assert clock.after(NEVER, 0.01) is None
    except ConnectionLost:
        return False
    return True


class Sessions:
    """Watches the readings of a clock: each takes a while, and no session may be in two at once."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._inside: set[int] = set()
        self.readings = 0
        self.shared = 0
        self.of_shard: dict[str, set[int]] = {}

    def read(self, session: Session) -> LogOffset:
        """In the place of `snapshot_offset`."""
        thread = session.thread_id()  # type: ignore[no-untyped-call]
        with self._lock:
            self.readings += 1
            self.shared += thread in self._inside
            self._inside.add(thread)
            self.of_shard.setdefault(session.endpoint.shard, set()).add(thread)
        time.sleep(self._seconds())
        try:
            return snapshot_offset(session)
        finally:
            with self._lock:
                self._inside.discard(thread)


@contextmanager
def ten_shards(server: PrivateServer, watched: Sessions, seconds: float) -> Iterator[Clock]:
    """A clock of nine shards that answer, after one that refuses; all of them are sessions of one server."""
    good = Endpoint("0", server.host, server.port, FEED_USER, server.password)
    with connect(good) as session:
        identity = session.server
    with socket.socket() as silent, pytest.MonkeyPatch.context() as patch:
        silent.bind((server.host, 0))  # and does not listen: who connects is refused
        shards = {"away": replace(good, shard="away", port=silent.getsockname()[1])}
        shards |= {str(n): replace(good, shard=str(n)) for n in range(9)}
        patch.setattr(shard_reader, "snapshot_offset", watched.read)
        clock = Clock(shards, dict.fromkeys(shards, identity), seconds, 0).start({})
        try:
            yield clock
        finally:
            clock.stop()


def test_a_shard_that_refuses_lets_no_two_threads_into_the_session_of_another(shard: PrivateServer) -> None:
    """PyMySQL lets threads share no connection (threadsafety 1): replies would swap."""
    watched = Sessions(lambda: 0.35)
    with ten_shards(shard, watched, 0.1) as clock:
        assert clock.after(0, 4) is None
    assert watched.readings >= 2 * 9
    assert watched.shared == 0
    assert {name: len(sessions) for name, sessions in watched.of_shard.items()} == {
        str(n): 1 for n in range(9)
    }, "a session was given up because of another shard"


def test_readings_of_any_length_share_no_session(shard: PrivateServer) -> None:
    dice = random.Random(11)
    watched = Sessions(lambda: dice.choice((0.0, 0.0, 0.001, 0.02, 0.1)))
    with ten_shards(shard, watched, 0.001) as clock:
        assert not any(clock.after(0, 0.02) for _ in range(200))
    assert watched.readings >= 10 * 9
    assert watched.shared == 0


def test_who_asks_for_resets_may_wait_for_a_person(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint("a", shard.host, shard.port, FEED_USER, shard.password)
    with connect(endpoint) as session:
        clock = Clock({"a": endpoint}, {"a": session.server}, 0.01, 0, away_max=1e9, bears=True)

    def refuse(reader: ShardReader) -> Resets:
        raise OtherServer("it is another server")

    monkeypatch.setattr(ShardReader, "resets", refuse)
    clock.start({})
    try:
        with pytest.raises(HeldUp, match="another server"):
            clock.resets(["a"])
    finally:
        clock.stop()


def test_a_shard_is_asked_once_it_has_passed_what_it_had_to(shard: PrivateServer) -> None:
    """The other shards are ticked meanwhile."""
    endpoint = Endpoint("a", shard.host, shard.port, FEED_USER, shard.password)
    with connect(endpoint) as session:
        identity = session.server
    shards = {name: replace(endpoint, shard=name) for name in ("a", "b")}
    lacks = [True]
    passed: list[str] = []

    def admit() -> None:
        if lacks[0]:
            raise SourceError("shard b: the user lacks SELECT")
        passed.append("b")

    clock = Clock(
        shards, dict.fromkeys(shards, identity), 0.01, 0, away_max=1e9, bears=True, unready={"b": admit}
    )
    clock.start({})
    try:
        first = until("a tick without it", lambda: clock.after(0, PATIENCE_SECONDS))
        assert first is not None
        assert list(first.offsets) == ["a"]
        assert not passed
        lacks[0] = False

        def ticks_with_it() -> bool:
            tick = clock.after(0, PATIENCE_SECONDS, apart=0.01)
            return tick is not None and "b" in tick.offsets

        until("a tick with it", ticks_with_it)
        assert passed == ["b"], "it passes once"
    finally:
        clock.stop()


def test_the_error_that_cannot_pass_comes_first(
    shard: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that is away must not hide that another one's log was reset."""
    endpoint = Endpoint("a", shard.host, shard.port, FEED_USER, shard.password)
    with connect(endpoint) as session:
        identity = session.server

    def read(reader: ShardReader) -> tuple[LogOffset, int]:
        raise Diverged("b was reset") if reader.endpoint.shard == "b" else ConnectionLost("a is away")

    monkeypatch.setattr(ShardReader, "read", read)
    shards = {name: replace(endpoint, shard=name) for name in ("a", "b")}
    clock = Clock(shards, dict.fromkeys(shards, identity), 0.01, 0).start({})
    try:
        with pytest.raises(Diverged, match="b was reset"):
            clock.after(0, PATIENCE_SECONDS)
    finally:
        clock.stop()
