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


def added(first: int, second: int) -> list[Alter]:
    """A column that the shards get at different epochs, during the copy."""
    statement = ADD.format("VARCHAR(20)")
    return [Alter(first, "-80", statement), Alter(second, "80-", statement)]


def small_trial(servers: Servers, schema: str, directory: Path) -> Trial:
    """The trial of `make test`. `test_not_blind.py` plants mistakes in this one."""
    return Trial(servers, schema, directory, seed=21, chunk_rows=8, loaded_rows=40, rate=6.0)


@pytest.mark.promise("every epoch equals the source at its cut, during and after the initial copy")
def test_every_epoch_of_a_copy_under_random_transactions_is_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    trial = small_trial(servers, fresh_schema(*servers.values()), tmp_path)
    trial.fill("orders", "extra")
    verdict = trial.run(epochs=8, rest_every=4, alters=added(2, 4), met=2)
    verdict.must_be_clean(trial.seed)
    assert verdict.copying >= 4
    assert verdict.rests >= 2
    assert verdict.readings >= 6
    assert verdict.plain >= 2


def test_columns_that_come_go_and_come_back_leave_every_epoch_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    schema = fresh_schema(*servers.values())
    trial = Trial(servers, schema, tmp_path, seed=23, chunk_rows=5, loaded_rows=40)
    trial.fill("orders", "extra")
    again = ADD.format("BIGINT AFTER amount")
    gone = [Alter(7, "80-", DROP), Alter(9, "-80", DROP)]
    back = [Alter(11, "-80", again), Alter(13, "80-", again)]
    verdict = trial.run(epochs=18, rest_every=6, alters=[*added(2, 4), *gone, *back], met=3)
    verdict.must_be_clean(trial.seed)
    assert verdict.copying >= 8
    assert verdict.readings >= 9
    assert verdict.plain >= 3
    assert verdict.told >= 1
    newest = EpochsTable(trial.feed.sink.path, trial.feed.name).newest()
    assert newest is not None
    (orders,) = (shape for shape in newest.manifest.shapes if shape.table.name == "orders")
    extras = [column for column in orders.columns if column.column.name == "extra"]
    assert [column.live for column in extras] == [False, True], "a name added again is a new physical column"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_300_epochs_are_exact(
    servers: Servers, spark: SparkContext, fresh_schema: Fresh, tmp_path: Path
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=22, chunk_rows=2, loaded_rows=700)
    trial.fill("orders", "extra")
    verdict = trial.run(epochs=300, rest_every=15, alters=added(30, 60))
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 300
    assert verdict.copying >= 150
    assert verdict.rests >= 20
    assert trial.beside.settles > 50
    assert verdict.plain > 100
    assert verdict.told > 100
