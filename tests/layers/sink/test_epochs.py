"""The epochs table: each epoch once, found whatever was compacted, refused to a runner that was replaced."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from catchment.model.cut import Cut
from catchment.model.epoch import Commit, EpochRow, Manifest, Part
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import LeaseLost, SinkError
from catchment.model.position import Gtid, GtidList, LogOffset, Position, Server
from catchment.model.records import link_of
from catchment.model.shard import Copy, ShardState
from catchment.model.version import LAKE_LAYOUT
from catchment.sink.delta.epochs.rows import SCHEMA
from catchment.sink.delta.epochs.table import EpochsTable, feeds
from catchment.sink.delta.layout import epochs_dir
from tests.layers.sink.endurance import passing
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world import records
from tests.world.records import name_of


def commit_of(record: Manifest) -> Commit:
    return Commit(record.epoch, name_of(record), record.epoch * 10, {"shop.orders": record.epoch})


def append(epochs: EpochsTable, epoch: int, fence: int = 1) -> None:
    record = manifest(epoch, (ORDERS,), feed=epochs.feed)
    epochs.append(record, commit_of(record), fence)


def test_a_row_is_the_whole_record_but_its_files(tmp_path: Path) -> None:
    epochs = EpochsTable(tmp_path, FEED)
    assert (epochs.newest(), epochs.at(1), epochs.read_all(), feeds(tmp_path)) == (None, None, [], [])
    file = write(tmp_path, ORDERS, Part.CHANGES, "9-a-0", [("s/0", 9, False, (1, "x"))])
    at = LogOffset("binlog.000003", 4711)
    position = Position(at, 1700000000, Server(1, "db", 3306), GtidList((Gtid(0, 1, 5),)))
    copy = Copy(ORDERS.table, copied=(7,), born_after=(9,), rows=7, rows_expected=9)
    record = msgspec.structs.replace(
        manifest(9 << 32 | 3, (ORDERS,), delta(ORDERS, file)),
        cut=Cut(9 << 32 | 3, 1000, {"s/0": ShardState(position, at, (copy,))}),
    )
    epochs.append(record, commit_of(record), 4)
    row = EpochsTable(tmp_path, FEED).newest()
    assert row is not None
    assert row.manifest == msgspec.structs.replace(record, deltas=())
    assert row.commit == commit_of(record)
    assert row.fence == 4
    assert epochs.at(9 << 32 | 3) == row
    assert epochs.at(9 << 32) is None


def test_an_epoch_is_appended_once(tmp_path: Path) -> None:
    append(EpochsTable(tmp_path, FEED), 5)
    append(EpochsTable(tmp_path, FEED), 5)
    assert [r.manifest.epoch for r in EpochsTable(tmp_path, FEED).read_all()] == [5]


def test_a_replaced_runner_cannot_append(tmp_path: Path) -> None:
    frozen = EpochsTable(tmp_path, FEED)
    append(frozen, 1)
    EpochsTable(tmp_path, FEED).take_over(2)
    with pytest.raises(LeaseLost):
        append(frozen, 2)
    append(EpochsTable(tmp_path, FEED), 2, fence=2)
    assert [r.fence for r in frozen.read_all()] == [1, 2]


def test_the_fence_of_a_runner_without_an_epoch_is_known(tmp_path: Path) -> None:
    epochs = EpochsTable(tmp_path, FEED)
    assert epochs.fence() == 0
    append(epochs, 1)
    EpochsTable(tmp_path, FEED).take_over(7)
    EpochsTable(tmp_path, "other").take_over(9)
    assert epochs.fence() == 7


def test_compaction_keeps_every_epoch_of_every_feed(tmp_path: Path) -> None:
    here, other = EpochsTable(tmp_path, FEED), EpochsTable(tmp_path, "other")
    for epoch in range(1, 41):
        append(here, epoch)
        append(other, epoch + 100)
    assert here.compact(1) == 80
    assert len(DeltaTable(epochs_dir(tmp_path)).file_uris()) == 1
    append(here, 41)
    assert here.compact(1) == 0
    for epoch in range(42, 81):
        append(here, epoch)
    assert here.compact(1) == 40, "the large file is left alone"
    assert [r.manifest.epoch for r in here.read_all()] == list(range(1, 81))
    assert [r.manifest.epoch for r in EpochsTable(tmp_path, "other").read_all()] == list(range(101, 141))
    newest, old = other.newest(), here.at(17)
    assert newest is not None
    assert old is not None
    assert (newest.manifest.epoch, old.manifest.epoch) == (140, 17)
    assert feeds(tmp_path) == sorted([FEED, "other"])


def test_compaction_beside_an_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append between listing and commit wins; what was brought together is committed behind it."""
    here = EpochsTable(tmp_path, FEED)
    for epoch in range(1, 41):
        append(here, epoch)
    folder = EpochsTable(tmp_path, FEED)
    written = folder._write

    def write_after_an_append(rows: Iterable[pa.Table | pa.RecordBatch]) -> object:
        append(here, 41)
        return written(rows)

    monkeypatch.setattr(folder, "_write", write_after_an_append)
    assert folder.compact(1) == 40
    assert [r.manifest.epoch for r in here.read_all()] == list(range(1, 42))
    named = {Path(uri).name for uri in DeltaTable(epochs_dir(tmp_path)).file_uris()}
    assert len(named) == 2
    assert len(list(epochs_dir(tmp_path).glob("*.parquet"))) == 40 + 2, "no attempt leaves a file"


