"""A feed whose past is kept: as of each kept epoch the lake is what the shards had then, for every reader."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import catchment
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir, versions_dir
from catchment.world import door
from catchment.world.real import Real
from tests.promises.exact.steps import Steps, run_here
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

HOUR_US = 3_600_000_000
BEGINS_US = 13 * HOUR_US
TABLES = ("orders", "rare")
Rows = list[tuple[Any, ...]]


class Ahead(Real):
    """The real world, some hours later. It begins at the next one o'clock in the afternoon.

    Which epochs are the last of their hour and of their day must not depend on when the test runs.
    """

    hours = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._until_one = (BEGINS_US - super().now_us()) % (24 * HOUR_US)

    def now_us(self) -> int:
        return super().now_us() + self._until_one + int(self.hours * HOUR_US)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    ahead = Ahead()
    monkeypatch.setattr(door, "_world", ahead)
    return ahead


@pytest.fixture
def steps(
    ahead: Ahead,
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    sink = {"path": str(tmp_path / "lake"), "keep": "1h", "keep_hourly": "5h", "keep_daily": "forever"}
    found.set(sink=sink)
    for shard in "ab":
        for table in TABLES:
            found.sql(
                shard,
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))",
                f"INSERT INTO {table} SELECT seq, CONCAT('{shard}', seq) FROM seq_1_to_20",
            )
    return found


def by_all(steps: Steps, scan: DeltaScan, table: str, epoch: int) -> list[Rows]:
    """A table's rows as of an epoch, as each reader has them."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    told = DeltaTable(versions_dir(steps.feed.sink.path)).to_pyarrow_dataset().to_table().to_pylist()
    mine = [row for row in told if row["table_name"] == f"{steps.schema}.{table}" and row["epoch"] <= epoch]
    version = max(int(row["version"]) for row in mine)
    engine = QueryBuilder().register("plain", DeltaTable(place, version=version))
    found = [
        catchment.read(steps.file, f"{steps.schema}.{table}", epoch).arrow(),
        scan.rows(place, ["_shard", "id", "v"], version),
        pa.table(engine.execute("SELECT _shard, id, v FROM plain").read_all()),
    ]
    return [sorted((r["_shard"], r["id"], r["v"]) for r in rows.to_pylist()) for rows in found]


@pytest.mark.promise("every epoch that is kept can be read as the shards were then")
def test_days_of_a_feed(steps: Steps, ahead: Ahead, capsys: pytest.CaptureFixture[str]) -> None:
    had: dict[int, dict[str, Rows]] = {}
    for hours in (0, 1, 2, 2.1, 30, 31):
        ahead.hours = hours
        for shard in "ab":
            steps.sql(
                shard,
                f"UPDATE orders SET v = 'at {hours}' WHERE id % 7 = {round(hours) % 7}",
                f"DELETE FROM orders WHERE id = {round(10 * hours) % 20}",
                f"INSERT INTO orders (id, v) VALUES ({1000 + round(10 * hours)}, 'new')",
            )
        if hours == 30:
            steps.sql("a", "ALTER TABLE orders ADD COLUMN w INT", "UPDATE orders SET w = 1 WHERE id < 9")
        steps.run()
        settled(steps.feed)
        epoch = catchment.read(steps.file, f"{steps.schema}.orders").epoch
        had[epoch] = {table: steps.source(table, "id", "v") for table in TABLES}
    numbers = list(had)
    kept = [found.epoch for found in catchment.epochs(steps.file, kept=True)][::-1]
    # The last hours are kept, and of the day before its last epoch.
    assert kept[-2:] == numbers[-2:]
    assert numbers[3] in kept
    assert not set(kept) & set(numbers[:3])
    assert 3 <= len(kept) <= 4
    assert set(kept) <= set(numbers)
    with DeltaScan() as scan:
        for epoch in kept:
            for table in TABLES:
                assert by_all(steps, scan, table, epoch) == [had[epoch][table]] * 3
    for found in catchment.epochs(steps.file):
        if found.readable and found.epoch in had:
            rows = catchment.read(steps.file, f"{steps.schema}.orders", found.epoch).arrow().to_pylist()
            assert sorted((r["_shard"], r["id"], r["v"]) for r in rows) == had[found.epoch]["orders"]
    gone = next(epoch for epoch in numbers[1:4] if epoch not in kept)  # its vectors are its own
    with pytest.raises(SinkError, match=r"any more.* of those that are kept the nearest: .* after it$"):
        catchment.read(steps.file, f"{steps.schema}.orders", gone)
    assert execute(["epochs", "--kept", str(steps.file)]) == 0
    assert capsys.readouterr().out.count(" yes") == len(kept)
