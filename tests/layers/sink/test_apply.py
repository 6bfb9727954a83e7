"""An epoch is applied exactly once, by the newest runner only, whoever wakes up when."""

import datetime as dt
import errno
import json
import os
import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from catchment import world
from catchment.model.epoch import DataFile, LakeColumn, Part, TableDelta
from catchment.model.errors import LeaseLost, SinkError
from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.sink.delta.layout import EPOCH, SHARD, delta_schema, directory_name, tail_dir
from catchment.sink.delta.log.commit import create_table
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.statistics import delta_stats
from catchment.sink.delta.tail.apply import DeltaSink
from tests.layers.sink.endurance import Passing, questions
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, delta, manifest, shape, write


def changes(root: Path, epoch: int, *ids: int, attempt: str = "a") -> DataFile:
    rows = [("s/0", epoch, False, (i, f"v{epoch}")) for i in ids]
    return write(root, ORDERS, Part.CHANGES, f"{epoch}-{attempt}-0", rows)


def paths(root: Path) -> set[str]:
    table = DeltaTable(tail_dir(root, ORDERS.table))
    return {uri.rsplit("/", 1)[1] for uri in table.file_uris()}


def test_replay_commits_nothing(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    first = sink.apply(delta(ORDERS, changes(tmp_path, 7, 1)), 7, 1)
    second = sink.apply(delta(ORDERS, changes(tmp_path, 8, 2)), 8, 1)
    again = delta(ORDERS, changes(tmp_path, 7, 1, attempt="b"))
    assert sink.apply(again, 7, 1) == first
    assert DeltaSink(tmp_path, FEED).apply(again, 7, 2) == first
    assert (
        DeltaSink(tmp_path, FEED).apply(delta(ORDERS, changes(tmp_path, 8, 2, attempt="b")), 8, 1) == second
    )
    assert paths(tmp_path) == {"7-a-0.parquet", "8-a-0.parquet"}


def test_older_fence_is_refused(tmp_path: Path) -> None:
    frozen, runner = DeltaSink(tmp_path, FEED), DeltaSink(tmp_path, FEED)
    frozen.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1)
    runner.apply(delta(ORDERS, changes(tmp_path, 2, 2)), 2, 2)
    with pytest.raises(LeaseLost, match="fence 2"):
        frozen.apply(delta(ORDERS, changes(tmp_path, 3, 3)), 3, 1)
    assert paths(tmp_path) == {"1-a-0.parquet", "2-a-0.parquet"}


class _Interrupted(DeltaSink):
    """Runs `meanwhile` once, between the checks and the commit."""

    def __init__(self, root: Path, meanwhile: object) -> None:
        super().__init__(root, FEED)
        self.meanwhile = meanwhile

    def _commit(self, on: Snapshot, delta: TableDelta, epoch: int, fence: int) -> int | None:
        if callable(self.meanwhile):
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super()._commit(on, delta, epoch, fence)


def test_same_epoch_between_check_and_commit(tmp_path: Path) -> None:
    """The other one wins; the loser starts over, sees the epoch and returns the winner's version."""
    winner = DeltaSink(tmp_path, FEED)
    create_table(DeltaLog(tail_dir(tmp_path, ORDERS.table)), delta_schema(ORDERS), ["_part"])
    seen: list[int] = []
    loser = _Interrupted(
        tmp_path, lambda: seen.append(winner.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1))
    )
    version = loser.apply(delta(ORDERS, changes(tmp_path, 1, 1, attempt="b")), 1, 1)
    assert [version] == seen
    assert paths(tmp_path) == {"1-a-0.parquet"}


def test_taken_over_between_check_and_commit(tmp_path: Path) -> None:
    runner = DeltaSink(tmp_path, FEED)
    create_table(DeltaLog(tail_dir(tmp_path, ORDERS.table)), delta_schema(ORDERS), ["_part"])
    frozen = _Interrupted(tmp_path, lambda: runner.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 2))
    with pytest.raises(LeaseLost):
        frozen.apply(delta(ORDERS, changes(tmp_path, 2, 1, attempt="b")), 2, 1)
    assert paths(tmp_path) == {"1-a-0.parquet"}


