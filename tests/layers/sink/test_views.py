"""Views of a whole lake: SQL text that runs wherever DuckDB stands, and needs no secret to be made."""

from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace

from catchment.api.views import following_views, views, write_views
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import ConfigError, SinkError
from catchment.model.table import TableId
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, delta, shape
from tests.layers.sink.test_read import settle
from tests.world.delta_scan import DeltaScan


def test_views_are_a_snapshot_that_runs(feeder: Feeder) -> None:
    path = write_views(feeder.root)
    with duckdb.connect() as connection:
        connection.execute(path.read_text())
        assert connection.sql("SELECT id, sig FROM shop.orders ORDER BY 1").fetchall() == [(1, "a"), (2, "B")]
        connection.execute(views(feeder.root, 1))
        assert connection.sql("SELECT count(*) FROM shop.orders").fetchall() == [(3,)]
    assert "snapshot" in path.read_text()
    assert list(path.parent.glob("*.new")) == []


def test_views_that_follow_the_feed(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "it's here")
    again = shape("again", {"id": INT, "sig": TEXT}, ("id",))
    columns = (again.columns[0], replace(again.columns[1], physical="sig__1790000000"))
    again = replace(again, columns=columns)
    feeder.put(again, (1, "a"))
    settle(feeder.root)
    script = following_views(feeder.root)
    with DeltaScan() as scan:
        first = scan.query(script, "SELECT * FROM shop.again")
        feeder.put(again, (1, "b"), (2, "c"))
        assert scan.query("", "SELECT * FROM shop.again") == first
        settle(feeder.root)
        then = scan.query("", "SELECT * FROM shop.again ORDER BY id")
    assert first.to_pylist() == [{"_shard": "s/0", "_epoch": 1, "id": 1, "sig": "a"}]
    assert then.to_pylist() == [
        {"_shard": "s/0", "_epoch": 2, "id": 1, "sig": "b"},
        {"_shard": "s/0", "_epoch": 2, "id": 2, "sig": "c"},
    ]


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


def test_views_of_a_relative_lake_hold_everywhere(feeder: Feeder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(feeder.root)
    path = write_views(".")
    monkeypatch.chdir("/")
    with duckdb.connect() as connection:
        connection.execute(path.read_text())
        assert connection.sql("SELECT count(*) FROM shop.orders").fetchall() == [(2,)]


def test_views_of_names_with_dots(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    dotted = [TableShape(TableId("a.b", name), ORDERS.columns, ORDERS.key) for name in ("c", "d.e")]
    feeder.epoch += 1
    feeder.commit(tuple(dotted), *map(delta, dotted))
    with duckdb.connect() as connection:
        connection.execute(views(tmp_path))
        assert connection.sql('SELECT count(*) FROM "a.b".c, "a.b"."d.e"').fetchall() == [(0,)]


def test_feeds_that_share_a_lake_have_their_own_views(feeder: Feeder) -> None:
    other = Feeder(feeder.root, "other")
    items = shape("items", {"id": INT}, ("id",))
    other.put(items, (7,), part=Part.BASE)
    mine, others = (write_views(feeder.root, feed=feed) for feed in (FEED, "other"))
    for path, table, count in ((mine, "orders", 2), (others, "items", 1)):
        with duckdb.connect() as connection:
            connection.execute(path.read_text())
            assert connection.sql(f"SELECT count(*) FROM shop.{table}").fetchall() == [(count,)]


def test_a_lake_where_nothing_can_be_written(feeder: Feeder) -> None:
    (feeder.root / "_catchment" / f"views-{FEED}.sql").mkdir()
    with pytest.raises(SinkError, match=rf"cannot write .*views-{FEED}\.sql: Is a directory"):
        write_views(feeder.root)
    assert list((feeder.root / "_catchment").glob("*.new")) == []
