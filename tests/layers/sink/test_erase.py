"""Erasures beside what else may happen to a lake: checkpoints, settles, joins, and a store that was lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

import catchment
from catchment.model.epoch import Commit, Part, TableShape
from catchment.model.errors import SinkError, SinkRestored
from catchment.model.table import ColumnType, Kind
from catchment.model.treatment import Mode
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.files import replace_bytes
from catchment.sink.delta.layout import epoch_app, staged_dir, table_dir, tail_dir
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain import due, join
from catchment.sink.delta.plain.made import Made
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.plain.take_back import take_back
from catchment.sink.delta.tail.stage import LakeStage
from catchment.sink.delta.upkeep import erase as erasure
from catchment.sink.delta.upkeep.erase import erase
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.lake import DeltaLake
from catchment.sink.erasure import Erased, Erasure, Spelling
from catchment.state.faults import Fault
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, shape, write
from tests.world.settled import carry_out

WORD = "zz-somebody"
KEPT = replace(ORDERS, mode=Mode.SOFT_DELETE)
NAMED = shape(
    "named",
    {"name": ColumnType(Kind.TEXT, charset="utf8mb4"), "sig": ORDERS.columns[1].column.type},
    ("name",),
)


def order(root: Path) -> UpkeepOrder:
    return UpkeepOrder(str(root), FEED, 1, 3600.0)


def erased(root: Path, table: TableShape, *keys: Any, **options: Any) -> Erased:
    kind = pa.int64() if table is not NAMED else pa.string()
    given = pa.table({table.key[0]: pa.array(keys, kind)})
    return erase(order(root), Erasure(table.table, given, **options))


def lived(root: Path, table: TableShape = ORDERS) -> Feeder:
    """Row 3 was copied, changed and deleted, in settled epochs 1 to 3; row 2 is changed in each."""
    feeder = Feeder(root)
    feeder.put(table, (1, "a"), (2, "b"), (3, f"{WORD} 1"), part=Part.BASE)
    carry_out(order(root))
    feeder.put(table, (2, "bb"), (3, f"{WORD} 2"))
    carry_out(order(root))
    feeder.put(table, (3, None), deleted=True)
    carry_out(order(root))
    return feeder


def words(root: Path) -> list[Path]:
    """The files that have the word."""
    files = [path for path in root.rglob("*") if path.is_file()]
    found = [path for path in files if WORD.encode() in path.read_bytes()]
    parquet = (path for path in files if path.suffix == ".parquet")
    return [*found, *(path for path in parquet if WORD in repr(pq.ParquetFile(path).read().to_pylist()))]


def rows(root: Path, table: TableShape = ORDERS) -> list[tuple[Any, ...]]:
    """What `catchment.read` and any reader of Delta see at the newest settled epoch."""
    found = catchment.read(root, str(table.table), origin=False).arrow().to_pylist()
    plain = pl.read_delta(str(table_dir(root, table.table))).select("id", "sig").rows()
    assert sorted(plain) == sorted(tuple(row.values()) for row in found)
    return sorted(plain)


def test_statistics_leave_entries_and_checkpoints(tmp_path: Path) -> None:
    lived(tmp_path)
    plain, tail = table_dir(tmp_path, ORDERS.table), tail_dir(tmp_path, ORDERS.table)
    for directory in (plain, tail):
        DeltaTable(directory).create_checkpoint()
    log = plain / "_delta_log"
    entry = log / "00000000000000000001.json"
    before = [
        (path, path.stat().st_mtime_ns, path.stat().st_size) for path in (entry, *log.glob("*.parquet"))
    ]
    assert WORD in entry.read_text()
    (log / "00000000000000000001.crc").write_text(f'{{"allFiles": ["{WORD}"]}}')
    assert any(path.suffix == ".parquet" and path.parent == log for path in words(tmp_path))
    assert erased(tmp_path, ORDERS, 3).rows["history"] > 0
    assert words(tmp_path) == []
    assert before == [(path, path.stat().st_mtime_ns, path.stat().st_size) for path, *_ in before]
    for directory in (plain, tail):
        on = DeltaLog(directory).newest()
        assert on is not None
        assert set(DeltaTable(directory).file_uris()) == {str(directory / path) for path in on.files}
    assert rows(tmp_path) == [(1, "a"), (2, "bb")]
    feeder = Feeder(tmp_path)
    feeder.epoch = 3
    feeder.put(ORDERS, (3, "back"))
    carry_out(order(tmp_path))
    assert rows(tmp_path) == [(1, "a"), (2, "bb"), (3, "back")]


@pytest.mark.parametrize("of_tail", [False, True])
def test_a_checkpoint_that_is_written_late_brings_no_bound_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_tail: bool
) -> None:
    feeder = Feeder(tmp_path)
    feeder.put(NAMED, (WORD, b"a"), part=Part.BASE)
    carry_out(order(tmp_path))
    feeder.put(NAMED, (WORD, None), deleted=True)
    feeder.put(NAMED, ("b", b"b"))
    carry_out(order(tmp_path))
    log = DeltaLog((tail_dir if of_tail else table_dir)(tmp_path, NAMED.table))
    newest = log.newest()
    assert newest is not None
    named = [on for v in range(newest.version) if (on := log.at(v)) is not None and WORD in repr(on.files)]
    races: list[Callable[[], object]] = [lambda: None, lambda: erased(tmp_path, NAMED, WORD)]

    def after_an_erasure(place: Path, content: bytes) -> None:
        races.pop()()
        replace_bytes(place, content)
        assert (place in words(tmp_path)) == bool(races)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "replace_bytes", after_an_erasure)
        checkpoint.write_checkpoint(log, named[0])
    assert races == []
    checkpoint.write_checkpoint(DeltaLog(log.directory), named[-1])
    assert words(tmp_path) == []
    told = DeltaLog(log.directory).at(named[0].version)
    assert told is not None
    assert all(file.bounds().of("_epoch") is not None for file in told.files.values())


def test_a_join_that_began_before_brings_no_row_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lived(tmp_path, KEPT)
    commit, raced = join.commit, list[Path]()

    def behind_an_erasure(order: SettleOrder, joined: join.Joined) -> Snapshot | None:
        if raced:
            return commit(order, joined)
        raced.append(Path(str(order.plain.directory)) / joined.add.file)
        copy = raced[0].read_bytes()
        assert erased(tmp_path, KEPT, 3).rows["table"] == 1
        raced[0].write_bytes(copy)  # as one that is written only now
        return commit(order, joined)

    monkeypatch.setattr(due, "FAN", 2)
    monkeypatch.setattr(join, "commit", behind_an_erasure)
    Feeder(tmp_path)
    carry_out(order(tmp_path))
    assert raced
    assert words(tmp_path) == []
    assert rows(tmp_path, KEPT) == [(1, "a"), (2, "bb")]


@pytest.mark.parametrize("place", ["before", "within", "behind"])
def test_a_settle_that_began_before_brings_no_row_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The settle of a delete is to read the row, has read it, or has written it once more when the erasure comes."""
    feeder = lived(tmp_path, KEPT)
    feeder.put(KEPT, (4, f"{WORD} 4"), (1, "aa"))
    carry_out(order(tmp_path))
    feeder.put(KEPT, (4, None), deleted=True)
    raced: list[Made] = []
    name = "_bring_held" if place == "within" else "take"
    work = getattr(Made, name)

    def with_an_erasure(made: Made, *arguments: Any) -> None:
        if raced:
            work(made, *arguments)
            return
        raced.append(made)
        if place == "behind":
            work(made, *arguments)
        erased(tmp_path, KEPT, 3, 4)
        if place != "behind":
            work(made, *arguments)

    monkeypatch.setattr(Made, name, with_an_erasure)
    carry_out(order(tmp_path))
    assert raced
    assert words(tmp_path) == []
    assert rows(tmp_path, KEPT) == [(1, "aa"), (2, "bb")]


