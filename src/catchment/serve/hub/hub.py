"""The clients of one source: how many there are, and what each one reads."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from catchment import world
from catchment.config import CopyConfig
from catchment.model.errors import ClientLeft, ServerStops, TooManyClients
from catchment.model.slow import Slow
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.client import Client, Standing
from catchment.serve.hub.following import ENDS, ReaderStanding
from catchment.serve.hub.joining import Joined, joined
from catchment.serve.hub.shared import ReadersOf, Same, SharedReaders
from catchment.serve.hub.telling import M, Telling
from catchment.serve.hub.turnstile import Turnstiles, Visit
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import Source
from catchment.serve.stream.tables import ALL, Chosen
from catchment.serve.stream.turns import Pace, started
from catchment.serve.stream.vgtid import Given, StreamCut, read, written

# Log of one shard and turn: many clients may catch up at once.
_TURN_BYTES = 4 << 20
T = TypeVar("T")
# Whether a client is still there.
Stays = Callable[[], bool]
# Steps after each of which one may do something else, and what they lead to.
Opening = Generator[None, None, T]


def always() -> bool:
    """Of a client that cannot leave while it stands in line."""
    return True


def at_last(opening: Opening[T]) -> T:
    """What the steps lead to."""
    while True:
        try:
            next(opening)
        except StopIteration as end:
            found: T = end.value
            return found


@dataclass(frozen=True, slots=True)
class Limits:
    """`clients`: at once. `buffer`: bytes of messages that a shared reader keeps for those that are slow. `slow`: what
    becomes of these, unless they say it themselves."""

    clients: int = 100
    buffer: int = 64 << 20
    slow: Slow = Slow.REREAD


class Hub:
    """Opens clients; any thread may. Those that ask for the same tables, rules and form share a reader. `within`:
    patterns of the tables that clients may have."""

    def __init__(
        self,
        source: Source,
        copy: CopyConfig | None = None,
        limits: Limits | None = None,
        within: tuple[str, ...] = ALL,
    ) -> None:
        self._source = source
        self._within = within
        self._copy = copy or CopyConfig()
        self._limits = limits or Limits()
        self._shared = SharedReaders(self._limits.buffer)
        self._turnstiles = Turnstiles()
        self._stopping = world.event()
        self._lock = world.lock()
        self._opening = 0
        self._clients: set[Client[Any]] = set()

    def open(
        self, ask: Ask, form: Callable[[], Telling[M]], name: str = "", stays: Stays = always
    ) -> Client[M]:
        """As `opening`, for who does nothing while it waits."""
        return at_last(self.opening(ask, form, name, stays))

    def opening(
        self, ask: Ask, form: Callable[[], Telling[M]], name: str = "", stays: Stays = always
    ) -> Opening[Client[M]]:
        """Steps to a client, which whoever asked closes: one for each look while it stands in line, a second at most.
        `name`: how it is shown. `stays`: else it loses its place in line.

        Raises TooManyClients, ClientLeft, and what `catchment.stream` raises.
        """
        same = Same(Chosen.of(ask.rules or self._within, self._within), ask.flags.minimize_skew, form)
        with self._lock:
            if self._opening + len(self._clients) >= self._limits.clients:
                raise TooManyClients(
                    f"{self._limits.clients} clients follow this feed here, and clients_max allows no more; begin "
                    "later, or at another server"
                )
            self._opening += 1
        try:
            client = yield from self._client(ask, same, name, stays)
        except BaseException:
            with self._lock:
                self._opening -= 1
            raise
        with self._lock:  # in one step: nobody else has its place
            self._opening -= 1
            self._clients.add(client)
        return client

    def close(self, client: Client[Any]) -> None:
        """End a client. Nobody may be pulling."""
        try:
            client.close()
        finally:
            with self._lock:
                self._clients.discard(client)

    def standings(self) -> list[Standing]:
        """How the clients fare."""
        with self._lock:
            clients = list(self._clients)
        return [client.standing for client in clients]

    def reader_standings(self) -> list[ReaderStanding]:
        """How the shared readers fare."""
        return self._shared.standings()

    @property
    def readers(self) -> int:
        """How many readers are shared."""
        return len(self._shared)

    def stop(self) -> None:
        """End the shared readers; clients get an error once they have heard what was told."""
        self._stopping.set()
        self._shared.stop()

    def _client(self, ask: Ask, same: Same, name: str, stays: Stays) -> Opening[Client[Any]]:
        def begin(vgtid: Given, flags: Flags) -> Epochs:
            return started(self._source, same.chosen, vgtid, flags, self._copy, _TURN_BYTES)

        def again(stands: StreamCut) -> Epochs:
            return begin(written(stands), Flags(minimize_skew=same.minimize_skew))

        readers: ReadersOf[Any] = ReadersOf(self._shared, same, again)
        visit = Visit(self._turnstiles)
        begins: Epochs | Joined[Any] | None
        try:
            begins = (yield from self._let_in(visit, ask, readers, stays)) or begin(ask.vgtid, ask.flags)
        except BaseException:
            visit.leave()
            raise
        visit.gives()
        pace = Pace(ask.flags.heartbeat_interval)
        return Client(readers, begins, same.form(), pace, ask.slow or self._limits.slow, visit, name)

    def _let_in(
        self, visit: Visit, ask: Ask, readers: ReadersOf[M], stays: Stays
    ) -> Opening[Joined[M] | None]:
        """The shared reader that a client can hear from its beginning; None once it may read by itself.

        It stands in line before its first cut, or the log behind that would grow meanwhile.
        """
        starts, wait = read(ask.vgtid, self._source), Pace(ask.flags.heartbeat_interval).wait
        while not self._stopping.is_set():
            if not stays():
                raise ClientLeft("the client left while it stood in line")
            found = joined(readers, starts)
            if found is not None:
                visit.leave()
                return found
            if visit.enter(copies=not ask.vgtid, timeout=wait):
                return None
            yield
        raise ServerStops(ENDS)