@pytest.mark.long
def test_large_epochs_are_brought_together_level_by_level(tmp_path: Path) -> None:
    """Of many tables a manifest is large: together more than one array of text holds (2 GiB)."""
    epochs = EpochsTable(tmp_path, FEED)
    append(epochs, 1)
    text = pa.array(["x" * (1 << 20)])
    for file in range(32):
        rows = 68
        first = 2 + file * rows
        constant = {"feed": FEED, "committed_us": 1, "versions": "{}", "digest": "", "fence": 1}
        columns = {name: pa.repeat(pa.scalar(value), rows) for name, value in constant.items()}
        columns |= {
            "epoch": pa.array(range(first, first + rows)),
            "manifest": pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0), rows), text
            ).dictionary_decode(),
        }
        batch = pa.table({f.name: columns[f.name].cast(f.type) for f in SCHEMA}, schema=SCHEMA)
        on = epochs._log.newest()
        assert on is not None
        assert epochs._put(on, [epochs._write([batch])], 1)
    assert epochs.compact(1) == 32, "the one small file waits for more of its kind"
    assert len(DeltaTable(epochs_dir(tmp_path)).file_uris()) == 2
    append(epochs, 5000)
    newest = epochs.newest()
    assert newest is not None
    assert newest.manifest.epoch == 5000
    assert epochs.compact(1) == 0


