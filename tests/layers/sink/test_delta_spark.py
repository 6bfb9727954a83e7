"""Plain tables by Delta's own reader in Spark: every version, what each changed, and tables of its catalog."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from catchment.api.views import spark_tables
from catchment.model.treatment import Mode
from catchment.sink.delta.kept.choice import Past
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.long_run import HOUR, TABLES, LongRun, own_clock
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, shape
from tests.layers.sink.test_arranged import ARRANGEMENTS, TABLE, Arranged
from tests.layers.sink.test_change_data import carried_out
from tests.layers.sink.test_kept import version_of
from tests.layers.sink.test_maintained import Maintained
from tests.layers.sink.test_model import SHAPES
from tests.layers.sink.test_settle import Rows, Settling, by_delta_rs
from tests.world.delta_scan import DeltaScan
from tests.world.delta_spark import DeltaSpark
from tests.world.settled import carry_out

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSpark]:
    with DeltaSpark(str(tmp_path_factory.mktemp("spark"))) as spark:
        yield spark


def _rows(found: list[dict[str, Any]]) -> Rows:
    return sorted((tuple(row.values()) for row in found), key=repr)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("vectors", [True, False])
def test_every_version_and_what_it_changed(
    tmp_path: Path, delta: DeltaSpark, kind: str, vectors: bool
) -> None:
    world = Settling(tmp_path, kind, Form(vectors, changes=True))
    world.turn(random.Random(f"{kind} {vectors}"), 16)
    before: Rows = []
    for version in sorted(world.exact):
        rows = delta.sql(f"SELECT * FROM delta.`{world.plain}` VERSION AS OF {version}").to_pylist()
        assert _rows(rows) == world.expected(version), version
        told = delta.sql(
            f"SELECT * FROM table_changes_by_path('{world.plain}', {version}, {version})"
        ).to_pylist()
        assert carried_out(before, told) == world.expected(version), version
        before = world.expected(version)


def test_kept_versions_are_there(tmp_path: Path, delta: DeltaSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a vacuum of Spark, and while it finds nothing between them."""
    with own_clock(monkeypatch) as clock:
        order = UpkeepOrder(str(tmp_path), FEED, 1, 7200.0, past=Past(1000.0 * HOUR))
        run = LongRun(tmp_path, clock, random.Random(7), order)
        monkeypatch.setattr(checkpoint, "INTERVAL", 4)
        for _ in range(24):
            run.turn(1200.0)
        clock.seconds += 60 * HOUR
        run.epoch(*TABLES)
        run.keep_up()
        kept, place = run.kept(), table_dir(tmp_path, ORDERS.table)
        delta.sql(f"VACUUM delta.`{place}`")
        for epoch in kept:
            version = version_of(run, epoch, ORDERS)
            rows = delta.sql(f"SELECT * FROM delta.`{place}` VERSION AS OF {version}").to_pylist()
            assert _rows(rows) == sorted(run.rows(epoch, ORDERS), key=repr)
        versions = [version_of(run, epoch, ORDERS) for epoch in kept]
        gap = next(version for version in range(max(versions)) if version not in versions)
        with pytest.raises(AssertionError):
            delta.sql(f"SELECT * FROM delta.`{place}` VERSION AS OF {gap}")


def test_tables_of_the_catalog_follow_the_feed(tmp_path: Path, delta: DeltaSpark) -> None:
    feeder = Feeder(tmp_path / "it's a lake")
    again = shape("aga_in", {"id": INT, "sig": TEXT}, ("id",))
    again = replace(again, columns=(again.columns[0], replace(again.columns[1], physical="sig__1790000000")))
    for value in "ab":
        for table in (ORDERS, again):
            feeder.put(table, (1, value))
        feeder.epoch += 1
        feeder.commit((ORDERS, again))
        carry_out(UpkeepOrder(str(feeder.root), FEED, 1, 3600.0))
        if value == "a":
            for statement in filter(str.strip, spark_tables(feeder.root).split(";\n")):
                delta.sql(statement)
        for name in ("`orders`", "`aga_in`"):
            assert delta.sql(f"SELECT id, sig FROM `shop`.{name}").to_pylist() == [{"id": 1, "sig": value}]


MAINTAINED = ("OPTIMIZE {}", "REORG TABLE {} APPLY (PURGE)", "VACUUM {}")


@pytest.mark.parametrize("name", ["shards", "all"])
@pytest.mark.parametrize("mode", [Mode.MIRROR, Mode.HISTORY])
def test_spark_maintains_partitions(tmp_path: Path, delta: DeltaSpark, mode: Mode, name: str) -> None:
    """Its files lie in directories, and have the columns of the partition. polars refuses such a table."""
    table = Arranged(
        tmp_path, mode, random.Random(name), shape=replace(TABLE, arrangement=ARRANGEMENTS[name])
    )
    for _ in range(4):
        table.commit()
        table.settle()
    for statement in MAINTAINED:
        delta.run(statement.format(f"delta.`{table.plain}`"))
        table.commit()
        table.settle()
    assert any("=" in file.path for file in table.newest().files.values())
    log, app = DeltaLog(table.plain), f"catchment/{FEED}/{table.shape.table}"
    with DeltaScan() as judge:
        for version in range(table.newest().version + 1):
            on = log.at(version)
            assert on is not None
            wanted = table.exact[on.transactions[app]]
            found = by_delta_rs(table.plain, version).select(table.names)
            assert _rows(found.to_pylist()) == wanted, version
            assert _rows(judge.rows(table.plain, table.names, version).to_pylist()) == wanted, version
    newest = delta.sql(f"SELECT {', '.join(table.names)} FROM delta.`{table.plain}`")
    assert _rows(newest.to_pylist()) == wanted
    for epoch, rows in table.states.items():
        table.must_read(epoch, rows)


def _carried_out(delta: DeltaSpark, statement: str, _: Path) -> None:
    delta.run(statement)


@pytest.mark.parametrize("kind", ["datetime", "composite"])
def test_spark_maintains_tables(tmp_path: Path, delta: DeltaSpark, kind: str) -> None:
    world, rng = Maintained(tmp_path, kind, Form(changes=True)), random.Random(kind)
    for statement in (*MAINTAINED, "OPTIMIZE {} ZORDER BY (v)", "VACUUM {} LITE"):
        world.turn(rng, 3)
        asked = statement.format(f"delta.`{world.plain}`")
        world.maintain(partial(_carried_out, delta, asked))
    world.turn(rng, 3)
    world.must_be_exact_for_all()
    for version in rng.sample(sorted(world.exact), 4):
        rows = delta.sql(f"SELECT * FROM delta.`{world.plain}` VERSION AS OF {version}").to_pylist()
        assert _rows(rows) == world.expected(version), version


def test_what_spark_changes_is_taken_back(tmp_path: Path, delta: DeltaSpark) -> None:
    world, rng = Maintained(tmp_path, "int"), random.Random(8)
    for statement in ("DELETE FROM {} WHERE id > 5", "UPDATE {} SET v = 'theirs'"):
        for _ in range(3):
            world.turn(rng, 3)
        delta.run(statement.format(f"delta.`{world.plain}`"))
        world.apply(rng)
        world.settle()
    world.must_be_exact_for_all()