def test_a_lost_epoch_is_taken_back_behind_an_erasure(tmp_path: Path) -> None:
    """The newest epoch names a version of the tail of which files are erased. It can be read, and restored."""
    feeder = lived(tmp_path)
    erased(tmp_path, ORDERS, 3)
    newest = EpochsTable(tmp_path, FEED).newest()
    assert newest is not None
    file = write(tmp_path, ORDERS, Part.CHANGES, "4-a-0", [("s/0", 4, False, (9, "lost"))])
    feeder.sink.apply_epoch(manifest(4, (ORDERS,), delta(ORDERS, file)), 1)
    assert catchment.read(tmp_path, str(ORDERS.table)).arrow().num_rows == 2
    lake = DeltaLake(order(tmp_path), 10.0)
    assert lake.restore(newest, 2, None) == 4
    lake.must_hold(newest)
    assert rows(tmp_path) == [(1, "a"), (2, "bb")]
    feeder.sink = type(feeder.sink)(tmp_path, FEED)
    feeder.epoch = 4
    record = manifest(
        5,
        (ORDERS,),
        delta(ORDERS, write(tmp_path, ORDERS, Part.CHANGES, "5-a-0", [("s/0", 5, False, (9, "x"))])),
    )
    versions = feeder.sink.apply_epoch(record, 2)
    EpochsTable(tmp_path, FEED).append(record, Commit(5, "", 1, versions), 2)
    assert catchment.read(tmp_path, str(ORDERS.table)).arrow().num_rows == 3


