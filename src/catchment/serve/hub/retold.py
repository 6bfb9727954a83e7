"""The messages of a large turn, made again for each client: the turn's images are on disk, and the messages would have
to stay in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from catchment.rewind.spill import MEMORY_BYTES
from catchment.serve.hub.telling import Known, M, Telling
from catchment.serve.stream.turn import Turn


@dataclass(frozen=True, slots=True)
class Retold(Iterable[M]):
    """`known`: the columns that were told before the turn. Several threads may iterate at once, each gets the same
    messages. Raises TemporaryDisk while it is iterated."""

    turn: Turn
    known: Known
    form: Callable[[], Telling[M]]

    def __iter__(self) -> Iterator[M]:
        return telling_after(self.form, self.known).messages(self.turn)


def telling_after(form: Callable[[], Telling[M]], known: Known) -> Telling[M]:
    """One that has told these columns."""
    telling = form()
    for _ in telling.catch_up(known):
        pass
    return telling


def messages_of(
    turn: Turn, telling: Telling[M], form: Callable[[], Telling[M]], bytes_max: int
) -> tuple[Iterable[M], int]:
    """The messages of a turn, and how many bytes are kept in memory for them. `telling` has told the turns before, and
    this one then; `form` makes others of its kind. Messages of more than `bytes_max` are not kept."""
    known, kept, nbytes = telling.known, list[M](), 0
    for message in telling.messages(turn):
        nbytes += telling.size(message)
        if nbytes <= bytes_max:
            kept.append(message)
        else:
            kept.clear()
    return (kept, nbytes) if nbytes <= bytes_max else (Retold(turn, known, form), MEMORY_BYTES)
