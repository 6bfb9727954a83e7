"""Images in the order of the log, kept in memory up to a budget and on disk beyond it.

A transaction of any size can be held back until it is known which of its rows count.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa

MEMORY_BYTES = 32 << 20


class ImageSequence:
    """Collects batches of images; `tables()` gives them back in order, each of one schema."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory_bytes = memory_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    def add(self, images: pa.Table) -> None:
        """Append images that follow those already here."""
        if images.num_rows == 0:
            return
        self._held.append(images)
        self._held_bytes += images.nbytes
        if self._held_bytes > self._memory_bytes:
            self._spill()

    def tables(self) -> Iterator[pa.Table]:
        """The images, in the tables in which they came."""
        for path in self._files:
            with pa.OSFile(str(path), "rb") as source:
                yield pa.ipc.open_stream(source).read_all()
        yield from self._held

    def _spill(self) -> None:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="catchment-sequence-")
        for images in self._held:
            path = Path(self._directory.name) / f"{len(self._files)}.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, images.schema) as writer:
                writer.write_table(images)
            self._files.append(path)
        self._held, self._held_bytes = [], 0

    def __enter__(self) -> "ImageSequence":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            self._directory.cleanup()
