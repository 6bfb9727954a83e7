"""Random epochs of changes and chunks: every version of a tail is one exact state, for every reader."""

import datetime as dt
import functools
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.model.epoch import DataFile, Part, TableShape
from catchment.model.table import ColumnType, Kind
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.tail.apply import DeltaSink
from tests.layers.sink.model import FEED, INT, TEXT, Key, delta, shape, write

State = dict[Key, tuple[int, tuple[Any, ...]]]  # (shard, key) -> epoch of the last change, row
SHARDS = ("s/0", "s/1")

SHAPES = {
    "int": shape("ints", {"id": INT, "v": TEXT}, ("id",)),
    "pair": shape("pairs", {"a": INT, "v": TEXT, "b": TEXT}, ("a", "b")),
    "string": shape("strings", {"v": INT, "k": TEXT}, ("k",)),
    "composite": shape(
        "composites",
        {"a": ColumnType(Kind.INT), "v": TEXT, "b": TEXT, "c": ColumnType(Kind.DATE)},
        ("b", "a", "c"),
    ),
    "decimal": shape("decimals", {"k": ColumnType(Kind.DECIMAL, length=12, scale=2), "v": TEXT}, ("k",)),
    "binary": shape("binaries", {"k": ColumnType(Kind.BINARY, length=3), "v": TEXT}, ("k",)),
    "datetime": shape(
        "datetimes", {"k": ColumnType(Kind.DATETIME, scale=6), "v": ColumnType(Kind.TIMESTAMP)}, ("k",)
    ),
}


def row_of(kind: str, key: int, value: int) -> tuple[Any, ...]:
    """A row of a shape; keys sort differently as numbers, texts and bytes, and some hold zero bytes."""
    text = ["", "a", "a\0", "Zürich", "ab" * 40][key % 5] + str(key)
    when = dt.datetime(2020, 1, 1) + dt.timedelta(days=key, microseconds=key)
    return {
        "int": (key - 10, f"v{value}"),
        "pair": (key // 3 - 5, f"v{value}", text),
        "string": (value, text),
        "composite": (key % 3 - 1, f"v{value}", text[:2], dt.date(2020, 1, 1 + key % 28)),
        "decimal": (Decimal(key - 20) / 4, None if value % 5 == 0 else f"v{value}"),
        "binary": (bytes([key % 3, 255 - key % 2, key]), f"v{value}"),
        "datetime": (when, when.replace(tzinfo=dt.UTC) + dt.timedelta(seconds=value)),
    }[kind]


class Lake:
    """A lake table and the dict that it has to equal, version by version."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root
        self.kind = kind
        self.shape: TableShape = SHAPES[kind]
        self.sink = DeltaSink(root, FEED)
        self.epoch = 0
        self.state: State = {}
        self.versions: dict[int, State] = {}
        self.uncopied = {(shard, key) for shard in SHARDS for key in range(60)}

    def key(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [c.column.name for c in self.shape.columns]
        return tuple(row[names.index(k)] for k in self.shape.key)

    def apply(self, changes: list[tuple[str, int, int | None]], chunk: list[tuple[str, int]]) -> None:
        """One epoch: changes of copied keys (None: a delete), and a chunk of keys without changes."""
        self.epoch += 1
        rows: dict[Key, tuple[str, int, bool, tuple[Any, ...]]] = {}
        for shard, number, value in changes:
            row = row_of(self.kind, number, value or 0)
            rows[(shard, *self.key(row))] = (shard, self.epoch, value is None, row)
        copied = [(shard, self.epoch, False, row_of(self.kind, number, 7)) for shard, number in chunk]
        files: list[DataFile] = []
        for part, content in ((Part.CHANGES, list(rows.values())), (Part.BASE, copied)):
            if content:
                files.append(write(self.root, self.shape, part, f"{self.epoch}-a-{part.value}", content))
        version = self.sink.apply(delta(self.shape, *files), self.epoch, 1)
        for shard, epoch, deleted, row in [*rows.values(), *copied]:
            key = (shard, *self.key(row))
            self.state.pop(key, None)
            if not deleted:
                self.state[key] = (epoch, row)
        self.versions[version] = dict(self.state)

    def at(self, version: int) -> DeltaState:
        directory = tail_dir(self.root, self.shape.table)
        tail = DeltaLog(directory).at(version)
        assert tail is not None
        base, changes = (
            tuple(str(directory / path) for path in tail.files if path.startswith(f"_part={part.value}/"))
            for part in Part
        )
        return DeltaState(self.shape, 0, version, base, changes)

    def check(self, engines: tuple[str, ...] = ("duckdb",)) -> None:
        for version, state in self.versions.items():
            expected = sorted(((k[0], e, *row) for k, (e, row) in state.items()), key=repr)
            for engine in engines:
                assert sorted(fetch(self.at(version), engine), key=repr) == expected, (version, engine)


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    """One for all reads: to open one takes longer than to read a small table."""
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    return opened


def fetch(state: DeltaState, engine: str) -> list[tuple[Any, ...]]:
    if engine == "duckdb":
        table: pa.Table = state.duckdb(connection()).to_arrow_table()
    else:
        table = state.arrow() if engine == "arrow" else state.polars().to_arrow()
    return [tuple(map(plain, row.values())) for row in table.to_pylist()]


def plain(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def step(lake: Lake, rng: random.Random) -> None:
    chunk = rng.sample(sorted(lake.uncopied), min(len(lake.uncopied), rng.choice([0, 0, 5, 20])))
    lake.uncopied -= set(chunk)
    copied = sorted({(s, k) for s in SHARDS for k in range(80)} - lake.uncopied - set(chunk))
    picked = rng.sample(copied, min(len(copied), rng.choice([0, 1, 6])))
    lake.apply([(s, k, rng.choice([None, rng.randrange(100)])) for s, k in picked], chunk)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(SHAPES)), seed=st.integers(0, 1 << 30), steps=st.integers(1, 25))
def test_every_version_is_exact(
    tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int, steps: int
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"), kind)
    rng = random.Random(seed)
    for _ in range(steps):
        step(lake, rng)
    lake.check()


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_long_run_in_every_engine(tmp_path: Path, kind: str) -> None:
    lake = Lake(tmp_path, kind)
    rng = random.Random(len(kind))
    for _ in range(20):
        step(lake, rng)
    assert lake.state
    lake.versions = {v: s for v, s in lake.versions.items() if v % 5 == 0}
    lake.check(("duckdb", "arrow", "polars"))
