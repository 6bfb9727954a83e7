"""Every committed epoch of a live feed equals its source at the cut, during the copy and after it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.promises.exact.conftest import Servers
from tests.promises.exact.trial import Alter, Trial

Fresh = Callable[..., str]

ADD = "ALTER TABLE orders ADD COLUMN extra VARCHAR(20)"


def added(first: int, second: int) -> list[Alter]:
    """A column that the shards get at different epochs, during the copy."""
    return [Alter(first, "-80", ADD), Alter(second, "80-", ADD)]


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
