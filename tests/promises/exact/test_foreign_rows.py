"""Rows that a user changes in the lake: `verify` finds them, and `settle` takes them back."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here


@pytest.mark.wide
@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "history"])
def test_what_a_user_changes_is_found_and_taken_back(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: str,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    steps.set(modes=[{"match": "*.orders", "mode": mode}])
    for shard in "ab":
        steps.sql(
            shard,
            "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20))",
            "INSERT INTO orders SELECT seq, 'ours' FROM seq_1_to_40",
        )
    steps.run()
    assert execute(["settle", str(steps.file)]) == 0
    table = DeltaTable(table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "orders")))
    table.delete("id <= 5 AND _shard = 'a'")
    table.update(updates={"v": "'theirs'"}, predicate="id = 9")
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 7
    table.optimize.compact()
    with caplog.at_level(logging.WARNING, "catchment"):
        assert execute(["settle", str(steps.file)]) == 0
    assert f"{steps.schema}.orders: version 1 (DELETE by delta-rs" in caplog.text
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0
    steps.sql("a", "DELETE FROM orders WHERE id = 9")
    steps.must_be_equal("orders", "id", "v")
