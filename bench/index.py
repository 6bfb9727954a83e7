"""What a settle of few changes costs on a large table: by a scan of its data files, and by their side files.

1,000 changes, at random, of a table whose files have a million rows each; keys are integers, or UUIDs as text. Run:
`python -m bench --only index --rows 16000000`.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from bench.figures import Figure, figure
from catchment.model.epoch import DataFile, LakeColumn, Part, TableDelta, TableShape
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, key_columns, table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.index_rule import Rule
from catchment.sink.delta.plain.settle import SettleOrder, settle
from catchment.sink.delta.plain.side_file import Of, made
from catchment.sink.delta.tail.apply import DeltaSink

CHANGES = 1_000
FILE_ROWS = 1_000_000
FEED = "bench"
AT_ONCE = Rule(rows=0, share=0, scans=0, scans_of_integers=0)
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
KEYS = {"integer keys": ColumnType(Kind.BIGINT), "UUIDs as text": TEXT}
Numbers = npt.NDArray[np.uint64]


def run(rows: int = 16_000_000, runs: int = 5) -> list[Figure]:
    """CPU and wall seconds of a settle, of making side files, and their bytes."""
    figures: list[Figure] = []
    for name in KEYS:
        with tempfile.TemporaryDirectory(prefix="catchment-bench-") as directory:
            figures += _Measured(Path(directory), name, rows).figures(runs)
    return figures


class _Measured:
    """A table of one kind of keys, settled as of its copy."""

    def __init__(self, root: Path, kind: str, rows: int) -> None:
        self._root, self._kind = root, kind
        columns = (LakeColumn(Column("k", KEYS[kind]), "k"), LakeColumn(Column("sig", TEXT), "sig"))
        self._shape = TableShape(TableId("shop", "accounts"), columns, ("k",))
        self._plain = table_dir(root, self._shape.table)
        self._sink = DeltaSink(root, FEED)
        self._rng = np.random.default_rng(1)
        self._numbers = np.sort(self._rng.integers(0, 1 << 62, rows).astype(np.uint64))
        self._epoch = 1
        self._sink.apply(TableDelta(self._shape, tuple(self._copied())), 1, 1)
        self._settle(Index(self._plain))

    def figures(self, runs: int) -> list[Figure]:
        """Scans and looks in turn, so that a ratio holds on a busy machine."""
        index = Index(self._plain, self._root / "index", AT_ONCE)
        while len(self._sides()) < len(self._large()):
            self._changed(index)
        self._changed(index)  # checks those that were made last
        pairs = [(*self._changed(Index(self._plain)), *self._changed(index)) for _ in range(runs)]
        scans, scan_walls, looks, walls = map(list, zip(*pairs, strict=True))
        what = f"settle of {CHANGES} changes, {len(self._numbers)} rows, {self._kind}"
        sides = [path.stat().st_size for path in self._sides()]
        files = cycle(self._large())
        making = [_spent(partial(self._side, next(files)))[0] for _ in range(runs)]
        scanned = [value / max(len(sides), 1) for value in scans]
        each = [sum(sides) / max(len(self._numbers), 1)]
        return [
            figure(f"{what}, by index", looks, "CPU s", "by scan", scans, 3),
            figure(f"{what}, by index", walls, "s", "by scan", scan_walls, 3),
            figure(f"making a side file, {self._kind}", making, "CPU s", "scan of a file", scanned, 3),
            figure(
                f"bytes of side files a row, {self._kind}", each, "bytes", "of a key of 8 bytes", [8.0], 1
            ),
        ]

    def _changed(self, index: Index) -> tuple[float, float]:
        """An epoch of changes, and CPU and wall seconds of its settle."""
        self._epoch += 1
        chosen = np.sort(self._rng.choice(self._numbers, CHANGES, replace=False))
        file = self._write(Part.CHANGES, chosen)
        self._sink.apply(TableDelta(self._shape, (file,)), self._epoch, 1)
        return _spent(lambda: self._settle(index))

    def _settle(self, index: Index) -> None:
        tail = DeltaLog(tail_dir(self._root, self._shape.table))
        order = SettleOrder(DeltaLog(self._plain), tail, self._shape, FEED, 1, self._epoch)
        settle(replace(order, index=index), lambda _: self._shape)

    def _sides(self) -> list[Path]:
        return list((self._root / "index").rglob("*.keys"))

    def _large(self) -> list[Path]:
        return sorted(self._plain.glob("1-*.parquet"))

    def _side(self, path: Path) -> None:
        """A side file with all its bytes."""
        found = made(path, Of(path.name, path.stat().st_size, ("_shard", "k")))
        assert found is not None
        list(found.parts())

    def _copied(self) -> Iterator[DataFile]:
        for first in range(0, len(self._numbers), FILE_ROWS):
            yield self._write(Part.BASE, self._numbers[first : first + FILE_ROWS])

    def _write(self, part: Part, numbers: Numbers) -> DataFile:
        """A file of rows with these keys."""
        schema, rows = arrow_schema(self._shape), len(numbers)
        keys = pa.array(numbers.astype(np.int64) if self._kind == "integer keys" else _texts(numbers))
        columns = [
            pa.array(np.full(rows, "s/0")),
            pa.array(np.full(rows, self._epoch)),
            pa.array(np.zeros(rows, np.bool_)),
            keys,
            pa.array(numbers % 10**9).cast(pa.string()),
        ]
        table = pa.Table.from_arrays(
            [c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )
        name = f"{self._epoch}-bench-{numbers[0]}"
        directory = tail_dir(self._root, self._shape.table)
        return write_file(directory, part, name, [table], schema, key_columns(self._shape))


def _texts(numbers: Numbers) -> Sequence[str]:
    """A UUID for each number, in their order."""
    pairs = np.stack([numbers, numbers * np.uint64(0x9E3779B97F4A7C15)], axis=1).astype(">u8")
    digits = pairs.tobytes().hex()
    found = (digits[at : at + 32] for at in range(0, len(digits), 32))
    return [f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in found]


def _spent(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall
