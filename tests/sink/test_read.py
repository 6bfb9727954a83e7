"""Reading a lake as of an epoch: every engine the same rows, columns as the source had them at that epoch."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from catchment.api.read import read, tables_at
from catchment.api.views import views, write_views
from catchment.flow.sink.apply import DeltaSink
from catchment.flow.sink.epochs import EpochsTable
from catchment.flow.sink.fold import fold
from catchment.flow.sink.layout import PART, delta_schema, table_dir
from catchment.flow.sink.tables import create_table
from catchment.model.epoch import Commit, LakeColumn, Part, TableDelta, TableShape
from catchment.model.errors import ConfigError
from catchment.model.table import Column, ColumnType, Kind, TableId
from tests.sink.model import FEED, INT, ORDERS, TEXT, Row, delta, manifest, shape, write

EVERY_TYPE = {
    "tiny": ColumnType(Kind.TINYINT),
    "small": ColumnType(Kind.TINYINT, unsigned=True),
    "int": ColumnType(Kind.INT),
    "big": ColumnType(Kind.BIGINT, unsigned=True),
    "single": ColumnType(Kind.FLOAT),
    "double": ColumnType(Kind.DOUBLE),
    "decimal": ColumnType(Kind.DECIMAL, length=38, scale=10),
    "bit": ColumnType(Kind.BIT, length=64),
    "year": ColumnType(Kind.YEAR),
    "date": ColumnType(Kind.DATE),
    "time": ColumnType(Kind.TIME, scale=6),
    "datetime": ColumnType(Kind.DATETIME, scale=6),
    "timestamp": ColumnType(Kind.TIMESTAMP, scale=6),
    "text": TEXT,
    "blob": ColumnType(Kind.BLOB),
    "fixed": ColumnType(Kind.BINARY, length=4),
    "label": ColumnType(Kind.ENUM, charset="utf8mb4", labels=("a", "b")),
}


class Feeder:
    """Commits epochs with rows of one or more tables."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sink = DeltaSink(root, FEED)
        self.epoch = 0

    def commit(self, shapes: tuple[TableShape, ...], *deltas: TableDelta) -> None:
        for added in deltas:  # a feed begins with all its tables; here they come one by one
            create_table(table_dir(self.root, added.shape.table), delta_schema(added.shape), [PART], FEED)
        record = manifest(self.epoch, shapes, *deltas)
        versions = self.sink.apply_epoch(record, 1)
        EpochsTable(self.root, FEED).append(record, Commit(self.epoch, record.digest(), 1, versions), 1)

    def put(self, table: TableShape, *rows: Row, part: Part = Part.CHANGES, deleted: bool = False) -> None:
        self.epoch += 1
        tagged = [("s/0", self.epoch, deleted, row) for row in rows]
        self.commit((table,), delta(table, write(self.root, table, part, f"{self.epoch}-a-0", tagged)))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.fixture
def feeder(tmp_path: Path) -> Feeder:
    """Epoch 1 copies rows 1 to 3; epoch 2 changes row 2; epoch 3 deletes row 3."""
    feeder = Feeder(tmp_path / "la[ke] of *'q' 100%")
    feeder.put(ORDERS, (1, "a"), (2, "b"), (3, "c"), part=Part.BASE)
    feeder.put(ORDERS, (2, "B"))
    feeder.put(ORDERS, (3, None), deleted=True)
    return feeder


def test_as_of_each_epoch(feeder: Feeder) -> None:
    expected: dict[int | None, list[tuple[Any, ...]]] = {
        1: [(1, "a"), (2, "b"), (3, "c")],
        2: [(1, "a"), (2, "B"), (3, "c")],
        3: [(1, "a"), (2, "B")],
        None: [(1, "a"), (2, "B")],
    }
    for epoch, rows in expected.items():
        state = read(feeder.root, "shop.orders", epoch, origin=False)
        assert rows_of(state.arrow()) == rows
        assert rows_of(state.polars().to_arrow()) == rows
        assert sorted(state.duckdb().fetchall()) == rows
    tagged = read(feeder.root, "shop.orders", 2).arrow()
    assert tagged.column_names == ["_shard", "_epoch", "id", "sig"]
    assert ("s/0", 2, 2, "B") in rows_of(tagged)
    assert tables_at(feeder.root, 2) == {"shop.orders": 2}


def test_what_was_never_committed_is_named(feeder: Feeder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="epoch 9"):
        read(feeder.root, "shop.orders", 9)
    with pytest.raises(ConfigError, match=r"no table shop\.nothing.*shop\.orders"):
        read(feeder.root, "shop.nothing")
    with pytest.raises(ConfigError, match=r"of the form schema\.name: 'orders'"):
        read(feeder.root, "orders")
    with pytest.raises(ConfigError, match="no committed epoch"):
        read(tmp_path / "elsewhere", "shop.orders")


def test_columns_come_and_go(tmp_path: Path) -> None:
    """ADD x; DROP sig; ADD sig again, of another type: a new physical column, null in older rows."""
    feeder = Feeder(tmp_path)
    feeder.put(ORDERS, (1, "a"), part=Part.BASE)
    added = TableShape(ORDERS.table, (*ORDERS.columns, LakeColumn(Column("x", INT), "x")), ORDERS.key)
    feeder.epoch += 1
    feeder.commit((added,), delta(added))  # no file has the column yet
    feeder.put(added, (2, "b", 20))
    dead = LakeColumn(ORDERS.columns[1].column, "sig", live=False)
    again = LakeColumn(Column("sig", INT), "sig@2")
    renewed = TableShape(ORDERS.table, (ORDERS.columns[0], dead, added.columns[2], again), ORDERS.key)
    feeder.put(renewed, (3, None, 30, 33))
    fold(tmp_path, renewed, FEED, 1)
    feeder.epoch += 1
    feeder.commit((renewed,), delta(renewed))
    expected: dict[int, tuple[list[str], list[tuple[Any, ...]]]] = {
        1: (["id", "sig"], [(1, "a")]),
        2: (["id", "sig", "x"], [(1, "a", None)]),
        3: (["id", "sig", "x"], [(1, "a", None), (2, "b", 20)]),
        4: (["id", "x", "sig"], [(1, None, None), (2, 20, None), (3, 30, 33)]),
        5: (["id", "x", "sig"], [(1, None, None), (2, 20, None), (3, 30, 33)]),
    }
    for epoch, (names, rows) in expected.items():
        table = read(tmp_path, "shop.orders", epoch, origin=False).arrow()
        assert (table.column_names, rows_of(table)) == (names, rows)


