"""The door to the world: each call looks anew at what stands behind it, which may be another world by then.

One door for the process, and no argument that every function hands on: docs/decisions/2026-11-22-world.md.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catchment.world.port import Condition, Event, Lock, Pool, Servers, Thread, World
from catchment.world.real import Real

_world: World = Real()


@contextmanager
def instead(other: World) -> Iterator[None]:
    """Have another world stand behind the door, for all threads, until the end of the block."""
    global _world  # noqa: PLW0603
    before, _world = _world, other
    try:
        yield
    finally:
        _world = before


def steady_seconds() -> float:
    """A clock that nobody sets and that goes on while the machine sleeps."""
    return _world.steady_seconds()


def now_us() -> int:
    """Microseconds since 1970."""
    return _world.now_us()


def sleep(seconds: float) -> None:
    """Do nothing for so long."""
    _world.sleep(seconds)


def event() -> Event:
    """A flag that threads wait for."""
    return _world.event()


def condition() -> Condition:
    """A lock with which threads wait for what others tell."""
    return _world.condition()


def lock() -> Lock:
    """A lock."""
    return _world.lock()


def thread(name: str, work: Callable[[], None]) -> Thread:
    """A thread that runs `work` and keeps no process alive; `start` begins it."""
    return _world.thread(name, work)


def pool(threads: int, name: str = "") -> Pool:
    """Threads that share work; leaving its `with` block waits for all of it."""
    return _world.pool(threads, name)


def token() -> str:
    """32 hexadecimal digits that nobody else draws."""
    return _world.token()


def step(what: str) -> None:
    """Something outside of this process is about to be changed, or was: a simulator may end the process here."""
    _world.step(what)


def servers() -> Servers | None:
    """The servers behind all endpoints; None where the network is real."""
    return _world.servers
