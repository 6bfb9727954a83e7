"""One data file asked by its side file: the rows that a scan by DuckDB finds, whatever becomes of the side file."""

import json
import random
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from catchment.sink.delta.files import write_parquet
from catchment.sink.delta.layout import SHARD, identity_columns
from catchment.sink.delta.log.actions import Add
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.sink.delta.plain import index, side_file
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.index_directory import TableFiles
from catchment.sink.delta.plain.index_rule import BY_COST, Rule
from catchment.sink.delta.plain.shape import plain_schema
from catchment.sink.delta.plain.side_file import Of, SideFile, made
from catchment.sink.delta.plain.touched import Changed
from tests.layers.sink.test_model import SHAPES, SHARDS, row_of

# Every file has a side file at once.
AT_ONCE = Rule(rows=0, share=0, scans=0, scans_of_integers=0)
# As the files of copies and joins are; as the server orders texts by a collation; as a cluster has them.
ORDERS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "in order": lambda row: row,
    "of a collation": lambda row: [str(value).casefold() for value in row],
    "of another column": lambda row: zlib.crc32(repr(row).encode()),
}


class File:
    """A data file with rows of two shards, and an index that has nothing yet."""

    def __init__(self, root: Path, kind: str, order: str, rng: random.Random, rows: int = 60) -> None:
        self.shape, self.kind, self.plain = SHAPES[kind], kind, root / "lake" / "shop" / kind
        self.plain.mkdir(parents=True)
        self.directory = root / "index"
        self.columns = identity_columns(self.shape)
        self.schema = plain_schema(self.shape)
        # Some keys have several rows, as those of files that were joined while rows died.
        keys = [(rng.choice(SHARDS), rng.randrange(min(rows, 200))) for _ in range(rows)]
        table = self.table(keys).to_pylist()
        table.sort(key=lambda row: ORDERS[order](tuple(row[name] for name in self.columns)))
        self.path = self.plain / f"1-{rng.randbytes(6).hex()}.parquet"
        with pq.ParquetWriter(self.path, self.schema) as writer:
            writer.write_table(pa.Table.from_pylist(table, self.schema), row_group_size=rng.choice((7, 1000)))
        self.file = LakeFile(Add(self.path.name, self.path.stat().st_size, 0, True), rows)
        self.rng = rng

    def table(self, keys: list[tuple[str, int]]) -> pa.Table:
        """Rows of some keys."""
        names = [column.physical for column in self.shape.columns]
        rows = [
            {SHARD: s, "_epoch": 1} | dict(zip(names, row_of(self.kind, k, 1), strict=True)) for s, k in keys
        ]
        return pa.Table.from_pylist(rows, self.schema)

    def changed(self) -> pa.Table:
        """Some keys, of which the file has some."""
        keys = {(self.rng.choice(SHARDS), self.rng.randrange(80)) for _ in range(self.rng.choice((1, 9, 40)))}
        return self.table(sorted(keys, key=lambda key: self.rng.random())).select(list(self.columns))

    def index(self) -> Index:
        return Index(self.plain, self.directory, AT_ONCE)

    @property
    def side(self) -> Path:
        """The side file."""
        return TableFiles(self.directory, self.plain).place(self.path.name)

    def by_duckdb(self, wanted: pa.Table) -> list[int]:
        """The rows that have one of the keys."""
        alike = " AND ".join(f'f."{name}" = w."{name}"' for name in self.columns)
        with duckdb.connect() as connection:
            connection.register("wanted", wanted)
            found = connection.execute(
                f"SELECT file_row_number FROM read_parquet('{self.path}', file_row_number = true) f "
                f"WHERE EXISTS (SELECT 1 FROM wanted w WHERE {alike})"
            ).fetchall()
        return sorted(row for (row,) in found)

    def must_find(self, by_index: Index, times: int = 3) -> None:
        """Whatever is asked is found."""
        for _ in range(times):
            wanted = self.changed()
            assert list(by_index.rows(Changed(wanted), self.file)) == self.by_duckdb(wanted)


