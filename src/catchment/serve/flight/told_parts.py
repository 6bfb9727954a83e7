"""The parts of turns as messages that clients share: Arrow's tables go to each of them as they are."""

from collections.abc import Iterator

from catchment.serve.hub.telling import Known
from catchment.serve.stream.batches_of import parts
from catchment.serve.stream.epochs import Turn
from catchment.serve.stream.events import Batch, Gap, Heartbeat, Part

_PART_BYTES = 1024


class ToldParts:
    """A batch brings its own columns: a client that joins lacks none."""

    @property
    def known(self) -> Known:
        """Nothing."""
        return {}

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[Part]:
        """As `Stream.batches` gives them."""
        yield from parts(turn) if isinstance(turn, Turn) else (turn,)

    def catch_up(self, known: Known) -> Iterator[Part]:
        """Nothing."""
        return iter(())

    def size(self, message: Part) -> int:
        """Bytes of the rows."""
        return _PART_BYTES + (message.rows.nbytes if isinstance(message, Batch) else 0)
