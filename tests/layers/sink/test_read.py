"""Reading a lake as of an epoch: every engine the same rows, columns as the source had them at that epoch."""

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from catchment.api.read import read, tables_at
from catchment.api.views import views
from catchment.model.epoch import LakeColumn, Part, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.schema.shape import first_shape
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.lakes import files_of
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, Row, delta, shape, write
from tests.world.settled import carry_out

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


def settle(root: Path) -> None:
    carry_out(UpkeepOrder(str(root), FEED, 1, 3600.0))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


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


def test_a_settle_serves_readers_before_the_next_epoch(feeder: Feeder) -> None:
    before = files_of(read(feeder.root, "shop.orders"))
    settle(feeder.root)
    settled = files_of(read(feeder.root, "shop.orders"))
    assert (before.changes != (), settled.changes) == (True, ())
    assert (settled.epoch, rows_of(settled.arrow())) == (3, rows_of(before.arrow()))
    # An epoch of which the row is not written yet.
    feeder.epoch += 1
    file = write(feeder.root, ORDERS, Part.CHANGES, "4-a-0", [("s/0", 4, False, (9, "new"))])
    feeder.sink.apply(delta(ORDERS, file), 4, 1)
    assert rows_of(read(feeder.root, "shop.orders").arrow()) == rows_of(before.arrow())
    assert rows_of(read(feeder.root, "shop.orders", 2, origin=False).arrow()) == [
        (1, "a"),
        (2, "B"),
        (3, "c"),
    ]


def test_what_was_never_committed_is_named(feeder: Feeder, tmp_path: Path) -> None:
    missing, newest = epoch_text(9), epoch_text(3)
    with pytest.raises(
        ConfigError, match=f"{FEED} has not committed epoch {missing}; its newest is {newest}\\."
    ):
        read(feeder.root, "shop.orders", 9)
    with pytest.raises(ConfigError, match=r"no table shop\.nothing.*shop\.orders"):
        read(feeder.root, "shop.nothing")
    with pytest.raises(ConfigError, match=r"orders is not of the form schema\.name"):
        read(feeder.root, "orders")
    with pytest.raises(ConfigError, match="elsewhere: the lake has no committed epoch"):
        read(tmp_path / "elsewhere", "shop.orders")
    with pytest.raises(ConfigError, match=f"other has not committed any epoch; feeds that have: {FEED}$"):
        read(feeder.root, "shop.orders", feed="other")


def test_a_feed_file_is_read_without_its_secrets(feeder: Feeder) -> None:
    """A notebook has neither the passwords of the shards nor that of the state store."""
    file = feeder.root.parent / "feed.yaml"
    file.write_text(f"""
name: {FEED}
source:
  keyspace: shop
  shards:
    - {{name: "-80", host: db1, user: u, password: {{env: CATCHMENT_UNSET}}}}
    - {{name: "80-", host: db2, user: u, password: {{file: /absent/password}}}}
tables: [shop.*]
sink: {{path: "{feeder.root}"}}
state: {{env: CATCHMENT_UNSET}}
""")
    assert read(file, "shop.orders").arrow().num_rows == 2
    assert tables_at(file) == {"shop.orders": 3}
    assert views(file) == views(feeder.root)


