"""Every epoch of a copy by marks or by snapshots is exact under random transactions, as of a copy that rewinds.

`make test` has what may happen between a SELECT and its cut (test_staged.py) and commits that are held meanwhile
(hidden/test_feed.py).
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.promises.exact.conftest import Servers
from tests.promises.exact.staging import staged
from tests.promises.exact.trial import Alter, Trial
from tests.world.marks import by, marks_allowed, sides

Fresh = Callable[..., str]

pytestmark = pytest.mark.mariadb(
    "MySQL tells no place in the log with a snapshot, and marks are not proven there"
)

ADDED = "ALTER TABLE orders ADD COLUMN extra VARCHAR(20)"


def must_be_exact(trial: Trial, copying: dict[str, str], epochs: int, met: int) -> None:
    """The verdict on so many epochs is clean, and no marks and no staged rows are left."""
    trial.fill("orders", "extra")
    alters = [Alter(2, "-80", ADDED), Alter(4, "80-", ADDED)]
    verdict = trial.run(epochs=epochs, rest_every=epochs // 2, alters=alters, met=met)
    verdict.must_be_clean(trial.seed)
    assert verdict.copying >= epochs // 2
    assert verdict.rests >= 2
    assert staged(trial.feed.sink.path) == []
    assert all(sides(server, copying["marks"]) == [] for server in trial.servers.values())


@pytest.mark.parametrize(
    ("strategy", "engine", "epochs"),
    [
        ("watermark", "local", 14),
        ("snapshot", "spark", 14),
        pytest.param("watermark", "spark", 40, marks=pytest.mark.long),
        pytest.param("snapshot", "local", 40, marks=pytest.mark.long),
    ],
)
def test_every_epoch_under_random_transactions_is_exact(
    servers: Servers,
    fresh_schema: Fresh,
    tmp_path: Path,
    spark: SparkContext,
    strategy: str,
    engine: str,
    epochs: int,
) -> None:
    schema, marks = (fresh_schema(*servers.values()) for _ in range(2))
    copying = by(strategy, marks_allowed(servers.values(), marks))
    trial = Trial(servers, schema, tmp_path, seed=42, chunk_rows=6, copying=copying, engine=engine)
    must_be_exact(trial, copying, epochs, met=4)
