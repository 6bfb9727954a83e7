"""A fold changes files and no row, whoever wins the race; only touched files are written anew."""

import os
import resource
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from catchment.model.epoch import Commit, DataFile, LakeColumn, Part
from catchment.model.errors import LeaseLost, SinkError
from catchment.model.table import Column
from catchment.sink.delta import files as lake_files
from catchment.sink.delta.apply import DeltaSink
from catchment.sink.delta.epochs import EpochsTable
from catchment.sink.delta.files import write_file
from catchment.sink.delta.fold.due import (
    FoldLimits,
    TableStats,
    should_fold,
    should_gather,
    small_run,
    table_stats,
)
from catchment.sink.delta.fold.fold import (
    FoldOptions,
    commit,
    fold,
    prepare,
    prepare_division,
    prepare_gathering,
)
from catchment.sink.delta.fold.process import FoldOrder, carry_out
from catchment.sink.delta.fold.rewrite import FileSize
from catchment.sink.delta.layout import arrow_schema, tail_dir
from tests.layers.sink.model import FEED, INT, ORDERS, Row, delta, manifest, shape, write
from tests.world.records import name_of

SMALL = FoldOptions(target=FileSize(rows=4, bytes=1 << 20))


def base(root: Path, first: int, count: int = 4, epoch: int = 1) -> DataFile:
    rows = [("s/0", epoch, False, (i, "base")) for i in range(first, first + count)]
    return write(root, ORDERS, Part.BASE, f"{epoch}-a-{first}", rows)


def change(root: Path, epoch: int, *ids: int, deleted: bool = False) -> DataFile:
    rows = [("s/0", epoch, deleted, (i, None if deleted else f"v{epoch}")) for i in ids]
    return write(root, ORDERS, Part.CHANGES, f"{epoch}-a-c", rows)


def files(root: Path) -> set[str]:
    return {uri.rsplit("/", 1)[1] for uri in DeltaTable(tail_dir(root, ORDERS.table)).file_uris()}


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    """Three base files, keys 0-3, 10-13 and 20-23, of the size that SMALL aims at."""
    sink = DeltaSink(tmp_path, FEED)
    sink.apply(delta(ORDERS, *(base(tmp_path, first) for first in (0, 10, 20))), 1, 1)
    return sink


def test_only_touched_files_are_rewritten(tmp_path: Path, sink: DeltaSink) -> None:
    sink.apply(delta(ORDERS, change(tmp_path, 2, 11)), 2, 1)
    report = fold(tmp_path, ORDERS, FEED, 1, SMALL)
    assert report is not None
    assert (report.changes, report.removed, report.added) == (1, 2, 1)
    assert {"1-a-0.parquet", "1-a-20.parquet"} < files(tmp_path)


def test_new_keys_go_where_they_belong_and_files_stay_in_order(tmp_path: Path, sink: DeltaSink) -> None:
    rows: list[tuple[str, int, bool, Row]]
    rows = [("s/0", 2, False, (i, "new")) for i in (-5, 12, 15, 30, 31, 32, 33, 34, 35, 36, 37)]
    rows += [("s/1", 2, False, (11, "other shard")), ("s/0", 2, True, (10, None))]
    sink.apply(delta(ORDERS, write(tmp_path, ORDERS, Part.CHANGES, "2-a-c", rows)), 2, 1)
    assert fold(tmp_path, ORDERS, FEED, 1, SMALL) is not None
    ranges = []
    for uri in DeltaTable(tail_dir(tmp_path, ORDERS.table)).file_uris():
        keys = pq.read_table(uri, columns=["_shard", "id"], partitioning=None).to_pylist()
        keys = [(row["_shard"], row["id"]) for row in keys]
        assert keys == sorted(keys)
        ranges.append((keys[0], keys[-1]))
        assert "_part=base" in uri
    ranges.sort()
    assert all(left[1] < right[0] for left, right in pairwise(ranges))


def test_older_fence_cannot_fold(tmp_path: Path, sink: DeltaSink) -> None:
    sink.apply(delta(ORDERS, change(tmp_path, 2, 11)), 2, 1)
    frozen = prepare(tmp_path, ORDERS, SMALL)
    assert frozen is not None
    DeltaSink(tmp_path, FEED).apply(delta(ORDERS, change(tmp_path, 3, 12)), 3, 2)
    before = files(tmp_path)
    with pytest.raises(LeaseLost):
        commit(tmp_path, frozen, FEED, 1)
    assert files(tmp_path) == before


