"""Standard output as the pipe that it often is: whole lines, and a reader that may be gone."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import TracebackType
from typing import Self

from catchment.model.errors import TemporaryDisk

_AT_ONCE = 1 << 16


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class Pipe:
    """Ends its `with` block in quiet where ReaderGone ended it. Raises TemporaryDisk where a file takes no more.

    Lines are written many at once and whole, so that a kill leaves no half line in a file.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._characters = 0
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        self._reader = select.poll()
        self._reader.register(sys.stdout.fileno(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            self.flush()
        except (ReaderGone, TemporaryDisk) as fault:
            _forget()
            if isinstance(fault, TemporaryDisk):
                raise
        return kind is ReaderGone

    def write(self, line: str) -> None:
        """The reader gets it now or with a later line. Raises ReaderGone."""
        self._lines.append(line + "\n")
        self._characters += len(line)
        if self._characters >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """The reader gets what was written. Raises ReaderGone, also where nothing was."""
        text = "".join(self._lines)
        self._lines, self._characters = [], 0
        with _reader_told():
            sys.stdout.write(text)
            sys.stdout.flush()
        if any(state & select.POLLERR for _, state in self._reader.poll(0)):
            raise ReaderGone


def _forget() -> None:
    """What is still buffered goes nowhere, so that the end of Python finds no fault."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def _reader_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as fault:
        raise TemporaryDisk(f"standard output takes no more: {fault.strerror}; make room there") from None