def test_a_relative_lake_stays_where_it_is(feeder: Feeder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(feeder.root.parent)
    state = read(feeder.root.name, "shop.orders")
    rows = state.duckdb()
    monkeypatch.chdir("/")
    assert len(rows.fetchall()) == 2
    assert state.arrow().num_rows == 2


def test_a_table_is_found_whatever_dots_its_names_have(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    dotted = TableId("a.b", "c.d")
    feeder.put(TableShape(dotted, ORDERS.columns, ORDERS.key), (1, "a"))
    for name in ("a.b.c.d", dotted):
        assert read(tmp_path, name).arrow().num_rows == 1


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
    settle(tmp_path)
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


def types(root: Path) -> tuple[DeltaState, list[Row]]:
    """Every type, and the rows that stand there."""
    columns = {"k {e}`y": INT, **EVERY_TYPE}
    table = TableShape(
        TableId("shop", "types"), tuple(LakeColumn(Column(n, t), n) for n, t in columns.items()), ("k {e}`y",)
    )
    feeder = Feeder(root)
    feeder.put(table, *typed_rows()[:2], part=Part.BASE)
    feeder.put(table, typed_rows()[2], typed_rows()[1])
    return files_of(read(root, "shop.types", origin=False)), typed_rows()


def odd_names(root: Path) -> tuple[DeltaState, list[Row]]:
    """No name of a column is taken for one of the rule, nor a path for a pattern or a URL."""
    feeder = Feeder(root / "a [1]:{b,c} *?" / "x: 100%#é&'+ %zz")
    ruled = ("c", "b", "n", "r", "_newest", "base", "changes", "_metadata", "filename", "rowid")
    names = (*ruled, "s", "\u017f", "\u00b5", "\u03bc")  # of the last ones Spark takes two for one
    odd = first_shape(Table(TableId("shop", "odd"), tuple(Column(name, INT) for name in names), names[:2]))
    count = len(names) - 2
    feeder.put(odd, (1, 1, *range(count)), (2, 2, *range(count)), part=Part.BASE)
    feeder.put(odd, (2, 2, *[8] * count))
    feeder.put(odd, (2, 2, *[9] * count), (3, 3, *[9] * count))
    rows = [(1, 1, *range(count)), (2, 2, *[9] * count), (3, 3, *[9] * count)]
    return files_of(read(feeder.root, "shop.odd", origin=False)), rows


def mounted_elsewhere(root: Path) -> tuple[DeltaState, list[Row]]:
    """A path is not decoded. Delta's writers open no lake with such a one, but other mounts of it may have one."""
    feeder = Feeder(root / "lake")
    feeder.put(ORDERS, (1, "a"), part=Part.BASE)
    feeder.put(ORDERS, (2, "b"))
    state = files_of(read(feeder.root, "shop.orders", origin=False))
    moved = str(feeder.root.rename(root / "a%20b [c]:d"))
    base, changes = (
        tuple(f.replace(str(feeder.root), moved) for f in part) for part in (state.base, state.changes)
    )
    return msgspec.structs.replace(state, base=base, changes=changes), [(1, "a"), (2, "b")]


LAKES = {made.__name__: made for made in (types, odd_names, mounted_elsewhere)}


@pytest.mark.parametrize("name", LAKES)
def test_every_type_name_and_path(tmp_path: Path, name: str) -> None:
    state, rows = LAKES[name](tmp_path)
    expected = state.arrow()
    wanted = rows_of(pa.Table.from_pylist(_records(rows, expected.schema), expected.schema))
    assert rows_of(expected) == wanted
    assert rows_of(state.duckdb().to_arrow_table().cast(expected.schema)) == wanted
    assert rows_of(state.polars().to_arrow().cast(expected.schema)) == wanted


def test_spark_reads_every_type_name_and_path(tmp_path: Path, spark: SparkSession) -> None:
    for name, made in LAKES.items():
        state, rows = made(tmp_path / name)
        frame = state.spark(spark)
        schema = state.arrow().schema
        assert frame.columns == schema.names, name
        wanted = rows_of(pa.Table.from_pylist(_records(rows, schema), schema))
        assert rows_of(frame.toArrow().cast(schema)) == wanted, name
    old = read(tmp_path / "types", "shop.types", 1, origin=True).spark(spark)
    assert old.count() == 2
    assert old.columns[:2] == ["_shard", "_epoch"]


def _records(rows: list[Row], schema: pa.Schema) -> list[dict[str, Any]]:
    return [dict(zip(schema.names, row, strict=True)) for row in rows]