def test_slower_of_two_folds_changes_nothing(tmp_path: Path, sink: DeltaSink) -> None:
    sink.apply(delta(ORDERS, change(tmp_path, 2, 11)), 2, 1)
    slower = prepare(tmp_path, ORDERS, SMALL)
    assert slower is not None
    assert fold(tmp_path, ORDERS, FEED, 1, SMALL) is not None
    before = files(tmp_path)
    assert commit(tmp_path, slower, FEED, 1) is None
    assert files(tmp_path) == before


def test_a_fold_whose_commit_stood_when_the_call_failed_keeps_its_files(
    tmp_path: Path, sink: DeltaSink
) -> None:
    """Delta writes a checkpoint after version 99: a full disk refuses it when the fold is live already."""
    directory = tail_dir(tmp_path, ORDERS.table)
    for epoch in range(2, 97):
        sink.apply(delta(ORDERS, change(tmp_path, epoch, epoch)), epoch, 1)
    assert fold(tmp_path, ORDERS, FEED, 1, SMALL) is not None
    sink.apply(delta(ORDERS, change(tmp_path, 97, 97)), 97, 1)
    prepared = prepare(tmp_path, ORDERS, SMALL)
    assert prepared is not None
    assert prepared.pinned == 98
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, most))
    try:
        report = commit(tmp_path, prepared, FEED, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert not list((directory / "_delta_log").glob("*.checkpoint*")), "no checkpoint was to be written"
    assert report is not None
    assert report.version == 99
    assert {f.path.rsplit("/", 1)[1] for f in prepared.added} < files(tmp_path)
    assert all(Path(uri).exists() for uri in DeltaTable(directory).file_uris())
    sink.apply(delta(ORDERS, change(tmp_path, 98, 50)), 98, 1)
    assert commit(tmp_path, prepared, FEED, 1) is not None, "done is done"


def test_small_files_are_brought_together(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    for epoch in range(1, 12):
        sink.apply(delta(ORDERS, base(tmp_path, epoch * 10, epoch=epoch)), epoch, 1)
    report = fold(tmp_path, ORDERS, FEED, 1)
    assert report is not None
    assert (report.removed, report.added) == (11, 1)
    assert fold(tmp_path, ORDERS, FEED, 1) is None


def test_all_rows_deleted(tmp_path: Path, sink: DeltaSink) -> None:
    sink.apply(delta(ORDERS, change(tmp_path, 2, 10, 11, 12, 13, 99, deleted=True)), 2, 1)
    assert fold(tmp_path, ORDERS, FEED, 1, SMALL) is not None
    assert files(tmp_path) == {"1-a-0.parquet", "1-a-20.parquet"}


def test_a_column_newer_than_the_committed_shape_survives(tmp_path: Path, sink: DeltaSink) -> None:
    """The shape that a fold gets may be older than the table."""
    wider = type(ORDERS)(
        ORDERS.table, (*ORDERS.columns, LakeColumn(Column("extra", INT), "extra")), ORDERS.key
    )
    rows = [("s/0", 2, False, (11, "x", 77))]
    sink.apply(delta(wider, write(tmp_path, wider, Part.CHANGES, "2-a-c", rows)), 2, 1)
    assert fold(tmp_path, ORDERS, FEED, 1, SMALL) is not None
    table = DeltaTable(tail_dir(tmp_path, ORDERS.table))
    values = [v for u in table.file_uris() for v in _column(u, "extra")]
    assert sorted(v for v in values if v is not None) == [77]


def _column(uri: str, name: str) -> list[int | None]:
    table = pq.read_table(uri, partitioning=None)
    return list(table[name].to_pylist()) if name in table.column_names else []


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ({}, False),
        ({"changes_rows": 4, "changes_files": 1}, False),
        ({"changes_rows": 5, "changes_files": 1}, True),
        ({"changes_rows": 1, "changes_files": 200}, True),
        ({"changes_rows": 1, "changes_files": 1, "oldest_s": 601.0}, True),
        ({"base_files": 200}, True),
        ({"base_files": 200, "base_bytes": 200 << 24}, False),
        ({"base_files": 200, "base_rows": 200 * 4_000_000}, False),  # narrow rows: the files are full
        ({"base_rows": 0, "changes_rows": 1}, True),
    ],
)
def test_limits(changed: dict[str, int], due: bool) -> None:
    stats = TableStats(
        base_rows=100, base_bytes=1000, base_files=1, changes_rows=0, changes_files=0, oldest_s=0
    )
    assert should_fold(msgspec.structs.replace(stats, **changed), FoldLimits()) is due


