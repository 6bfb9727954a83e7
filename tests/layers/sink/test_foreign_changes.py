"""Rows that other programs change in a plain table: the next settle takes that back, and says so."""

import logging
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from catchment.model.errors import SinkError
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.settler import Settler
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS
from tests.layers.sink.test_maintained import Maintained
from tests.layers.sink.test_model import SHARDS
from tests.layers.sink.test_settle import by_delta_rs

Change = Callable[[DeltaTable], object]


def _appended(table: DeltaTable) -> None:
    rows = pa.table({"_shard": ["s/0"], "_epoch": [1], "a": [1000], "v": ["theirs"], "b": ["x"]})
    write_deltalake(table, rows, mode="append")


def _merged(table: DeltaTable) -> None:
    rows = pa.table({"a": [0, 1]})
    merge = table.merge(rows, "t.a = s.a", source_alias="s", target_alias="t")
    merge.when_matched_delete().execute()


CHANGES: dict[str, Change] = {
    "DELETE": lambda table: table.delete("a > 0"),
    "UPDATE": lambda table: table.update(updates={"v": "'theirs'"}, predicate="a < 3"),
    "MERGE": _merged,
    "WRITE": _appended,
}


@pytest.fixture
def world(tmp_path: Path) -> Maintained:
    world, rng = Maintained(tmp_path, "pair"), random.Random(5)
    for _ in range(4):
        world.turn(rng, 3)
    return world


@pytest.mark.parametrize(
    "operation",
    ["DELETE", "UPDATE", *(pytest.param(name, marks=pytest.mark.wide) for name in ("MERGE", "WRITE"))],
)
def test_it_is_taken_back(world: Maintained, operation: str, caplog: pytest.LogCaptureFixture) -> None:
    rng, before = random.Random(operation), max(world.exact)
    world.prepare_join(rng)
    CHANGES[operation](DeltaTable(world.plain))
    DeltaTable(world.plain).optimize.compact()
    world.commit_join()
    assert DeltaTable(world.plain).version() <= before + 2, "a join passed over it"
    world.apply(rng)
    with caplog.at_level(logging.WARNING, "catchment"):
        world.settle()
    assert f"version {before + 1} ({operation} by delta-rs" in caplog.text
    assert "write to another table" in caplog.text
    assert max(world.exact) > before + 2
    world.must_be_exact_for_all()


def test_an_optimize_that_a_join_of_ours_came_before_is_taken_back(
    world: Maintained, caplog: pytest.LogCaptureFixture
) -> None:
    """delta-rs does not see that files were replaced by a commit that changed no row. It brings their rows twice."""
    rng, theirs = random.Random(9), DeltaTable(world.plain)
    _joined(world, rng)
    before = max(world.exact)
    theirs.optimize.compact()
    assert DeltaTable(world.plain).version() == before + 1, "delta-rs refuses it by now"
    world.apply(rng)
    with caplog.at_level(logging.WARNING, "catchment"):
        world.settle()
    assert f"version {before + 1} (OPTIMIZE by delta-rs" in caplog.text
    world.must_be_exact_for_all()


def test_an_optimize_that_a_settle_came_before_is_refused(world: Maintained) -> None:
    theirs = DeltaTable(world.plain)
    _touched(world)
    with pytest.raises(CommitFailedError, match="a concurrent transaction deleted data"):
        theirs.optimize.compact()
    world.must_be_exact_for_all()


def _touched(world: Maintained) -> None:
    """A settle after which a row of each file is dead."""
    copied = sorted({(shard, key) for shard in SHARDS for key in range(60)} - world.lake.uncopied)
    world.lake.apply([(shard, key, 5) for shard, key in copied], [])
    world.states[world.lake.epoch] = dict(world.lake.state)
    world.settle()


def _joined(world: Maintained, rng: random.Random) -> None:
    joins = world.joins
    while world.joins == joins:
        world.prepare_join(rng)
        world.commit_join()


def test_also_while_nothing_comes(world: Maintained) -> None:
    before = max(world.exact)
    CHANGES["DELETE"](DeltaTable(world.plain))
    world.settle()
    newest = DeltaTable(world.plain).version()
    assert newest == before + 2
    world.exact[newest] = world.exact[before]
    world.must_be_exact_for_all()


def test_what_they_restore_is_right_again(world: Maintained, caplog: pytest.LogCaptureFixture) -> None:
    before = max(world.exact)
    CHANGES["DELETE"](DeltaTable(world.plain))
    DeltaTable(world.plain).restore(before)
    with caplog.at_level(logging.WARNING, "catchment"):
        world.settle()
    assert not caplog.text
    world.exact[before + 2] = world.exact[before]
    assert DeltaTable(world.plain).version() == before + 2
    world.must_be_exact_for_all()


def test_what_cannot_be_taken_back_ends_settles(world: Maintained) -> None:
    on = DeltaLog(world.plain).newest()
    assert on is not None
    CHANGES["UPDATE"](DeltaTable(world.plain))
    DeltaTable(world.plain).vacuum(0, dry_run=False, enforce_retention_duration=False)
    world.apply(random.Random(6))
    with pytest.raises(SinkError, match=rf"version {on.version + 1} \(UPDATE by .* cannot be taken back"):
        world.settle()


def test_a_process_tells_its_runner(tmp_path: Path) -> None:
    feeder, settler = Feeder(tmp_path), Settler(str(tmp_path))
    order = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    plain, warned = table_dir(tmp_path, ORDERS.table), []
    try:
        for key in (1, 2, 3):
            feeder.put(ORDERS, (key, "x"))
            outcome = settler.order(order).outcome(None)
            assert outcome is not None
            assert outcome.code == 0
            warned.append(outcome.warned)
            if key == 1:
                DeltaTable(plain).delete()
    finally:
        settler.end()
    ((told,),) = filter(None, warned)
    assert warned[1] == (told,)
    assert told.startswith("shop.orders: version 1 (DELETE by delta-rs")
    assert sorted(by_delta_rs(plain, DeltaTable(plain).version())["id"].to_pylist()) == [1, 2, 3]