def test_views_are_a_snapshot_that_runs(feeder: Feeder) -> None:
    path = write_views(feeder.root)
    with duckdb.connect() as connection:
        connection.execute(path.read_text())
        assert connection.sql("SELECT id, sig FROM shop.orders ORDER BY 1").fetchall() == [(1, "a"), (2, "B")]
        connection.execute(views(feeder.root, 1))
        assert connection.sql("SELECT count(*) FROM shop.orders").fetchall() == [(3,)]
    assert "snapshot" in path.read_text()
    assert list(path.parent.glob("*.new")) == []


def test_views_of_names_that_are_one_in_duckdb_are_refused(feeder: Feeder) -> None:
    upper = shape("Orders", {"id": INT}, ("id",))
    feeder.epoch += 1
    feeder.commit((ORDERS, upper), delta(ORDERS), delta(upper))
    with pytest.raises(ConfigError, match=r"shop\.Orders and shop\.orders would be one view"):
        views(feeder.root)
    of_its_own = TableShape(TableId("memory", "t"), upper.columns, upper.key)
    feeder.put(of_its_own, (1,))
    with pytest.raises(ConfigError, match="DuckDB has a database or schema memory"):
        views(feeder.root)


def test_a_collation_of_the_readers_session_joins_no_keys(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    texts = shape("texts", {"k": TEXT, "v": INT}, ("k",))
    feeder.put(texts, ("a", 1), ("A", 1), part=Part.BASE)
    feeder.put(texts, ("A", 2))
    feeder.put(texts, ("A", 3))
    with duckdb.connect() as connection:
        connection.execute("SET default_collation = 'NOCASE'")
        found = read(tmp_path, "shop.texts", origin=False).duckdb(connection).fetchall()
    assert sorted(found) == [("A", 3), ("a", 1)]


def typed_rows() -> list[Row]:
    from datetime import UTC, date, datetime
    from decimal import Decimal

    when = datetime(2024, 2, 29, 23, 59, 59, 999999)
    full = (
        *(-128, 255, -(1 << 31), Decimal((1 << 64) - 1), 0.1, 0.1, Decimal("-12345.0123456789")),
        *(Decimal(1 << 63), 2155, date(1000, 1, 1), -3020399000000, when, when.replace(tzinfo=UTC)),
        *("snow ☃ \0 end", b"\0\xff", b"ab\0\0", "a"),
    )
    early = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    other = (*full[:9], date(9999, 12, 31), 0, datetime(1000, 1, 1), early, *full[13:])
    return [(1, *full), (2, *other), (3, *([None] * len(full)))]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = (
        builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_every_type_in_every_engine(tmp_path: Path, spark: SparkSession) -> None:
    columns = {"k {e}`y": INT, **EVERY_TYPE}
    table = TableShape(
        TableId("shop", "types"), tuple(LakeColumn(Column(n, t), n) for n, t in columns.items()), ("k {e}`y",)
    )
    feeder = Feeder(tmp_path)
    feeder.put(table, *typed_rows()[:2], part=Part.BASE)
    feeder.put(table, typed_rows()[2], typed_rows()[1])
    state = read(tmp_path, "shop.types", origin=False)
    expected = state.arrow()
    assert rows_of(expected)[0][0] == 1
    assert expected.num_rows == 3
    frame = state.spark(spark)
    assert frame.columns == list(columns)
    assert rows_of(frame.toArrow().cast(expected.schema)) == rows_of(expected)
    from_python = pa.Table.from_arrays(
        [
            pa.array(list(c), f.type)
            for c, f in zip(zip(*typed_rows(), strict=True), expected.schema, strict=True)
        ],
        schema=expected.schema,
    )
    assert rows_of(from_python) == rows_of(expected)
    old = read(tmp_path, "shop.types", 1, origin=True).spark(spark)
    assert old.count() == 2
    assert old.columns[:2] == ["_shard", "_epoch"]


def test_no_name_of_a_column_is_taken_for_one_of_the_rule(tmp_path: Path, spark: SparkSession) -> None:
    """Nor a path for a pattern."""
    feeder = Feeder(tmp_path / "a [1] {b,c} *?")
    names = ("c", "b", "n", "r", "_newest", "base", "changes")
    odd = shape("odd", dict.fromkeys(names, INT), names[:2])
    feeder.put(odd, (1, 1, *range(5)), (2, 2, *range(5)), part=Part.BASE)
    feeder.put(odd, (2, 2, *[8] * 5))
    feeder.put(odd, (2, 2, *[9] * 5), (3, 3, *[9] * 5))
    state = read(feeder.root, "shop.odd", origin=False)
    expected = [(1, 1, 0, 1, 2, 3, 4), (2, 2, *[9] * 5), (3, 3, *[9] * 5)]
    assert sorted(state.duckdb().fetchall()) == expected
    assert sorted(map(tuple, state.spark(spark).collect())) == expected
