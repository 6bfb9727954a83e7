"""Tables are copied in the order that the feed file says."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest
from catchment.watch.report import Observer
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here

ROWS = 150


@pytest.mark.promise("tables are copied in the order that the feed file says")
def test_a_table_waits_for_those_before_it(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    values = ", ".join(f"({key})" for key in range(ROWS))
    names = ("a", "b", "c_1", "c_2", "d")
    for name in names:
        steps.everywhere(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES {values}")
        steps.everywhere(f"ANALYZE TABLE {name}")
    patterns = [f"{steps.schema}.d", f"{steps.schema}.c_*"]
    steps.set(copy={"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1, "first": patterns})
    epochs: list[Manifest] = []
    run_feed(
        steps.feed,
        until_caught_up=True,
        stop=threading.Event(),
        observer=Observer(committed=lambda report: epochs.append(report.manifest)),
    )
    began: dict[str, list[str]] = {shard: [] for shard in steps.servers}
    for manifest in epochs:
        for shard, state in manifest.cut.shards.items():
            copies = {copy.table.name: copy for copy in state.copies}
            for name, copy in copies.items():
                if copy.rows and name not in began[shard]:
                    assert all(copies[one].done for one in began[shard]), "an earlier one is not done"
                    began[shard].append(name)
    assert all(order == ["d", "c_1", "c_2", "a", "b"] for order in began.values()), began
    for name in names:
        steps.must_be_equal(name, "id")
