"""A shard that falls silent in the middle of a chunk: what waits for it, waits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from catchment.demo.server import PrivateServer
from tests.world.patience import PATIENCE_SECONDS, ran_out
from tests.world.proxy import Proxy, execute_begins, query_begins

# MariaDB's clock takes a snapshot and asks for its place in the log; MySQL's asks for the end of the log. Both ask how
# often the log was reset.
_OF_THE_CLOCK = (
    "CONSISTENT SNAPSHOT",
    "binlog_snapshot_",
    "SHOW MASTER STATUS",
    "SHOW BINARY LOG STATUS",
    "Com_reset",
)


@dataclass
class Silence:
    """`port`: where a feed reaches the shard. From the first SELECT of a chunk on (`inside`) no command comes through
    until `ends`; `asked`: the clock of the run waits for an answer, too."""

    port: int
    inside: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)

    def await_chunk(self) -> None:
        """Wait until it begins."""
        if not self.inside.wait(PATIENCE_SECONDS):
            ran_out("a chunk is read")

    def await_clock(self) -> None:
        """Wait until the clock waits for the shard."""
        if not self.asked.wait(PATIENCE_SECONDS):
            ran_out("the clock asks the shard")

    def ends(self) -> None:
        """The shard answers again, also what was asked meanwhile."""
        self._over.set()

    def begin_again(self) -> None:
        """With the next chunk."""
        for event in (self.inside, self.asked, self._over):
            event.clear()

    def hold(self, piece: bytes) -> bool:
        """What the proxy calls with each piece of a client; it holds up the commands of that connection."""
        if self._over.is_set():
            return False
        if execute_begins()(piece):
            self.inside.set()
        if self.inside.is_set():
            if _ticks(piece):
                self.asked.set()
            self._over.wait()
        return False


def _ticks(piece: bytes) -> bool:
    """Whether it is a question of the clock."""
    return any(query_begins(text)(piece) for text in _OF_THE_CLOCK)


@contextmanager
def silent_in_a_chunk(server: PrivateServer) -> Iterator[Silence]:
    """Such a shard; at the end of the block it answers."""
    with Proxy(server.host, server.port) as proxy:
        silence = Silence(proxy.port)
        proxy.cut_after(0, after=silence.hold)
        try:
            yield silence
        finally:
            silence.ends()
