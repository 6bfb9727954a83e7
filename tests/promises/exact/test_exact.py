"""Every committed epoch of a live feed equals its source at the cut, during the copy and after it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.conftest import Servers
from tests.promises.exact.trial import Alter, Trial

Fresh = Callable[..., str]

ADD = "ALTER TABLE orders ADD COLUMN extra {}"
DROP = "ALTER TABLE orders DROP COLUMN extra"


def _added(first: int, second: int) -> list[Alter]:
    """A column that the shards get at different epochs, during the copy."""
    added = ADD.format("VARCHAR(20)")
    return [Alter(first, "-80", added), Alter(second, "80-", added)]


def test_every_epoch_of_a_copy_under_random_transactions_is_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=21)
    trial.fill("orders", "extra")
    verdict = trial.run(epochs=40, rest_every=8, alters=_added(6, 14))
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 40
    assert verdict.copying >= 20
    assert verdict.rests >= 5
    assert verdict.readings > 20
    assert trial.beside.settles > 5
    assert verdict.plain > 10
    assert verdict.told > 10
    assert all(xa.committed > 5 and xa.rolled_back > 1 for xa in trial.xa)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_300_epochs_are_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=22, chunk_rows=2, loaded_rows=700)
    trial.fill("orders", "extra")
    verdict = trial.run(epochs=300, rest_every=15, alters=_added(30, 60))
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 300
    assert verdict.copying >= 150
    assert verdict.rests >= 20
    assert trial.beside.settles > 50
    assert verdict.plain > 100
    assert verdict.told > 100


@pytest.mark.wide
def test_columns_that_go_and_come_back_leave_every_epoch_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    schema = fresh_schema(*servers.values())
    trial = Trial(servers, schema, tmp_path, seed=23, chunk_rows=6)
    for server in servers.values():
        server.sql(ADD.format("VARCHAR(20)"), database=schema)
    trial.fill("orders", "extra")
    again = ADD.format("BIGINT AFTER amount")
    alters = [
        Alter(3, "80-", DROP),
        Alter(5, "-80", DROP),
        Alter(7, "-80", again),
        Alter(9, "80-", again),
    ]
    verdict = trial.run(epochs=12, rest_every=6, alters=alters)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 12
    assert verdict.copying >= 6
    newest = EpochsTable(trial.feed.sink.path, trial.feed.name).newest()
    assert newest is not None
    (orders,) = (shape for shape in newest.manifest.shapes if shape.table.name == "orders")
    extras = [column for column in orders.columns if column.column.name == "extra"]
    assert [column.live for column in extras] == [False, True], "a name added again is a new physical column"
