"""Time, threads and chance: the one door to them, behind which a simulator can stand."""

from catchment.world.door import (
    condition,
    event,
    instead,
    lock,
    now_us,
    pool,
    servers,
    sleep,
    steady_seconds,
    step,
    thread,
    token,
)
from catchment.world.port import Event, Future, Lock, Pool, Thread

__all__ = [
    "Event",
    "Future",
    "Lock",
    "Pool",
    "Thread",
    "condition",
    "event",
    "instead",
    "lock",
    "now_us",
    "pool",
    "servers",
    "sleep",
    "steady_seconds",
    "step",
    "thread",
    "token",
]
