"""A session that stands by for the next dump of a shard.

A dump is its session's last command, and a login takes longer than the log of a moment.
"""

from catchment import world
from catchment.model.errors import CatchmentError
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.source.dump import opened
from catchment.source.session import Session

# A server drops sessions that are idle, and one that took another's place is to be noticed.
_FRESH_SECONDS = 5.0


class Standby:
    """Logs in ahead, in a thread of `pool`. Call it for a session; one thread at a time."""

    def __init__(self, endpoint: Endpoint, server: Server, pool: world.Pool) -> None:
        self._endpoint, self._server = endpoint, server
        self._pool = pool
        self._ready: world.Future[Session] | None = None
        self._since = 0.0

    def prepare(self) -> None:
        """Begin to log in, unless a session stands by."""
        if self._ready is None:
            self._since = world.steady_seconds()
            self._ready = self._pool.submit(opened, self._endpoint, self._server)

    def __call__(self) -> Session:
        """The session that stands by; another one where there is none that is fresh. Raises as `connect`."""
        self.rest()
        return self._taken() or opened(self._endpoint, self._server)

    def rest(self) -> None:
        """Give up a session that is not fresh any more."""
        if world.steady_seconds() - self._since >= _FRESH_SECONDS:
            self.close()

    def close(self) -> None:
        """Give up the session that stands by."""
        session = self._taken()
        if session is not None:
            session.close()

    def _taken(self) -> Session | None:
        ready, self._ready = self._ready, None
        try:
            return ready.result() if ready is not None else None
        except CatchmentError:
            return None  # the next login says what is in the way