def test_a_commit_refused_for_its_own_reason_is_no_conflict(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    create_table(DeltaLog(tail_dir(tmp_path, ORDERS.table)), delta_schema(ORDERS), ["_part"])
    bad = DataFile("_part=changes/x.parquet", 1, 1, Part.CHANGES, "{not json")
    log = tail_dir(tmp_path, ORDERS.table) / "_delta_log"
    sink.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1)
    (log / f"{2:020d}.json").mkdir()  # nobody can commit this version
    with pytest.raises(SinkError):
        sink.apply(delta(ORDERS, bad), 2, 1)


@pytest.mark.parametrize("flushes", [0, 1])
def test_a_flush_that_fails_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushes: int
) -> None:
    """Of the entry, or of its name. Tried again, the commit may be found done; it must not count before it is on the
    disk.
    """
    sink = DeltaSink(tmp_path, FEED)
    sink.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1)
    file = changes(tmp_path, 2, 2)
    flush, seen = os.fsync, 0

    def fail_once(handle: int) -> None:
        nonlocal seen
        seen += 1
        if seen == flushes + 1:
            raise OSError(errno.EIO, "Input/output error")
        flush(handle)

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(SinkError, match="cannot commit"):
        sink.apply(delta(ORDERS, file), 2, 1)
    assert sink.apply(delta(ORDERS, file), 2, 1) == 2
    assert seen == flushes + 1 + 2, "of the entry and of its name"


def test_crash_between_two_tables(tmp_path: Path) -> None:
    other = shape("items", {"id": INT, "sig": TEXT}, ("id",))
    rows = [("s/0", 1, False, (1, "x"))]
    deltas = (
        delta(ORDERS, write(tmp_path, ORDERS, Part.CHANGES, "1-a-0", rows)),
        delta(other, write(tmp_path, other, Part.CHANGES, "1-a-0", rows)),
    )
    applied = DeltaSink(tmp_path, FEED).apply(deltas[0], 1, 1)  # then the runner dies
    versions = DeltaSink(tmp_path, FEED).apply_epoch(manifest(1, (ORDERS, other), *deltas), 2)
    assert versions["shop.orders"] == applied
    assert versions["shop.items"] == 1
    assert len(paths(tmp_path)) == 1