def test_what_is_due_is_folded(tmp_path: Path, sink: DeltaSink) -> None:
    version = sink.apply(delta(ORDERS, change(tmp_path, 2, 11, 12)), 2, 1)
    record = manifest(2, (ORDERS,))
    EpochsTable(tmp_path, FEED).append(record, Commit(2, name_of(record), 1, {"shop.orders": version}), 1)
    order = FoldOrder(str(tmp_path), FEED, 1, FoldLimits(share=0.5), keep_seconds=3600)
    assert carry_out(order).changes == {}
    due = msgspec.structs.replace(order, limits=FoldLimits(share=0.05))
    assert carry_out(due).changes == {"shop.orders": 2}
    stats = table_stats(DeltaTable(tail_dir(tmp_path, ORDERS.table)))
    assert (stats.base_rows, stats.changes_rows, stats.unfolded_share) == (12, 0, 0.0)
    assert carry_out(due).changes == {}


@pytest.mark.parametrize("part", list(Part))
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_a_table_that_cannot_be_folded_holds_up_no_other(
    tmp_path: Path, sink: DeltaSink, part: Part, damage: Callable[[Path], None]
) -> None:
    """Its file is gone or damaged: the error names it, after all the rest is done."""
    others = (shape("a", {"id": INT}, ("id",)), shape("z", {"id": INT}, ("id",)))
    sink.apply(delta(ORDERS, change(tmp_path, 2, 11)), 2, 1)
    for table in others:
        rows = [("s/0", 2, False, (1,))]
        sink.apply(delta(table, write(tmp_path, table, Part.CHANGES, "2-a-c", rows)), 2, 1)
    record = manifest(2, (others[0], ORDERS, others[1]))
    versions = sink.apply_epoch(record, 1)
    EpochsTable(tmp_path, FEED).append(record, Commit(2, name_of(record), 1, versions), 1)
    for path in tail_dir(tmp_path, ORDERS.table).glob(f"_part={part.value}/*"):
        damage(path)
    lost = write(tmp_path, others[1], Part.CHANGES, "1-lost", [("s/0", 1, False, (1,))])
    lost_path = tail_dir(tmp_path, others[1].table) / lost.path
    os.utime(lost_path, (0, 0))
    order = FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), keep_seconds=3600, all_tables=True)
    with pytest.raises(SinkError, match=rf"orders/_part={part.value}/.*cannot be read"):
        carry_out(order)
    for table in others:
        assert table_stats(DeltaTable(tail_dir(tmp_path, table.table))).changes_files == 0
    assert not lost_path.exists(), "the cleaner has its turn"


@pytest.mark.parametrize("others", [(5, 25, 45), (50, 60, 70)])
def test_rows_of_a_folded_file_stand_in_order(tmp_path: Path, others: tuple[int, ...]) -> None:
    """Two small files become one, whether their ranges overlap or not; new keys fall between old ones."""
    sink = DeltaSink(tmp_path, FEED)
    for epoch, ids in ((1, (0, 20, 40)), (2, others)):
        rows: list[tuple[str, int, bool, Row]] = [("s/0", epoch, False, (i, "base")) for i in ids]
        sink.apply(delta(ORDERS, write(tmp_path, ORDERS, Part.BASE, f"{epoch}-a", rows)), epoch, 1)
    sink.apply(delta(ORDERS, change(tmp_path, 3, 10, 20, 30, others[1], others[1] + 1)), 3, 1)
    assert fold(tmp_path, ORDERS, FEED, 1) is not None
    (uri,) = DeltaTable(tail_dir(tmp_path, ORDERS.table)).file_uris()
    ids = pq.read_table(uri, partitioning=None)["id"].to_pylist()
    assert ids == sorted({0, 10, 20, 30, 40, *others, others[1] + 1})
    notes = pq.read_metadata(uri).metadata
    assert notes[b"catchment.first"] < notes[b"catchment.last"]


