"""Tasks that wait for events and are cancelled: no event is lost, doubled or out of order."""

import asyncio
import queue
import random
import threading
from collections.abc import Iterator

import pytest

from catchment.model.errors import ConnectionLost
from catchment.serve.stream.ahead import Ahead
from catchment.serve.stream.events import Event, Heartbeat, VGtid
from tests.suite.drawn import drawn


class Source:
    """Events that come when the test puts them; a None ends them, and an error is raised."""

    def __init__(self) -> None:
        self.given: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self.asked = threading.Semaphore(0)

    def __iter__(self) -> Iterator[Event]:
        while True:
            self.asked.release()
            event = self.given.get()
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield event


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, VGtid)]


def test_a_wait_that_is_cancelled_loses_nothing() -> None:
    source = Source()
    rng = random.Random(drawn("cancelled waits", 1 << 32))

    async def taken(ahead: Ahead) -> list[Event]:
        found: list[Event] = []
        for number in range(500):
            given = rng.random() < 0.5
            if given:
                source.given.put(VGtid(str(number), 0))
            waiting = asyncio.ensure_future(ahead.next())
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            waiting.cancel()
            try:
                event = await waiting
            except asyncio.CancelledError:
                event = None
            found += [event] if event is not None else []
            if not given:
                source.given.put(VGtid(str(number), 0))
        while len(found) < 500:
            event = await ahead.next()
            assert event is not None
            found.append(event)
        return found

    ahead = Ahead(iter(source))
    found = asyncio.run(taken(ahead))
    assert texts(found) == [str(number) for number in range(500)]
    source.given.put(None)
    ahead.end()


def test_what_one_loop_has_pulled_another_one_or_a_thread_gets() -> None:
    source = Source()
    ahead = Ahead(iter(source))

    async def cancelled() -> None:
        waiting = asyncio.ensure_future(ahead.next())
        await asyncio.sleep(0)
        source.asked.acquire()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())
    source.given.put(Heartbeat(1))
    assert asyncio.run(ahead.next()) == Heartbeat(1)
    assert ahead.pulled() is None
    source.given.put(None)
    assert asyncio.run(ahead.next()) is None
    ahead.end()


def test_events_in_front_of_an_error_come_before_it() -> None:
    source = Source()
    ahead = Ahead(iter(source))
    before = VGtid("1", 0)
    for event in (before, ConnectionLost("the shard is away"), None):
        source.given.put(event)

    async def taken() -> None:
        assert await ahead.next() == before
        with pytest.raises(ConnectionLost, match="away"):
            await ahead.next()
        assert await ahead.next() is None

    asyncio.run(taken())
    ahead.end()


def test_it_ends_while_a_pull_goes_on() -> None:
    source = Source()
    ahead = Ahead(iter(source))

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ahead.next(), 0.01)

    asyncio.run(cancelled())
    ending = threading.Thread(target=ahead.end)
    ending.start()
    source.given.put(VGtid("1", 0))
    ending.join()
    assert asyncio.run(ahead.next()) == VGtid("1", 0)
