"""A lake in a bucket is read as one in a directory is: by every engine, at every epoch, row by row and as changes."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import catchment
from catchment.api.views import following_views, write_views
from catchment.model.epoch import TableShape
from catchment.model.errors import SinkError
from catchment.model.location import Location, ObjectPath, location
from catchment.sink.delta.layout import epoch_app, table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.model import FEED, ORDERS
from tests.layers.sink.test_erase import KEPT, erased, lived, words
from tests.layers.sink.test_open import Copied
from tests.layers.sink.test_settle import some_of
from tests.world.delta_scan import DeltaScan
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.server import S3Server
from tests.world.settled import carry_out, clean_feed

TABLE = "shop.orders"
COLUMNS = ("_shard", "_epoch", "id", "sig")


@pytest.fixture
def root(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectPath]:
    """Where a lake comes to lie."""
    with in_environment(bucket, monkeypatch):
        place = location(f"s3://{bucket.name}/our/lake")
        assert isinstance(place, ObjectPath)
        yield place


def as_files(root: ObjectPath, server: S3Server) -> Path:
    """The directory where the server has the lake's objects."""
    return server.root / root.store.partition("://")[2] / root.key


def copied(root: ObjectPath, rng: random.Random) -> Copied:
    place: Any = root  # tests of directories have more of a path's methods
    return Copied(place, rng)


def settle(root: Location) -> None:
    carry_out(UpkeepOrder(str(root), FEED, 1, 3600.0, form=Form(changes=True)))


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in COLUMNS) for row in table.to_pylist())


def test_a_lake_in_a_bucket(root: ObjectPath, s3_server: S3Server) -> None:
    rng = random.Random(7)
    table = copied(root, rng)
    for number in range(12):
        table.commit()
        if number % 2:
            settle(root)
    read_back: list[int] = []
    asked = list(table.states)[::4]
    for epoch in asked:
        state = catchment.read(root, TABLE, epoch)
        assert rows_of(state.arrow()) == table.expected(epoch)
        assert rows_of(state.duckdb().to_arrow_table()) == table.expected(epoch)
        read_back.append(state.polars().height)
    assert read_back == [len(table.states[epoch]) for epoch in asked]
    with duckdb.connect() as connection:
        state = catchment.read(str(root), TABLE)
        assert state.duckdb(connection).aggregate("count(*)").fetchall() == [(len(table.state),)]
        assert state.duckdb(connection).aggregate("count(*)").fetchall() == [(len(table.state),)]
    settle(root)
    changes = catchment.changes(root, TABLE).arrow().to_pylist()
    assert sorted((row["_shard"], row["id"]) for row in changes) == sorted(table.state)
    assert str(root) in following_views(root)
    with pytest.raises(SinkError, match="no file of views"):
        write_views(root)
    _must_be_right_at_every_version(root, s3_server, table)


def _must_be_right_at_every_version(root: ObjectPath, server: S3Server, table: Copied) -> None:
    """As readers have it that know Delta alone: DuckDB reads the server's files, delta-rs its objects."""
    plain = table_dir(root, ORDERS.table)
    app = epoch_app(FEED, ORDERS.table)
    log = DeltaLog(plain)
    newest = log.newest()
    assert newest is not None
    assert newest.version >= 3
    with DeltaScan() as scan:
        for version in some_of(range(newest.version + 1), 3):
            then = log.at(version)
            assert then is not None
            expected = table.expected(then.transactions[app])
            there = table_dir(as_files(root, server), ORDERS.table)
            assert rows_of(scan.rows(there, COLUMNS, version)) == expected
            held = DeltaTable(str(plain), version=version, storage_options={"allow_http": "true"})
            found = QueryBuilder().register("t", held).execute("SELECT * FROM t").read_all()
            assert rows_of(pa.table(found)) == expected


def test_what_nobody_needs_goes(
    root: ObjectPath, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copied(root, random.Random(8))
    for _ in range(8):
        table.commit()
        settle(root)
    files = as_files(root, s3_server)
    before = sum(1 for path in files.rglob("*.parquet") if path.is_file())
    clean_feed(root, FEED, Keeping(3600, 3600))
    assert sum(1 for path in files.rglob("*.parquet") if path.is_file()) == before
    later = time.time() + 8 * 3600
    monkeypatch.setattr("time.time", lambda: later)
    monkeypatch.setattr("catchment.world.now_us", lambda: round(later * 1e6))
    deleted = clean_feed(root, FEED, Keeping(0, 60))
    assert deleted > 5
    assert sum(1 for path in files.rglob("*.parquet") if path.is_file()) < before - 5
    assert rows_of(catchment.read(root, TABLE).arrow()) == table.expected(table.feeder.epoch)


@pytest.mark.parametrize("table", [ORDERS, KEPT], ids=["mirror", "soft_delete"])
def test_erased_rows_leave_a_bucket(root: ObjectPath, s3_server: S3Server, table: TableShape) -> None:
    place: Any = root
    lived(place, table)
    files = as_files(root, s3_server)
    DeltaTable(str(table_dir(root, table.table)), storage_options={"allow_http": "true"}).create_checkpoint()
    assert words(files)
    assert erased(place, table, 3).deleted > 0
    assert words(files) == []
    assert sorted(catchment.read(root, TABLE, origin=False).polars().rows()) == [(1, "a"), (2, "bb")]


def test_who_may_not_read_a_bucket_is_told_of_access_and_not_to_put_back_a_copy(
    root: ObjectPath, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(root, random.Random(3))
    log = table_dir(root, ORDERS.table)
    with (
        in_environment(replace(bucket, secret_key="wrong"), monkeypatch),
        pytest.raises(SinkError, match=r"no access to the lake: .*; give this user the right") as raised,
    ):
        DeltaLog(log).newest()
    assert "put back" not in str(raised.value)
    assert bucket.access_key not in str(raised.value)