def test_a_table_of_another_feed_is_refused_and_its_owner_named(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    sink.apply_epoch(manifest(1, (ORDERS,), delta(ORDERS, changes(tmp_path, 1, 1))), 1)
    other = shape("items", {"id": INT}, ("id",))
    second = DeltaSink(tmp_path, "renamed")
    begin = manifest(7, (ORDERS, other), delta(other), delta(ORDERS), feed="renamed")
    begin = msgspec.structs.replace(begin, previous=0)
    for _ in range(2):  # the state store holds the manifest: the next start applies it again
        with pytest.raises(SinkError, match=r"feed shop's.*renamed.*another sink\.path") as raised:
            second.apply_epoch(begin, 1)
        assert "remove" not in str(raised.value), "it has the rows of another feed"
    assert not tail_dir(tmp_path, other.table).exists(), "refused before any commit"
    with pytest.raises(SinkError, match="feed shop's"):
        second.apply(delta(ORDERS, changes(tmp_path, 8, 1)), 8, 1)
    assert paths(tmp_path) == {"1-a-0.parquet"}
    shutil.rmtree(tail_dir(tmp_path, ORDERS.table))
    assert second.apply_epoch(begin, 1) == {"shop.orders": 1, "shop.items": 1}


def test_a_feed_does_not_begin_where_rows_stand(tmp_path: Path) -> None:
    """State store and epochs table are lost; or another program's table is there."""
    DeltaSink(tmp_path, FEED).apply_epoch(manifest(1, (ORDERS,), delta(ORDERS)), 1)
    again = msgspec.structs.replace(manifest(9, (ORDERS,), delta(ORDERS)), previous=0)
    with pytest.raises(SinkError, match=r"begins, but.*put those back.*remove that directory"):
        DeltaSink(tmp_path, FEED).apply_epoch(again, 1)
    rows = pa.table({"id": [1]})
    write_deltalake(tmp_path / "shop" / "items", rows)
    items = shape("items", {"id": INT}, ("id",))
    with pytest.raises(SinkError, match="of another program") as raised:
        DeltaSink(tmp_path, FEED).apply_epoch(manifest(1, (items,), delta(items)), 1)
    assert "remove" not in str(raised.value)
    write_deltalake(tmp_path / "mine" / "shop" / "orders", rows)
    (log,) = (tmp_path / "mine" / "shop" / "orders" / "_delta_log").glob("*.json")
    log.write_text(log.read_text().replace('"configuration":{', '"configuration":{"catchment.feed":"other"'))
    with pytest.raises(SinkError, match="is feed other's") as raised:
        DeltaSink(tmp_path / "mine", FEED).apply_epoch(manifest(1, (ORDERS,), delta(ORDERS)), 1)
    assert "remove" not in str(raised.value)


def test_a_table_that_is_lost_is_not_made_anew(tmp_path: Path) -> None:
    other = shape("items", {"id": INT}, ("id",))
    shapes = (ORDERS, other)
    DeltaSink(tmp_path, FEED).apply_epoch(
        manifest(1, shapes, delta(ORDERS, changes(tmp_path, 1, 1)), delta(other)), 1
    )
    sink = DeltaSink(tmp_path, FEED)
    sink.apply_epoch(manifest(2, shapes, delta(ORDERS, changes(tmp_path, 2, 2))), 1)
    shutil.rmtree(tail_dir(tmp_path, ORDERS.table))
    touched = manifest(3, shapes, delta(ORDERS, changes(tmp_path, 3, 3)))
    for at_work in (sink, DeltaSink(tmp_path, FEED)):
        with pytest.raises(SinkError, match=r"shop\.orders"):
            at_work.apply_epoch(touched, 1)
    with pytest.raises(SinkError, match=r"shop\.orders.*is gone"):
        DeltaSink(tmp_path, FEED).apply_epoch(manifest(3, shapes, delta(other)), 1)
    assert not (tail_dir(tmp_path, ORDERS.table) / "_delta_log").exists()


def test_untouched_table_keeps_its_version(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    shapes = (ORDERS,)
    first = sink.apply_epoch(manifest(1, shapes, delta(ORDERS, changes(tmp_path, 1, 1))), 1)
    assert sink.apply_epoch(manifest(2, shapes), 1) == first == {"shop.orders": 1}
    assert DeltaSink(tmp_path, FEED).apply_epoch(manifest(3, shapes), 1) == first


def test_untouched_tables_cost_nothing(tmp_path: Path) -> None:
    """However long they are: a runner knows what it has committed, its fence at least."""
    first = DeltaSink(tmp_path, FEED).apply_epoch(
        manifest(1, (ORDERS,), delta(ORDERS, changes(tmp_path, 1, 1))), 1
    )
    clock = Passing(3600.0)
    with world.instead(clock), questions() as asked:
        sink = DeltaSink(tmp_path, FEED)
        sink.take_over((ORDERS,), 2)
        before = asked()
        for epoch in (2, 3, 4):
            clock.seconds += 600.0
            assert sink.apply_epoch(manifest(epoch, (ORDERS,)), 2)["shop.orders"] == first["shop.orders"] + 1
        assert asked() == before > 0


def test_added_column(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    sink.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1)
    wider = shape("orders", {"id": INT, "sig": TEXT, "at": ColumnType(Kind.DATETIME, scale=6)}, ("id",))
    file = write(tmp_path, wider, Part.CHANGES, "2-a-0", [("s/0", 2, False, (2, "x", None))])
    version = sink.apply(delta(wider, file), 2, 1)
    table = DeltaTable(tail_dir(tmp_path, ORDERS.table))
    assert table.version() == version
    assert table.schema().to_arrow().names[-1] == "at"
    assert "timestampNtz" in (table.protocol().reader_features or [])
    retyped = shape("orders", {"id": INT, "sig": INT}, ("id",))
    with pytest.raises(SinkError, match="new physical column"):
        sink.apply(delta(retyped), 3, 1)


def test_dropped_column_stays(tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, FEED)
    sink.apply(delta(ORDERS, changes(tmp_path, 1, 1)), 1, 1)
    columns = (ORDERS.columns[0], LakeColumn(ORDERS.columns[1].column, "sig", live=False))
    renewed = LakeColumn(Column("sig", INT), "sig_2")
    again = type(ORDERS)(ORDERS.table, (*columns, renewed), ("id",))
    file = write(tmp_path, again, Part.CHANGES, "2-a-0", [("s/0", 2, False, (2, None, 9))])
    sink.apply(delta(again, file), 2, 1)
    names = DeltaTable(tail_dir(tmp_path, ORDERS.table)).schema().to_arrow().names
    assert names[-3:] == ["id", "sig", "sig_2"]


def test_statistics_are_bounds(tmp_path: Path) -> None:
    strings = shape("s", {"k": TEXT}, ("k",))
    long = "\U0010ffff" * 3 + "z" * 40
    file = write(tmp_path, strings, Part.BASE, "b", [("s/0", 3, False, (k,)) for k in ("a" * 50, long)])
    footer = pq.read_metadata(tail_dir(tmp_path, strings.table) / file.path)
    for stats in (file.stats, delta_stats(footer, (SHARD, EPOCH, "k"))):
        decoded = json.loads(stats)
        assert decoded["numRecords"] == 2
        assert decoded["minValues"] == {SHARD: "s/0", EPOCH: 3, "k": "a" * 32}
        assert decoded["maxValues"]["k"] > long
        assert len(decoded["maxValues"]["k"]) <= 32


def test_bounds_of_times_are_in_milliseconds(tmp_path: Path) -> None:
    """The least is rounded down and the largest up, which cannot be done with the last moment that Python knows."""
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
    early, later = dt.datetime(2026, 1, 1, 0, 0, 0, 1_999), dt.datetime(2026, 1, 1, 0, 0, 1, 1)
    rows = pa.table(
        {
            "local": pa.array([early, later], pa.timestamp("us")),
            "utc": pa.array([early, later], pa.timestamp("us", tz="UTC")),
            "last": pa.array([early, last], pa.timestamp("us")),
        }
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    stats = json.loads(delta_stats(pq.read_metadata(tmp_path / "t.parquet"), rows.column_names))
    assert stats["minValues"] == {
        "local": "2026-01-01T00:00:00.001",
        "utc": "2026-01-01T00:00:00.001Z",
        "last": "2026-01-01T00:00:00.001",
    }
    assert stats["maxValues"] == {"local": "2026-01-01T00:00:01.001", "utc": "2026-01-01T00:00:01.001Z"}


def test_names_become_directories(tmp_path: Path) -> None:
    names = ["_catchment", "a b", "a/b", "..", "A%20b", "straße", "x$y-z", "я" * 64, "я" * 63 + "э"]
    made = {directory_name(n) for n in names}
    assert len(made) == len(names)
    for name in names:
        odd = type(ORDERS)(TableId("_catchment", name), ORDERS.columns, ORDERS.key)
        file = write(tmp_path, odd, Part.CHANGES, "1-a-0", [("s/0", 1, False, (1, "x"))])
        assert DeltaSink(tmp_path, FEED).apply(delta(odd, file), 1, 1) == 1
    assert {p.name for p in (tmp_path / "_catchment" / "tail").iterdir()} == {"@005fcatchment"}


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    changes(tmp_path, 1, 1)
    with pytest.raises(SinkError, match="1-a-0"):
        changes(tmp_path, 1, 2)
    assert assert_rows(tmp_path) == 1


def assert_rows(root: Path) -> int:
    return int(pq.read_metadata(tail_dir(root, ORDERS.table) / "_part=changes/1-a-0.parquet").num_rows)
