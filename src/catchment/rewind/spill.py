"""Tables in memory up to a budget, and beyond it in a file without a name.

No directory has the file: however the process ends, the system frees it, and rows never stay on a disk.
"""

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import NamedTuple, Self

import pyarrow as pa

from catchment.model.errors import TemporaryDisk
from catchment.wire.cells.size import bytes_of

MEMORY_BYTES = 32 << 20


class Extent(NamedTuple):
    """Where a table lies in a file: its first byte and its length."""

    start: int
    size: int


class Spilling(ABC):
    """Collects tables of images in order. Use as a context manager, which gives memory and disk back."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._file: _File | None = None

    def add(self, images: pa.Table) -> None:
        """Append images that follow those already here. Raises TemporaryDisk."""
        if images.num_rows == 0:
            return
        self._held.append(images)
        self._held_bytes += bytes_of(images)
        if self._held_bytes > self._memory_bytes:
            self._spill()

    @abstractmethod
    def _spill(self) -> None:
        """Write all that `_taken` gives."""

    def _taken(self) -> list[pa.Table]:
        """The tables that were held, and are held no more."""
        held, self._held, self._held_bytes = self._held, [], 0
        return held

    def _write(self, images: pa.Table) -> Extent:
        if self._file is None:
            self._file = _File()
        return self._file.write(images)

    def _read(self, place: Extent) -> pa.Table:
        assert self._file is not None
        return self._file.read(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class _File:
    """Tables one behind the other, each as a stream of Arrow."""

    def __init__(self) -> None:
        with _temporary_disk():
            self._file = tempfile.TemporaryFile(prefix="catchment-")  # noqa: SIM115
        self._sink = pa.PythonFile(self._file, mode="w")
        self._end = 0

    def write(self, images: pa.Table) -> Extent:
        with _temporary_disk():
            with pa.ipc.new_stream(self._sink, images.schema) as writer:
                writer.write_table(images)
            self._file.flush()
            start, self._end = self._end, self._file.tell()
        return Extent(start, self._end - start)

    def read(self, place: Extent) -> pa.Table:
        data = bytearray(place.size)
        view, done = memoryview(data), 0
        with _temporary_disk():
            while done < place.size:
                some = os.preadv(self._file.fileno(), [view[done:]], place.start + done)
                if some == 0:
                    raise OSError("the file has become shorter")
                done += some
        return pa.ipc.open_stream(pa.py_buffer(data)).read_all()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()


@contextmanager
def _temporary_disk() -> Iterator[None]:
    """Raise TemporaryDisk for an error of the file: which directory it is, and how much is free there."""
    try:
        yield
    except OSError as error:
        try:
            directory = tempfile.gettempdir()
            space = shutil.disk_usage(directory)
        except OSError:
            where = "no directory for temporary files can be written"
        else:
            free, total = space.free >> 20, space.total >> 20
            where = (
                f"in {directory}, the directory for temporary files: {error.strerror or error}; {free:,} of its "
                f"{total:,} MiB are free"
            )
        raise TemporaryDisk(
            f"rows of the log that are more than memory may hold cannot be kept: {where}; make room, or name another "
            "directory in TMPDIR where the run and Spark's workers start, then start the run again"
        ) from error
