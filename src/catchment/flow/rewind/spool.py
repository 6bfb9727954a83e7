"""Images of one table in the order of the log, kept in memory up to a budget and on disk beyond it.

On disk the images are dealt to buckets by a hash of their key, so that all images of a key lie in one bucket
and a bucket fits in memory: a transaction of any size needs memory for one bucket only.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from catchment.wire import keys

BUCKETS = 64
MEMORY_BYTES = 32 << 20
# A bucket that has outgrown this is dealt once more, with another seed, when it is read.
BUCKET_BYTES = 64 << 20


class Spool:
    """Collects batches of images; `tables()` gives them back, each key's images together and in order."""

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

    def tables(self) -> Iterator[pa.Table]:
        """The images, a table for each bucket (or one for all that stayed in memory)."""
        if self._directory is None:
            if self._held:
                yield _joined(self._held)
            return
        self._spill()
        for bucket in range(BUCKETS):
            yield from self._bucket(bucket)

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

    def _bucket(self, bucket: int) -> Iterator[pa.Table]:
        parts = [self._path(bucket, part) for part in range(self._parts[bucket])]
        if not parts:
            return
        if sum(path.stat().st_size for path in parts) <= BUCKET_BYTES:
            images = _joined([_read(path) for path in parts])
            for path in parts:
                path.unlink()
            yield images
            return
        with Spool(self._key, self._memory_bytes, self._seed + 1) as finer:
            for path in parts:
                finer.add(_read(path))
                path.unlink()
            yield from finer.tables()

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            self._directory.cleanup()


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()


def _joined(tables: list[pa.Table]) -> pa.Table:
    """One table; columns that some of the tables lack (before an ADD COLUMN) are null there."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
