"""A feed of two shards whose lake is to be damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.steps import Steps, run_here
from tests.promises.verify.damage import KEYS, ONLY_ON_A, ROWS
from tests.world.settled import settled


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has copied its tables, settled them, and followed some changes."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(copy={"chunk_rows_max": 20, "group_time": "0s"})
    for table, (kind, made, _) in KEYS.items():
        found.everywhere(
            f"CREATE TABLE {table} (k {kind} PRIMARY KEY, id INT, v VARCHAR(20))",
            f"INSERT INTO {table} SELECT {made}, seq, 'old' FROM seq_1_to_{ROWS}",
        )
        first, last = ONLY_ON_A
        found.sql("a", f"INSERT INTO {table} SELECT {made}, seq, 'old' FROM seq_{first}_to_{last}")
    found.run()
    settled(found.feed)
    for table in KEYS:
        found.everywhere(f"UPDATE {table} SET v = 'new' WHERE id BETWEEN 30 AND 40")
    found.run()
    return found