def test_no_version_that_lacks_files_is_restored(tmp_path: Path) -> None:
    lived(tmp_path)
    erased(tmp_path, ORDERS, 3)
    log = DeltaLog(table_dir(tmp_path, ORDERS.table))
    with pytest.raises(SinkRestored, match="its log or files do not reach back to them"):
        take_back(log, epoch_app(FEED, ORDERS.table), 2)


class Killed(BaseException):
    """Ends an erasure where a process might be killed: nothing tidies up behind it."""


@pytest.mark.parametrize(
    "table", [ORDERS, KEPT, replace(ORDERS, mode=Mode.APPEND)], ids=lambda one: one.mode.value
)
def test_one_that_dies_anywhere_leaves_a_lake_that_reads_right_and_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: TableShape
) -> None:
    lived(tmp_path, table)
    for number in range(1, 30):
        left = [number]

        def die(at: Fault, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        monkeypatch.setattr(erasure, "from_environment", lambda die=die: die)
        try:
            erased(tmp_path, table, 3)
        except Killed:
            assert rows_of(tmp_path, table) == [(1, "a"), (2, "bb")], f"killed at place {number}"
        else:
            break
    assert number > 5
    assert words(tmp_path) == []
    assert rows_of(tmp_path, table) == [(1, "a"), (2, "bb")]


def rows_of(root: Path, table: TableShape) -> list[tuple[Any, ...]]:
    """What `catchment.read` sees."""
    found = catchment.read(root, str(table.table), origin=False).arrow().select(["id", "sig"]).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_attempts_that_lost_are_searched_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    lived(tmp_path)
    plain = table_dir(tmp_path, ORDERS.table)
    worn = next(path for path in plain.glob("*.parquet") if path in words(tmp_path))
    lost, torn = plain / "join-lost.parquet", plain / "join-torn.parquet"
    lost.write_bytes(worn.read_bytes())
    torn.write_bytes(b"PAR1 and no more")
    assert erased(tmp_path, ORDERS, 3).unreadable == (str(torn),)
    assert not lost.exists()
    torn.unlink()
    assert words(tmp_path) == []
    assert rows(tmp_path) == [(1, "a"), (2, "bb")]


def test_rows_that_wait_for_their_cut_go(tmp_path: Path) -> None:
    lived(tmp_path)
    LakeStage(tmp_path, FEED).put("feed-1-0", pa.table({"sig": [f"{WORD} 1"]}))
    LakeStage(tmp_path, "another").put("feed-1-0", pa.table({"sig": ["of another feed"]}))
    assert list(staged_dir(tmp_path, FEED).glob("*"))
    erased(tmp_path, ORDERS, 3)
    assert not list(staged_dir(tmp_path, FEED).glob("*"))
    assert list(staged_dir(tmp_path, "another").glob("*")), "its run waits for them"


def test_rows_of_later_epochs_stay(tmp_path: Path) -> None:
    """What is applied and not committed yet may be a row that came again."""
    feeder = lived(tmp_path)
    file = write(tmp_path, ORDERS, Part.CHANGES, "4-a-0", [("s/0", 4, False, (3, "back"))])
    assert erased(tmp_path, ORDERS, 3).newer == 1
    record = manifest(4, (ORDERS,), delta(ORDERS, file))
    versions = feeder.sink.apply_epoch(record, 1)
    assert erased(tmp_path, ORDERS, 3).newer == 1
    EpochsTable(tmp_path, FEED).append(record, Commit(4, "", 1, versions), 1)
    carry_out(order(tmp_path))
    assert rows(tmp_path) == [(1, "a"), (2, "bb"), (3, "back")]
    with pytest.raises(SinkError, match=r"the source has key number 1 of those given \(1 rows\)"):
        erased(tmp_path, ORDERS, 3)


def test_spellings_of_a_key(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    spellings = ("Zoë@x.org", "zoe@X.org ", "ZOE@x.org", "zo@x.org")
    for name in spellings:
        feeder.put(NAMED, (name, WORD))
    for name in spellings:
        feeder.put(NAMED, (name, None), deleted=True)
    with pytest.raises(SinkError, match=r"key number 2 of those given in another spelling"):
        erased(tmp_path, NAMED, "nobody", "zoe@x.org")
    assert erased(tmp_path, NAMED, "zoe@x.org", spelling=Spelling.EXACT).found == 0
    assert erased(tmp_path, NAMED, "zoe@x.org", spelling=Spelling.ANY).rows["tail"] == 6
    assert erased(tmp_path, NAMED, "zo@x.org", spelling=Spelling.EXACT).rows["tail"] == 2
    assert words(tmp_path) == []
