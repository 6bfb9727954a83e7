"""Standard output as the pipe that it often is: whole lines or blocks, and a reader that may be gone."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from catchment.model.errors import TemporaryDisk

_AT_ONCE = 1 << 16


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class Pipe:
    """Ends its `with` block in quiet where ReaderGone ended it. Raises TemporaryDisk where a file takes no more.

    What is written goes out in large parts and whole, so that a kill leaves no half line in a file.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._bytes = 0
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
            forget()
            if isinstance(fault, TemporaryDisk):
                raise
        return kind is ReaderGone

    def write(self, part: bytes) -> None:
        """The reader gets it now or with a later one. Raises ReaderGone."""
        self._parts.append(part)
        self._bytes += len(part)
        if self._bytes >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """The reader gets what was written. Raises ReaderGone, also where nothing was."""
        parts = b"".join(self._parts)
        self._parts, self._bytes = [], 0
        with _reader_told():
            sys.stdout.buffer.write(parts)
            sys.stdout.buffer.flush()
        if any(state & select.POLLERR for _, state in self._reader.poll(0)):
            raise ReaderGone


def forget() -> None:
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
