"""The world as it is."""

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from catchment.world.port import Condition, Event, Lock, Pool, Servers, Thread


class Real:
    """Clocks of the machine, threads of Python, servers over the network."""

    servers: Servers | None = None

    def steady_seconds(self) -> float:
        """CLOCK_BOOTTIME, which goes on while the machine sleeps."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def now_us(self) -> int:
        """The machine's clock, which may be set."""
        return time.time_ns() // 1000

    def sleep(self, seconds: float) -> None:
        """time.sleep."""
        time.sleep(seconds)

    def event(self) -> Event:
        """threading.Event."""
        return threading.Event()

    def condition(self) -> Condition:
        """threading.Condition."""
        return threading.Condition()

    def lock(self) -> Lock:
        """threading.Lock."""
        return cast(Lock, threading.Lock())

    def thread(self, name: str, work: Callable[[], None]) -> Thread:
        """A daemon thread."""
        return threading.Thread(target=work, name=name, daemon=True)

    def pool(self, threads: int, name: str) -> Pool:
        """ThreadPoolExecutor."""
        return cast(Pool, ThreadPoolExecutor(threads, thread_name_prefix=name))

    def token(self) -> str:
        """A random UUID."""
        return uuid.uuid4().hex

    def step(self, what: str) -> None:
        """Nothing."""
