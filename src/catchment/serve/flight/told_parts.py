"""The parts of turns as messages that clients share: Arrow's tables go to each of them as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catchment.model.table import Table
from catchment.serve.hub.telling import Known
from catchment.serve.stream.batches_of import parts
from catchment.serve.stream.events import Batch, Gap, Heartbeat, Part
from catchment.serve.stream.turn import Turn

_PART_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Columns:
    """The tables of a turn's rows, sent before its parts. A stream of one schema ends in front of a turn that does not
    fit, and a turn may be too large to be looked through first."""

    tables: Sequence[Table]


class ToldParts:
    """A batch brings its own columns: a client that joins lacks none."""

    @property
    def known(self) -> Known:
        """Nothing."""
        return {}

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[Part | Columns]:
        """As `Stream.batches` gives them, after the columns of a turn with rows."""
        if not isinstance(turn, Turn):
            yield turn
            return
        if turn.tables:
            yield Columns(turn.tables)
        yield from parts(turn)

    def catch_up(self, known: Known) -> Iterator[Part | Columns]:
        """Nothing."""
        return iter(())

    def size(self, message: Part | Columns) -> int:
        """Bytes of the rows."""
        return _PART_BYTES + (message.rows.nbytes if isinstance(message, Batch) else 0)
