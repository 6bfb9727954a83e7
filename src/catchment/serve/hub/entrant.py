"""A client from its request on: heartbeats while it stands in line, and then what its stream tells.

A client takes a server that says nothing for dead, and comes again: a second place in line for one that is still there.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic

from catchment.serve.hub.hub import Opening
from catchment.serve.hub.telling import M, Telling
from catchment.serve.stream.turns import Pace


class Entrant(Generic[M]):
    """`opening`: the steps to its client, which has `pull` and is given back by `close`. One thread at a time pulls or
    closes."""

    def __init__(
        self,
        opening: Opening[Any],
        close: Callable[[Any], None],
        telling: Telling[M],
        heartbeat_interval: float,
    ) -> None:
        self._opening = opening
        self._close = close
        self._telling = telling
        self._pace = Pace(heartbeat_interval)
        self._client: Any = None

    def pull(self) -> Iterator[M]:
        """The next messages, as those of a client. Raises what opening it does."""
        if self._client is None and not self._enters():
            told = self._pace.told(None)
            yield from self._telling.messages(told) if told is not None else ()
            return
        yield from self._client.pull()

    def close(self) -> None:
        """It has left: from the line, or from its stream."""
        self._opening.close()
        if self._client is not None:
            self._close(self._client)

    def _enters(self) -> bool:
        """Take a step; whether it was the last one."""
        try:
            next(self._opening)
        except StopIteration as end:
            self._client = end.value
            return True
        return False
