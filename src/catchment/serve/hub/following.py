"""A reader that several clients share: its turns go into a ring, in a thread of its own."""

from collections.abc import Callable
from typing import Final, Generic

import msgspec

from catchment import world
from catchment.model.cut import Tick
from catchment.model.errors import ServerStops
from catchment.serve.hub.retold import messages_of, telling_after
from catchment.serve.hub.ring import Entry, Place, Ring
from catchment.serve.hub.telling import Known, M, Telling
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.turns import Pace

ENDS = "the server ends; begin again with the last vgtid, at another one or later"


# Between two turns, for each client: about what it takes to send it one. Turns that come sooner only wait in the ring.
_CLIENT_SECONDS: Final = 0.0005
# A shard that has told nothing for longer says nothing about skew.
_RECENT_SECONDS: Final = 10.0


class ReaderStanding(msgspec.Struct, frozen=True):
    """How a shared reader fares. `nbytes`: of messages that it keeps; `told`: turns so far. `skew`: seconds between the
    transactions told last of the shard that is furthest ahead and of the one furthest behind, of those that tell.
    `shards`: the time of the last transaction told of each, in seconds since 1970."""

    nbytes: int
    told: int
    skew: float
    shards: dict[str, int | None]
    clients: int = 0
    rules: str = ""


class Following(Generic[M]):
    """Follows the shards from where `epochs` stands, which is `begin`, until it is stopped or fails. `form` makes what
    tells its turns; its first client was told the columns `known`. `clients`: how many hear it; SharedReaders keeps the
    number."""

    def __init__(self, epochs: Epochs, form: Callable[[], Telling[M]], known: Known, bytes_max: int) -> None:
        self._epochs = epochs
        self._form = form
        self._telling = telling_after(form, known)
        self._bytes_max = bytes_max
        self._stopping = world.event()
        self._index = 0
        self._shards = sorted(epochs.stands.cut.shards)
        self.begin = self._place()
        self.ring: Ring[M] = Ring(bytes_max, self.begin)
        self.clients = 1
        self._thread: world.Thread | None = None

    def start(self, ended: Callable[[], None]) -> None:
        """Begin to follow. `ended` is called when it does not any more."""
        self._thread = world.thread("following", lambda: self._run(ended))
        self._thread.start()

    @property
    def standing(self) -> ReaderStanding:
        """As of now."""
        now, told = world.steady_seconds(), dict(self._epochs.shards)
        recent = [one.event_time for one in told.values() if now - one.told_at <= _RECENT_SECONDS]
        return ReaderStanding(
            nbytes=self.ring.nbytes,
            told=self.ring.end.index,
            skew=float(max(recent) - min(recent)) if recent else 0.0,
            shards={shard: told[shard].event_time if shard in told else None for shard in self._shards},
            clients=self.clients,
        )

    def now(self, timeout: float) -> Tick | None:
        """Where the logs of the shards end, asked from this moment on; None at the timeout. Any thread may ask. Raises
        CatchmentError."""
        return self._epochs.now(timeout)

    def stop(self) -> None:
        """End the thread and the sessions."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, ended: Callable[[], None]) -> None:
        pace = Pace()
        try:
            while not self._stopping.is_set():
                turn = self._epochs.turn(pace.wait)
                told = pace.told(turn)
                if isinstance(told, Turn):
                    self.ring.put(self._entry(told))
                    self._stopping.wait(self.clients * _CLIENT_SECONDS)
                else:
                    self.ring.moved(self._place())
            self.ring.fail(ServerStops(ENDS))
        # An error of any kind: else the clients would wait for ever.
        except Exception as error:
            self.ring.fail(error)
        finally:
            self._epochs.stop()
            ended()

    def _entry(self, turn: Turn) -> Entry[M]:
        messages, nbytes = messages_of(turn, self._telling, self._form, self._bytes_max)
        self._index += 1
        return Entry(messages, nbytes, self._place())

    def _place(self) -> Place:
        return Place.of(self._index, self._epochs, self._telling.known)