def test_changes_larger_than_memory_are_folded_a_part_at_a_time(
    tmp_path: Path, sink: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is their size in memory: on disk these take a thousandth."""
    monkeypatch.setattr(lake_files, "ROW_GROUP_BYTES", 1 << 20)
    rows: list[tuple[str, int, bool, Row]] = [("s/0", 2, i == 3, (i, str(i) * (1 << 20))) for i in range(9)]
    schema = arrow_schema(ORDERS)
    one_by_one = [pa.Table.from_pylist([_named(row)], schema) for row in rows]
    name = tail_dir(tmp_path, ORDERS.table)
    large = write_file(name, Part.CHANGES, "2-a-c", one_by_one, schema, ["id"])
    sink.apply(delta(ORDERS, large), 2, 1)
    sink.apply(delta(ORDERS, change(tmp_path, 3, 1)), 3, 1)
    options = FoldOptions(changes_bytes_max=3 << 20)
    divided = prepare_division(tmp_path, ORDERS, options)
    assert divided is not None
    assert commit(tmp_path, divided, FEED, 1) is not None
    assert table_stats(DeltaTable(name)).changes_files >= 1 + 3
    folded = []
    while (report := fold(tmp_path, ORDERS, FEED, 1, options)) is not None:
        folded.append(report.changes)
    assert sum(folded) == 9 + 1
    assert max(folded) <= 3
    held = [r for u in DeltaTable(name).file_uris() for r in pq.read_table(u, partitioning=None).to_pylist()]
    expected = {i: str(i) * (1 << 20) for i in range(9)} | {
        i: "base" for i in (10, 11, 12, 13, 20, 21, 22, 23)
    }
    expected[1] = "v3"
    del expected[3]
    assert {r["id"]: r["sig"] for r in held} == expected
    assert len(held) == len(expected)


def _named(row: tuple[str, int, bool, Row]) -> dict[str, object]:
    shard, epoch, deleted, (key, sig) = row
    return {"_shard": shard, "_epoch": epoch, "_deleted": deleted, "id": key, "sig": sig}


def test_gathering_leaves_out_what_would_have_to_be_folded_at_a_time() -> None:
    sizes = [1, 1, 1, 9 << 20, 1, 1, 1, 1, 9 << 20, 1]
    found = small_run(
        [{"min._epoch": n, "max._epoch": n, "size_bytes": size} for n, size in enumerate(sizes)]
    )
    assert [f["min._epoch"] for f in found] == [4, 5, 6, 7]


def test_small_files_of_changes_are_gathered_and_the_base_is_left_alone(
    tmp_path: Path, sink: DeltaSink
) -> None:
    for epoch in range(2, 30):
        sink.apply(delta(ORDERS, change(tmp_path, epoch, 1, epoch, deleted=epoch % 5 == 0)), epoch, 1)
    table = DeltaTable(tail_dir(tmp_path, ORDERS.table))
    before = table_stats(table)
    assert should_gather(before)
    prepared = prepare_gathering(tmp_path, ORDERS, FoldOptions())
    assert prepared is not None
    sink.apply(delta(ORDERS, change(tmp_path, 30, 2, deleted=True)), 30, 1)
    report = commit(tmp_path, prepared, FEED, 1)
    assert report is not None
    assert (report.changes, report.removed, report.added) == (56, 28, 1)
    table.update_incremental()
    after = table_stats(table)
    assert (after.changes_files, after.base_files, after.base_rows) == (
        2,
        before.base_files,
        before.base_rows,
    )
    assert after.changes_rows == 29 + 1  # keys 1 to 29 once each, and the epoch that came in between
    assert not should_gather(after)
    assert after.oldest_s >= before.oldest_s, "the changes wait as long as before to be folded"
    assert commit(tmp_path, prepared, FEED, 1) is not None, "done is done"
    assert files(tmp_path) == {uri.rsplit("/", 1)[1] for uri in table.file_uris()}
