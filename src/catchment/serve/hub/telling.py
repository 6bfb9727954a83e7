"""How turns become what is sent: the port between the shared readers and the network."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from catchment.model.table import Table, TableId
from catchment.serve.stream.events import Gap, Heartbeat
from catchment.serve.stream.turn import Turn

M = TypeVar("M")

# The columns that were told of each table, by `keyspace/shard` and table.
Known = Mapping[tuple[str, TableId], Table]


class Telling(Protocol[M]):
    """Makes messages of turns, for one client or for several that hear the same."""

    @property
    def known(self) -> Known:
        """Which columns it has told. A mapping that was given does not change any more."""
        ...

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[M]:
        """Those of a turn, in order; the last one has its vgtid."""
        ...

    def catch_up(self, known: Known) -> Iterator[M]:
        """What a client lacks to understand one that has told these columns."""
        ...

    def size(self, message: M) -> int:
        """Bytes that it takes."""
        ...
