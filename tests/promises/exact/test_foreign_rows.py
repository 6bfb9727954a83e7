"""Rows that a user changes in the lake: `verify` finds them, and `settle` takes them back."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from catchment.cli.main import execute
from catchment.feed import verify as verification
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here

MODES = ("mirror", "soft_delete", "history")


@pytest.mark.promise("changes that others make to the lake's tables are found and reverted")
def test_what_a_user_changes_is_found_and_taken_back(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In tables of each mode, which have its name."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards))
    steps.set(modes=[{"match": f"*.{mode}", "mode": mode} for mode in MODES])
    for mode in MODES:
        steps.everywhere(
            f"CREATE TABLE {mode} (id INT PRIMARY KEY, v VARCHAR(20))",
            f"INSERT INTO {mode} SELECT seq, 'ours' FROM seq_1_to_40",
        )
    steps.run()
    assert execute(["settle", str(steps.file)]) == 0
    plain = {
        TableId(steps.schema, mode): DeltaTable(
            table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, mode))
        )
        for mode in MODES
    }
    for table in plain.values():
        table.delete("id <= 5 AND _shard = 'a'")
        table.update(updates={"v": "'theirs'"}, predicate="id = 9")
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    found = verification.verify(steps.feed, endpoints, Here()).found
    assert {of: one.total for of, one in found.items()} == dict.fromkeys(plain, 7)
    for table in plain.values():
        table.optimize.compact()
    with caplog.at_level(logging.WARNING, "catchment"):
        assert execute(["settle", str(steps.file)]) == 0
    for of in plain:
        assert f"{of}: version 1 (DELETE by delta-rs" in caplog.text
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0
    for mode in MODES:
        steps.sql("a", f"DELETE FROM {mode} WHERE id = 9")
    for mode in MODES:
        steps.must_be_equal(mode, "id", "v")