def fill(epochs: EpochsTable, turns: Iterable[int]) -> None:
    """Epochs of so many tables that most rows say what has changed."""
    for turn in turns:
        made = msgspec.structs.replace(records.large(turn), feed=epochs.feed)
        epochs.append(
            made, Commit(made.epoch, f"d{turn}", turn, {"shop.a": turn // 3, f"shop.{turn % 2}": 1}), 1
        )


def rows_of(root: Path) -> dict[int, str]:
    """The turns of all rows, and how each is written."""
    found = {}
    for path in epochs_dir(root).glob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            found[row["epoch"] >> 32] = "whole" if link_of(row["manifest"].encode()) is None else "changes"
    return dict(sorted(found.items()))


def check(row: EpochRow | None, turn: int, feed: str = FEED) -> None:
    """The row is that of the turn, as `fill` has written it."""
    assert row is not None
    assert row.manifest == msgspec.structs.replace(records.large(turn), feed=feed, deltas=())
    assert row.commit == Commit(
        epoch_number(turn), f"d{turn}", turn, {"shop.a": turn // 3, f"shop.{turn % 2}": 1}
    )


def test_rows_of_changes(tmp_path: Path) -> None:
    fill(EpochsTable(tmp_path, FEED), range(1, 4))
    again = EpochsTable(tmp_path, FEED)
    fill(again, range(4, 60))
    kinds = rows_of(tmp_path)
    assert [turn for turn, kind in kinds.items() if kind == "whole"] == [1, 4, 55]
    fresh = EpochsTable(tmp_path, FEED)
    check(fresh.newest(), 59)
    for turn in (1, 2, 3, 4, 54, 55):
        check(fresh.at(epoch_number(turn)), turn)
    for row, turn in zip(fresh.last(8, epoch_number(57)), range(57, 49, -1), strict=True):
        check(row, turn)
    for row, turn in zip(fresh.read_all(), range(1, 60), strict=True):
        check(row, turn)


def test_a_reader_needs_two_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(EpochsTable(tmp_path, FEED), range(1, 40))
    opened: list[str] = []
    read = EpochsTable._read

    def counted(table: EpochsTable, paths: list[str], filters: object = None) -> pa.Table:
        opened.extend(paths)
        return read(table, paths, filters)  # type: ignore[arg-type]

    monkeypatch.setattr(EpochsTable, "_read", counted)
    check(EpochsTable(tmp_path, FEED).newest(), 39)
    assert len(opened) == 2


def test_rows_of_changes_of_two_feeds_that_were_brought_together(tmp_path: Path) -> None:
    here, other = EpochsTable(tmp_path, FEED), EpochsTable(tmp_path, "other")
    for turn in range(1, 35):
        fill(here, [turn])
        fill(other, [turn])
    assert here.compact(1) == 68
    fill(here, [35, 36])
    check(EpochsTable(tmp_path, FEED).newest(), 36)
    check(EpochsTable(tmp_path, FEED).at(epoch_number(7)), 7)
    check(EpochsTable(tmp_path, "other").newest(), 34, "other")


def test_old_rows_are_dropped_but_for_needed_ones(tmp_path: Path) -> None:
    """And but for the whole rows on which these build, and those behind them. Another feed's stay."""
    with passing(3 * 86_400.0) as clock:
        here, other = EpochsTable(tmp_path, FEED), EpochsTable(tmp_path, "other")
        for turn in range(1, 101):
            fill(here, [turn])
            fill(other, [turn])
        assert here.compact(1) == 200
        before = epoch_number(90)
        assert here.drop(1, before, 86_400.0, [epoch_number(20)]) == 0, "the file is young"
        clock.seconds += 2 * 86_400.0
        fill(here, [101])
        assert here.drop(1, before, 86_400.0, [epoch_number(20)]) == 0, "it has younger rows, too"
        assert here.drop(1, epoch_number(101), 86_400.0, [epoch_number(20), epoch_number(70)]) == 95
        assert here.drop(1, epoch_number(101), 0.0, [epoch_number(20), epoch_number(70)]) == 0
        fill(here, [102])
        again = EpochsTable(tmp_path, FEED)
        assert [number >> 32 for number in again.numbers()] == [1, 20, 52, 70, 100, 101, 102]
        for turn in (1, 20, 52, 70, 100, 101, 102):
            check(again.at(epoch_number(turn)), turn)
        assert [row.manifest.epoch >> 32 for row in other.read_all()] == list(range(1, 101))


def test_after_a_row_that_stood_already_comes_a_whole_one(tmp_path: Path) -> None:
    """Two attempts at an epoch may be written in two ways; nothing builds on what another object wrote."""
    epochs = EpochsTable(tmp_path, FEED)
    fill(epochs, [1, 2, 2, 3, 4])
    assert rows_of(tmp_path) == {1: "whole", 2: "changes", 3: "whole", 4: "changes"}
    check(EpochsTable(tmp_path, FEED).newest(), 4)


def test_a_row_whose_whole_one_is_gone(tmp_path: Path) -> None:
    """As where files of two copies of a lake were mixed."""
    epochs = EpochsTable(tmp_path / "here", FEED)
    fill(epochs, [1, 2])
    other = EpochsTable(tmp_path / "there", FEED)
    other._base = epochs._base
    fill(other, [2])
    for look in (other.newest, other.read_all, lambda: other.at(epoch_number(2))):
        with pytest.raises(
            SinkError, match=r"row of epoch .*02Z.0000 builds on epoch .*01Z.0000, whose record is not"
        ):
            look()


def test_a_table_is_marked_before_its_first_row_of_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("catchment.sink.delta.log.properties.LAKE_LAYOUT", 1)
        fill(EpochsTable(tmp_path, FEED), [1])
    fill(EpochsTable(tmp_path, FEED), [2])
    assert DeltaTable(epochs_dir(tmp_path)).metadata().configuration["catchment.layout"] == str(LAKE_LAYOUT)
    check(EpochsTable(tmp_path, FEED).newest(), 2)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    epochs = EpochsTable(tmp_path, FEED)
    append(epochs, 1)
    (path,) = epochs_dir(tmp_path).glob("*.parquet")
    damage(path)
    for look in (epochs.newest, epochs.read_all, lambda: epochs.at(1)):
        with pytest.raises(SinkError, match=rf"{path.name} cannot be read.*put back"):
            look()


@pytest.mark.long
def test_stays_cheap(tmp_path: Path) -> None:
    epochs = EpochsTable(tmp_path, FEED)
    started = time.perf_counter()
    for epoch in range(1, 2001):
        append(epochs, epoch)
        if epoch % 500 == 0:
            epochs.compact(1)
    assert (time.perf_counter() - started) / 2000 < 0.1
