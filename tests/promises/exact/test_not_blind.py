"""The judges of exactness see what they are there to see: each test breaks the feed of `make test` in one place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catchment.epoch.work import ChunkTask
from catchment.model.position import LogOffset
from catchment.readers import copy
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import run_here
from tests.promises.exact.test_exact import small_trial
from tests.promises.exact.verdict import Verdict


@pytest.fixture
def verdict(
    servers: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], Verdict]:
    """What the judges say of a small trial whose tasks run in this process, with whatever a test has planted there."""
    run_here(monkeypatch)
    trial = small_trial(servers, fresh_schema(*servers.values()), tmp_path)
    return lambda: trial.run(epochs=6, rest_every=3)


def test_chunks_that_are_not_brought_back_to_the_epoch_are_found(
    verdict: Callable[[], Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They show the end of the log that their task reads, instead of the epoch."""
    copy_chunks: Any = copy.copy_chunks

    def to_the_end(task: ChunkTask) -> Any:
        return copy_chunks(replace(task, epoch_at=LogOffset(f"{task.epoch_at.base}.999999", 4)))

    # MySQL proves the epoch itself for floor, and there is no log at this one.
    monkeypatch.setattr(copy, "proven_floor", lambda endpoint, server, floor, cut, worth: floor)
    monkeypatch.setattr("catchment.readers.run_task.copy_chunks", to_the_end)
    found = verdict()
    with pytest.raises(AssertionError, match=r"seed 21:\nepoch \d+ .*by (log|SELECT): .*cut \{'-80'"):
        found.must_be_clean(21)


@pytest.mark.mariadb("rows undone to a savepoint, of which these transactions leave none in MySQL's log")
def test_undone_rows_of_the_log_that_are_applied_are_found(
    verdict: Callable[[], Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.readers.changes.without_voids", lambda images, voids: images)
    lines = verdict().lines
    assert any(" by log: " in line for line in lines)
    assert any(" by SELECT: " in line for line in lines)
