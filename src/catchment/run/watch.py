"""What others can see of a run besides its epochs: that it lives, what troubles it, and how it ended."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event

from catchment.model.errors import INTERRUPTED, StateError
from catchment.run.journal import ErrorNote, Journal, exit_code_of, now_us


@contextmanager
def recorded(journal: Journal, owner: str, stop: Event) -> Iterator[None]:
    """Write down that a run began and how the block ended. A store that is away then changes nothing about that."""
    journal.begin(owner)
    try:
        yield
    except BaseException as error:
        note = ErrorNote.of(error, now_us())
        with suppress(StateError):
            journal.add((note,))
            journal.end(exit_code_of(error), note)
        raise
    with suppress(StateError):
        journal.end(INTERRUPTED if stop.is_set() else 0, None)
