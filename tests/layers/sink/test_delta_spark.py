"""Plain tables by Delta's own reader in Spark: every version, what each changed, and tables of its catalog."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from catchment.api.views import spark_tables
from catchment.sink.delta.kept.choice import Past
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log import own_checkpoint
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.long_run import HOUR, TABLES, LongRun, own_clock
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, shape
from tests.layers.sink.test_change_data import carried_out
from tests.layers.sink.test_kept import version_of
from tests.layers.sink.test_model import SHAPES
from tests.layers.sink.test_settle import Rows, Settling
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
        monkeypatch.setattr(own_checkpoint, "INTERVAL", 4)
        for _ in range(16):
            run.turn(3600.0)
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
        gap = next(version + 1 for version in versions if version + 1 not in versions)
        with pytest.raises(AssertionError):
            delta.sql(f"SELECT * FROM delta.`{place}` VERSION AS OF {gap}")


def test_tables_of_the_catalog_follow_the_feed(tmp_path: Path, delta: DeltaSpark) -> None:
    feeder = Feeder(tmp_path / "it's a lake")
    again = shape("aga`in", {"id": INT, "sig": TEXT}, ("id",))
    again = replace(again, columns=(again.columns[0], replace(again.columns[1], physical="sig__1790000000")))
    for value in "ab":
        for table in (ORDERS, again):
            feeder.put(table, (1, value))
        feeder.epoch += 1
        feeder.commit((ORDERS, again))
        carry_out(UpkeepOrder(str(feeder.root), FEED, 1, 3600.0))
        if value == "a":
            for statement in spark_tables(feeder.root).split(";\n"):
                delta.sql(statement)
        for name in ("`orders`", "`aga``in`"):
            assert delta.sql(f"SELECT id, sig FROM `shop`.{name}").to_pylist() == [{"id": 1, "sig": value}]
