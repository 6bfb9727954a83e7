"""Images of one table in the order of the log, kept in memory up to a budget and on disk beyond it.

On disk the images are dealt to buckets by a hash of their key, so that all images of a key lie in one bucket.
Where a bucket is read, its images are reduced to those that count each time they have become too many, so that
memory is bounded by the size of a bucket, also for a key that was changed ten thousand times.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from catchment.wire import keys

BUCKETS = 64
MEMORY_BYTES = 32 << 20
# So much of a bucket is read before it is reduced. One whose reduced images are more than half of it is dealt once
# more, with another seed.
BUCKET_BYTES = 64 << 20

# Of images in the order of the log, those that count, in the same order; of what is left and later images,
# the same as of all of them.
Reduce = Callable[[pa.Table], pa.Table]


class Spool:
    """Collects batches of images; `tables()` gives back those that count, each key's together and in order."""

    def __init__(self, key: tuple[str, ...], memory_bytes: int = MEMORY_BYTES, seed: int = 0) -> None:
        self._key = key
        self._memory_bytes = memory_bytes
        self._seed = seed
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._parts = [0] * BUCKETS
        self.rows = 0
        self.spilled_bytes = 0

    def add(self, images: pa.Table) -> None:
        """Append images that follow those already here."""
        if images.num_rows == 0:
            return
        self.rows += images.num_rows
        self._held.append(images)
        self._held_bytes += images.nbytes
        if self._held_bytes > self._memory_bytes:
            self._spill()

    def tables(self, reduce: Reduce) -> Iterator[pa.Table]:
        """The reduced images, a table for each bucket (or one for all that stayed in memory)."""
        if self._directory is None:
            if self._held:
                yield reduce(_joined(self._held))
            return
        self._spill()
        for bucket in range(BUCKETS):
            yield from self._bucket(bucket, reduce)

    def _spill(self) -> None:
        if not self._held:
            return
        images = _joined(self._held)
        self._held, self._held_bytes = [], 0
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="catchment-spool-")
        buckets = pa.array(keys.bucket(keys.encode(images, self._key), BUCKETS, self._seed))
        order = pa.compute.sort_indices(pa.table({"b": buckets}), [("b", "ascending")])
        images, counts = images.take(order), pa.compute.value_counts(buckets.take(order))
        at = 0
        for entry in counts:
            bucket, rows = entry["values"].as_py(), entry["counts"].as_py()
            self._write(bucket, images.slice(at, rows))
            at += rows

    def _path(self, bucket: int, part: int) -> Path:
        assert self._directory is not None
        return Path(self._directory.name) / f"{bucket}-{part}.arrow"

    def _write(self, bucket: int, images: pa.Table) -> None:
        path = self._path(bucket, self._parts[bucket])
        self._parts[bucket] += 1
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, images.schema) as writer:
            writer.write_table(images)
        self.spilled_bytes += images.nbytes

    def _bucket(self, bucket: int, reduce: Reduce) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        size = 0
        for part in range(self._parts[bucket]):
            held.append(_taken(self._path(bucket, part)))
            size += held[-1].nbytes
            if size <= BUCKET_BYTES:
                continue
            held = [reduce(_joined(held))]
            size = held[0].nbytes
            # The images of one key cannot be dealt apart.
            if size > BUCKET_BYTES // 2 and held[0].num_rows > 1:
                rest = map(
                    _taken, (self._path(bucket, later) for later in range(part + 1, self._parts[bucket]))
                )
                yield from self._finer(chain(held, rest), reduce)
                return
        if held:
            yield reduce(_joined(held))

    def _finer(self, images: Iterable[pa.Table], reduce: Reduce) -> Iterator[pa.Table]:
        with Spool(self._key, self._memory_bytes, self._seed + 1) as finer:
            for some in images:
                finer.add(some)
            yield from finer.tables(reduce)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            self._directory.cleanup()


def _taken(path: Path) -> pa.Table:
    """The images of a file, which is removed."""
    with pa.OSFile(str(path), "rb") as source:
        images = pa.ipc.open_file(source).read_all()
    path.unlink()
    return images


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table; columns that some of the tables lack (before an ADD COLUMN) are null there."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
