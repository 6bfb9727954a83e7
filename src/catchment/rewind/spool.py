"""Images of one table in the order of the log, kept in memory up to a budget and on disk beyond it.

On disk the images are dealt to buckets by a hash of their key, so that all images of a key lie in one bucket.
Whoever reads a bucket reduces its images to those that count, each time they have become too many. So the size
of a bucket bounds the memory, also for a key that was changed ten thousand times.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from catchment.rewind.spill import MEMORY_BYTES, Extent, Spilling
from catchment.wire.keys import keys

BUCKETS = 64
# So much of a bucket is read before it is reduced. One whose reduced images are more than half of it is dealt once
# more, with another seed.
BUCKET_BYTES = 64 << 20

# Of images in the order of the log, those that count, in the same order. What is left reduces with later
# images to the same as all of them would.
Reduce = Callable[[pa.Table], pa.Table]


class Spool(Spilling):
    """Collects batches of images; `tables()` gives back those that count, each key's together and in order."""

    def __init__(self, key: tuple[str, ...], memory_bytes: int = MEMORY_BYTES, seed: int = 0) -> None:
        super().__init__(memory_bytes)
        self._key = key
        self._seed = seed
        self._parts: list[list[Extent]] = []  # none before something was spilled, as nearly always
        self.spilled_bytes = 0

    def tables(self, reduce: Reduce) -> Iterator[pa.Table]:
        """The reduced images, a table for each bucket (or one for all that stayed in memory). Raises TemporaryDisk."""
        if not self._parts:
            if self._held:
                yield reduce(_joined(self._held))
            return
        self._spill()
        for parts in self._parts:
            yield from self._bucket(parts, reduce)

    def _spill(self) -> None:
        held = self._taken()
        if not held:
            return
        self._parts = self._parts or [[] for _ in range(BUCKETS)]
        images = _joined(held)
        buckets = pa.array(keys.bucket(keys.encode(images, self._key), BUCKETS, self._seed))
        order = pc.sort_indices(buckets)
        images, counts = images.take(order), pc.value_counts(buckets.take(order))
        at = 0
        for entry in counts:
            bucket, rows = entry["values"].as_py(), entry["counts"].as_py()
            part = images.slice(at, rows)
            self._parts[bucket].append(self._write(part))
            self.spilled_bytes += part.nbytes
            at += rows

    def _bucket(self, parts: list[Extent], reduce: Reduce) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        size = 0
        for number, part in enumerate(parts, 1):
            held.append(self._read(part))
            size += held[-1].nbytes
            if size <= BUCKET_BYTES:
                continue
            held = [reduce(_joined(held))]
            size = held[0].nbytes
            # The images of one key cannot be dealt apart.
            if size > BUCKET_BYTES // 2 and held[0].num_rows > 1:
                yield from self._finer(chain(held, map(self._read, parts[number:])), reduce)
                return
        if held:
            yield reduce(_joined(held))

    def _finer(self, images: Iterable[pa.Table], reduce: Reduce) -> Iterator[pa.Table]:
        with Spool(self._key, self._memory_bytes, self._seed + 1) as finer:
            for some in images:
                finer.add(some)
            yield from finer.tables(reduce)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table; columns that some of the tables lack (before an ADD COLUMN) are null there."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
