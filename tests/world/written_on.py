"""Waits for what others write."""

from collections.abc import Iterable

from catchment.demo.server import PrivateServer
from tests.world.patience import until

# A first cut lies before the last transaction that is visible, and another one may hide it.
_TIMES = 3


def written_on(servers: Iterable[PrivateServer]) -> None:
    """Wait until the log of each server has grown a few times."""
    for server in servers:
        for _ in range(_TIMES):
            until("the log grows", _Grows(server))


class _Grows:
    def __init__(self, server: PrivateServer) -> None:
        self._server, self._end = server, server.log_end()

    def __call__(self) -> bool:
        return self._server.log_end() != self._end
