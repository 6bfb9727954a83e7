"""The judges of exactness see what they are there to see: each test breaks the feed in one place."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import SparkContext

from catchment.engine.spark import SparkEngine
from catchment.epoch.work import ChunkTask, Receipt, Task
from catchment.feed import loop
from catchment.model.position import LogOffset
from tests.promises.exact.conftest import Servers
from tests.promises.exact.trial import Trial
from tests.world.engines import all_far

Fresh = Callable[..., str]

pytestmark = pytest.mark.wide


def _unrewound(task: Task) -> Task:
    """A chunk as of the end of the log that its task reads, instead of as of the epoch."""
    if not isinstance(task, ChunkTask):
        return task
    return replace(task, epoch_at=LogOffset(f"{task.epoch_at.base}.999999", 4))


def test_chunks_that_are_not_brought_back_to_the_epoch_are_found(
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Fresh,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    each = SparkEngine.each

    def each_unrewound(engine: SparkEngine, work: Callable[..., Any], tasks: Sequence[Task]) -> list[Any]:
        return each(engine, work, [_unrewound(task) for task in tasks])

    def run_from_its_floor(task: Task) -> Receipt:
        # MySQL proves the epoch itself for floor; there is no log at this one
        from catchment.readers.run_task import run_task

        with patch("catchment.readers.copy.proven_floor", lambda endpoint, server, floor, cut, worth: floor):
            return run_task(task)

    all_far(monkeypatch)
    monkeypatch.setattr(SparkEngine, "each", each_unrewound)
    monkeypatch.setattr(loop, "run_task", run_from_its_floor)
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=31, chunk_rows=20, rate=8)
    verdict = trial.run(epochs=6, rest_every=6)
    with pytest.raises(AssertionError, match=r"seed 31:\nepoch \d+ .*by log: .*cut \{'-80'"):
        verdict.must_be_clean(trial.seed)
    assert any(" by SELECT: " in line or " by log: " in line for line in verdict.lines)


@pytest.mark.mariadb("rows undone to a savepoint, of which these transactions leave none in MySQL's log")
def test_undone_rows_of_the_log_that_are_applied_are_found(
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Fresh,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_with_undone_rows(task: Task) -> Receipt:
        # a function inside another travels to the worker whole, and breaks what it finds there
        from catchment.readers.run_task import run_task

        with patch("catchment.readers.changes.without_voids", lambda images, voids: images):
            return run_task(task)

    all_far(monkeypatch)
    monkeypatch.setattr(loop, "run_task", run_with_undone_rows)
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=32, chunk_rows=100, rate=6)
    verdict = trial.run(epochs=6, rest_every=3)
    assert any(" by log: " in line for line in verdict.lines)
    assert any(" by SELECT: " in line for line in verdict.lines)
