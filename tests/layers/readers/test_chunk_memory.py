"""What a group of chunks holds of the log behind it: what concerns its keys, and no more than it may."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, Target
from catchment.model.chunk import Chunk
from catchment.model.epoch import TableShape
from catchment.model.errors import Retry, TooManyImages
from catchment.readers.copy import read_group
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate
from tests.promises.exact.feedrun import make_feed

ROWS = 2000
IMAGE_BYTES = 64 << 10
WIDE = 400


@pytest.fixture
def everything() -> list[TableShape]:
    """The shapes of both tables, once there is a task."""
    return []


@pytest.fixture
def task(
    shard: PrivateServer, tmp_path: Path, everything: list[TableShape]
) -> Iterator[Callable[[int | None], ChunkTask]]:
    """A chunk of the keys up to one, behind whose floor every row has been changed in one transaction."""
    rows = ", ".join(f"({n}, REPEAT('x', {WIDE}))" for n in range(1, ROWS + 1))
    shard.sql(
        "DROP DATABASE IF EXISTS held",
        "CREATE DATABASE held",
        f"CREATE TABLE held.t (id INT PRIMARY KEY, v VARCHAR({WIDE}))",
        f"INSERT INTO held.t VALUES {rows}",
        "CREATE TABLE held.beside (id INT PRIMARY KEY, v INT)",
        "INSERT INTO held.beside VALUES (1, 10), (2, 20)",
        f"INSERT INTO held.t VALUES ({ROWS + 1}, 'z')",  # behind another group the rows are proven visible
    )
    feed = make_feed(tmp_path, {"-80": shard}, "held", chunk_rows=ROWS)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    origin = originate("held", endpoints, lambda table: table.schema == "held", 0)
    state, shapes = origin.cut.shards["-80"], tuple(s for s in origin.shapes if s.table.name == "t")
    at = state.position.at
    shard.sql("UPDATE held.t SET v = 'changed'", "UPDATE held.beside SET v = v + 1")

    def of_keys_up_to(key: int | None) -> ChunkTask:
        chunk = Chunk("-80", shapes[0].table, None, None if key is None else (key,), last=key is None)
        target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
        return ChunkTask(endpoints["-80"], state, at, at, (chunk,), shapes, target, asks=False)

    everything.extend(origin.shapes)
    yield of_keys_up_to
    shard.sql("DROP DATABASE held")


def test_changes_of_other_keys_are_not_held(task: Callable[[int | None], ChunkTask]) -> None:
    (rows,) = read_group(replace(task(10), image_bytes=IMAGE_BYTES)).rows.values()
    assert (
        rows.sort_by("id")
        .slice(0, 10)
        .equals(pa.table({"id": range(1, 11), "v": ["x" * WIDE] * 10}, rows.schema))
    )


def test_a_chunk_with_too_many_changes_is_refused_for_now(task: Callable[[int | None], ChunkTask]) -> None:
    with pytest.raises(
        TooManyImages, match=r"shard -80, held.t: .* more than 65536 bytes of images"
    ) as refused:
        read_group(replace(task(None), image_bytes=IMAGE_BYTES))
    assert refused.value.retry is Retry.SAME
    (rows,) = read_group(task(None)).rows.values()
    assert rows.num_rows in (ROWS, ROWS + 1)


def test_chunks_of_other_tables_in_its_group_are_read(
    task: Callable[[int | None], ChunkTask], everything: list[TableShape]
) -> None:
    """In any order, and as they were at the epoch."""
    one = replace(task(None), image_bytes=IMAGE_BYTES, shapes=tuple(everything))
    chunks = [Chunk("-80", shape.table, None, None, last=True) for shape in everything]
    for group in (chunks, chunks[::-1]):
        found = read_group(replace(one, chunks=tuple(group)))
        (table,) = found.rows
        assert (table.name, found.rows[table].sort_by("id").to_pydict()) == (
            "beside",
            {"id": [1, 2], "v": [10, 20]},
        )
        ((chunk, why),) = found.refused
        assert {chunk.table} == found.crowded == {one.chunks[0].table}
        assert "more than 65536 bytes of images" in why
        assert found.spoiled == frozenset()
