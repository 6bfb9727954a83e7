"""Events as they are, where a server would make messages of them."""

from collections.abc import Iterator

from catchment.serve.hub.telling import Known
from catchment.serve.stream.events import Event, Gap, Heartbeat
from catchment.serve.stream.events_of import Teller
from catchment.serve.stream.turn import Turn

EVENT_BYTES = 100


class ToldEvents:
    """Each event is a message, and counts as so many bytes."""

    def __init__(self) -> None:
        self._teller = Teller()

    @property
    def known(self) -> Known:
        return self._teller.told

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[Event]:
        yield from self._teller.events(turn) if isinstance(turn, Turn) else (turn,)

    def catch_up(self, known: Known) -> Iterator[Event]:
        yield from self._teller.catch_up(known)

    def size(self, message: Event) -> int:
        return EVENT_BYTES
