"""Every committed epoch of a live feed equals its source at the cut, during the copy and after it."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.exact.conftest import Servers
from tests.exact.trial import Trial

Fresh = Callable[..., str]


def test_every_epoch_of_a_copy_under_random_transactions_is_exact(
    servers: Servers, spark: SparkSession, fresh_schema: Fresh, tmp_path: Path
) -> None:
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=21)
    verdict = trial.run(epochs=40, rest_every=8)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 40
    assert verdict.copying >= 20
    assert verdict.rests >= 5
    assert trial.beside.folds > 5
