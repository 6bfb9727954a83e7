"""A reader that several clients share: its turns go into a ring, in a thread of its own."""

from collections.abc import Callable
from typing import Generic

from catchment import world
from catchment.model.errors import ServerStops
from catchment.serve.hub.ring import Entry, Place, Ring
from catchment.serve.hub.telling import M, Telling
from catchment.serve.stream.epochs import Epochs, Turn
from catchment.serve.stream.turns import Pace

ENDS = "the server ends; begin again with the last vgtid, at another one or later"


class Following(Generic[M]):
    """Follows the shards from where `epochs` stands, which is `begin`, until it is stopped or fails."""

    def __init__(self, epochs: Epochs, telling: Telling[M], bytes_max: int) -> None:
        self._epochs = epochs
        self._telling = telling
        self._stopping = world.event()
        self._index = 0
        self.begin = self._place()
        self.ring: Ring[M] = Ring(bytes_max, self.begin)
        self._thread: world.Thread | None = None

    def start(self, ended: Callable[[], None]) -> None:
        """Begin to follow. `ended` is called when it does not any more."""
        self._thread = world.thread("following", lambda: self._run(ended))
        self._thread.start()

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
        messages = tuple(self._telling.messages(turn))
        self._index += 1
        return Entry(messages, sum(map(self._telling.size, messages)), self._place())

    def _place(self) -> Place:
        return Place(self._index, self._epochs.stands, self._telling.known, self._epochs.tick)
