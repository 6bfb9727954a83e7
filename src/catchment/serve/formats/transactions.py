"""What a stream tells inside Begin and Commit, at its end: only the Commit has the time."""

from dataclasses import dataclass, field

from catchment.serve.stream.events import Begin, Commit, Ddl, Event, Field, LastPk, Row

Told = Field | Row | Ddl


@dataclass(frozen=True, slots=True)
class Transaction:
    """`copied`: rows of a chunk. Else `gtid` and `time` (seconds since 1970) are those of its server."""

    gtid: str
    time: int
    copied: bool
    told: tuple[Told, ...]


@dataclass
class Transactions:
    """Holds what was told since a Begin."""

    _told: list[Told] = field(default_factory=list)
    _copied: bool = False

    def take(self, event: Event) -> Transaction | None:
        """The transaction that this event ends."""
        if isinstance(event, Begin):
            self._told, self._copied = [], False
        elif isinstance(event, Field | Row | Ddl):
            self._told.append(event)
        elif isinstance(event, LastPk):
            self._copied = True
        elif isinstance(event, Commit):
            ended = Transaction(event.gtid, event.time, self._copied, tuple(self._told))
            self._told = []
            return ended
        return None