@contextmanager
def no_scan(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the block no data file is scanned."""

    def scanned(_changed: Changed, path: Path) -> BitMap:
        raise AssertionError(f"{path} was scanned")

    with monkeypatch.context() as patch:
        patch.setattr(Changed, "rows", scanned)
        yield


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", SHAPES)
def test_every_key_in_every_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, order: str
) -> None:
    file = File(tmp_path, kind, order, random.Random(f"{kind} {order}"))
    with no_scan(monkeypatch):
        file.must_find(file.index())
        assert file.side.exists()
        file.must_find(file.index())
    # Numbers of rows stand there only where they have to.
    in_order = json.loads(head_of(file.side))["in_order"]
    assert {"in order": in_order, "of another column": not in_order}.get(order, True)


def head_of(side: Path) -> bytes:
    content = side.read_bytes()
    return content[16 : 16 + struct.unpack_from("<I", content, 8)[0]]


def test_each_part_damaged(tmp_path: Path) -> None:
    """Cut at any byte, and with any bit turned: the same rows, and the file is made again."""
    file = File(tmp_path, "pair", "of another column", random.Random(5), rows=20)
    file.must_find(file.index(), 1)
    right = file.side.read_bytes()
    head = 16 + len(head_of(file.side))
    wanted = file.changed()
    expected = file.by_duckdb(wanted)
    some = sorted({*range(0, head, 5), *range(head, len(right), 9), len(right) - 1})
    for place in some:
        turned = bytearray(right)
        turned[place] ^= 1 << file.rng.randrange(8)
        for damaged in (right[:place], bytes(turned)):
            file.side.write_bytes(damaged)
            assert list(file.index().rows(Changed(wanted), file.file)) == expected, place
            assert not file.side.exists()
    file.side.write_bytes(right + b"\0")
    file.must_find(file.index())
    assert file.side.read_bytes() == right


def test_damage_behind_a_checksum_reads_nothing_else(tmp_path: Path) -> None:
    """A file that a program of somebody's wrote: whatever it says, no row beyond the data file and no crash."""
    file = File(tmp_path, "string", "of another column", random.Random(6), rows=20)
    file.must_find(file.index(), 1)
    right = file.side.read_bytes()
    for place in range(16 + len(head_of(file.side)), len(right), 3):
        turned = bytearray(right)
        turned[place] ^= 0xFF
        struct.pack_into("<I", turned, 12, zlib.crc32(turned[16:]))
        file.side.write_bytes(turned)
        found = file.index().rows(Changed(file.changed()), file.file)
        assert not found or found.max() < file.file.rows


def test_damaged_while_it_is_used(tmp_path: Path) -> None:
    file = File(tmp_path, "string", "in order", random.Random(7))
    by_index = file.index()
    file.must_find(by_index)
    right = file.side.read_bytes()
    for damaged in (right[:-9], b"", right[:-1] + bytes([right[-1] ^ 4])):
        file.side.write_bytes(damaged)
        file.must_find(by_index, 1)
        file.must_find(by_index)
        assert file.side.read_bytes() == right


def test_of_another_version_or_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = (File(tmp_path / name, "int", "in order", random.Random(name)) for name in ("one", "other"))
    for each in (file, other):
        each.must_find(each.index())
    right, there = file.side.read_bytes(), other.side.read_bytes()
    head = head_of(file.side)
    later = head.replace(b'"version":1', b'"version":2')
    columns = head.replace(b'"id"', b'"no"')
    unknown = head.replace(b'"version":1,', b'"version":1,"more":1,')
    for changed in (later, columns, unknown + b" " * (-len(unknown) % 8)):
        assert changed != head
        content = changed + right[16 + len(head) :]
        file.side.write_bytes(struct.pack("<8sII", b"CATCHIDX", len(changed), zlib.crc32(content)) + content)
        file.must_find(file.index(), 1)
        file.must_find(file.index(), 1)
        assert file.side.read_bytes() == right
    file.side.write_bytes(there)
    file.must_find(file.index(), 2)
    assert file.side.read_bytes() == right
    shutil.rmtree(file.directory)
    file.must_find(file.index(), 1)
    with no_scan(monkeypatch):
        file.must_find(file.index())


def test_it_is_made_when_scans_have_cost_as_much(tmp_path: Path) -> None:
    file = File(tmp_path, "string", "in order", random.Random(10))
    by_index = Index(file.plain, file.directory, Rule(rows=1, share=0, scans=3))
    for scans in range(1, 6):
        file.must_find(by_index, 1)
        assert file.side.exists() is (scans > 3)
    file.must_find(Index(file.plain, file.directory), 20)  # by cost a file of few rows is scanned


def test_keys_that_memory_cannot_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read for nothing once."""
    file = File(tmp_path, "string", "in order", random.Random(13))
    tries: list[Of] = []

    def noted(path: Path, of: Of) -> SideFile | None:
        tries.append(of)
        return made(path, of)

    monkeypatch.setattr(side_file, "KEYS_BYTES_MAX", 100)
    monkeypatch.setattr(index, "made", noted)
    file.must_find(file.index(), 5)
    assert len(tries) == 1
    assert not file.side.exists()


def test_the_rule() -> None:
    assert not BY_COST.serves(BY_COST.rows - 1, 1)
    assert BY_COST.serves(BY_COST.rows, BY_COST.rows // BY_COST.share - 1)
    assert not BY_COST.serves(BY_COST.rows, BY_COST.rows // BY_COST.share)
    for integers, scans in ((True, BY_COST.scans_of_integers), (False, BY_COST.scans)):
        assert [BY_COST.pays(n, integers=integers) for n in (scans - 1, scans)] == [False, True]


def test_keys_out_of_the_bounds_of_a_file_do_not_count() -> None:
    wanted = pa.table({SHARD: ["a"] * 100, "n": pa.array(range(100), pa.int64())})
    stats = {"numRecords": 9, "minValues": {"n": 90}, "maxValues": {"n": 1000}}
    file = LakeFile(Add("f", 1, 0, True, json.dumps(stats)), 9)
    assert Changed(wanted).within(file) == 10
    assert Changed(wanted.set_column(1, "n", wanted["n"].cast(pa.string()))).within(file) == 100


def test_large_files_have_one_by_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the sizes of the product, and keys that a settle brings to a large file."""
    rows = BY_COST.rows
    texts = pa.array([f"{number:08x}-0000" for number in range(rows)])
    table = pa.table({SHARD: pa.array(["s"] * rows), "k": texts})
    path = tmp_path / "f.parquet"
    written = write_parquet(path, [table], table.schema)
    file = LakeFile(Add(path.name, written.size, 0, True), rows)
    by_index = Index(tmp_path, tmp_path / "index")
    places = np.sort(np.random.default_rng(1).choice(rows, 500, replace=False))
    wanted = table.take(pa.array(places))
    for _ in range(BY_COST.scans + 1):
        assert list(by_index.rows(Changed(wanted), file)) == places.tolist()
    with no_scan(monkeypatch):
        assert list(by_index.rows(Changed(wanted), file)) == places.tolist()
