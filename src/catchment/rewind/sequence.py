"""Images in the order of the log, kept in memory up to a budget and on disk beyond it.

A transaction of any size can be held back until it is known which of its rows count.
"""

from collections.abc import Iterator

import pyarrow as pa

from catchment.rewind.spill import MEMORY_BYTES, Extent, Spilling


class ImageSequence(Spilling):
    """Collects batches of images; `tables()` gives them back in order, each of one schema."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        super().__init__(memory_bytes)
        self._places: list[Extent] = []

    def tables(self) -> Iterator[pa.Table]:
        """The images, in the tables in which they came. Raises TemporaryDisk."""
        yield from map(self._read, self._places)
        yield from self._held

    def table(self, number: int) -> pa.Table:
        """One of the tables in which the images came. Raises TemporaryDisk."""
        spilled = len(self._places)
        return self._read(self._places[number]) if number < spilled else self._held[number - spilled]

    def _spill(self) -> None:
        self._places += [self._write(images) for images in self._taken()]
