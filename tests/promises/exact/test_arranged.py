"""Tables whose files are kept apart and in order, with modes and masks: exact at every version, for every reader."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import catchment
from catchment.api.views import following_views
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps, run_here
from tests.world.delta_scan import DeltaScan
from tests.world.engines import Here
from tests.world.settled import settled

TABLE = (
    "CREATE TABLE orders (id INT PRIMARY KEY, Customer INT COMMENT 'who', email VARCHAR(40), c DATETIME(3),"
    " secret INT, INDEX (c))"
)
COLUMNS = [
    {"match": "*.orders.secret", "exclude": True},
    {"match": "*.orders.email", "mask": "partial"},
    {"match": "*.orders.c", "rename": "created"},
]
ARRANGE = [
    {
        "match": "*.orders",
        "cluster_by": ["customer", "email"],
        "partition_by": "month(c)",
        "target_file_size": "2MB",
    }
]


def insert(first: int, count: int) -> Sequence[str]:
    """Rows of three months, some of which have no date, or none that a calendar has."""
    rows = (
        "INSERT INTO orders SELECT seq, seq % 7, CONCAT('mail', seq),"
        " CASE seq % 9 WHEN 0 THEN NULL WHEN 1 THEN '0000-00-00'"
        " ELSE '2026-01-15 12:00:00.5' + INTERVAL seq % 60 DAY END,"
        f" seq FROM seq_{first}_to_{first + count - 1}"
    )
    return "SET SESSION sql_mode = ''", rows


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has not begun, with a table of each mode."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(columns=COLUMNS, arrange=ARRANGE)
    for shard, first in (("a", 1), ("b", 1001)):
        found.sql(shard, TABLE, *insert(first, 300))
    return found


def place(steps: Steps) -> Path:
    return table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "orders"))


def of_source(steps: Steps) -> list[tuple[Any, ...]]:
    """What the lake is to hold, worked out from the shards."""
    rows = []
    for shard, server in steps.servers.items():
        query = f"SELECT id, customer, email, IF(c = 0, NULL, c) FROM {steps.schema}.orders"
        for key, customer, email, when in server.sql(query):
            rows.append((shard, key, customer, f"****{email[-4:]}", when, month(when)))
    return sorted(rows, key=repr)


def month(when: datetime | None) -> date | None:
    return None if when is None else when.date().replace(day=1)


SHOWN = ["_shard", "id", "Customer", "email", "created", "_created_month"]


def must_be_right(steps: Steps) -> None:
    """By polars, DuckDB, `catchment.read` and `verify`; and each file has rows of one month, in order."""
    wanted = of_source(steps)
    settled(steps.feed)
    lives = pl.read_delta(str(place(steps)))
    if "_deleted" in lives.columns:
        lives = lives.filter(~pl.col("_deleted"))
    if "_epoch_to" in lives.columns:
        lives = lives.filter(pl.col("_epoch_to").is_null())
    assert sorted(lives.select(SHOWN).rows(), key=repr) == wanted
    if not {"_deleted", "_epoch_to"} & set(lives.columns):
        with DeltaScan() as judge:
            rows = judge.query(
                following_views(steps.feed), f"SELECT * FROM {steps.schema}.orders"
            ).to_pylist()
        assert sorted((tuple(row[name] for name in SHOWN) for row in rows), key=repr) == wanted
    read = catchment.read(steps.feed, f"{steps.schema}.orders").arrow().to_pylist()
    assert sorted((tuple(row[name] for name in SHOWN[:-1]) for row in read), key=repr) == [
        r[:-1] for r in wanted
    ]
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0
    added = DeltaTable(place(steps)).get_add_actions(flatten=True)
    for path in added.column("path").to_pylist():
        rows = pq.read_table(place(steps) / path, partitioning=None).to_pylist()
        assert len({row["_created_month"] for row in rows}) == 1
        order = [(row["Customer"], row["email"]) for row in rows]
        assert order == sorted(order)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "history"])
def test_rows_move_between_partitions(steps: Steps, mode: str) -> None:
    steps.set(modes=[{"match": "*.orders", "mode": mode}])
    steps.run()
    must_be_right(steps)
    assert DeltaTable(place(steps)).metadata().partition_columns == ["_created_month"]
    steps.sql(
        "a",
        "UPDATE orders SET c = c + INTERVAL 40 DAY WHERE id % 4 = 0 AND id % 9 > 1",
        "UPDATE orders SET c = NULL, customer = 99 WHERE id % 5 = 0",
        "UPDATE orders SET id = id + 5000 WHERE id BETWEEN 40 AND 50",
        "DELETE FROM orders WHERE id BETWEEN 60 AND 90",
    )
    steps.run()
    must_be_right(steps)
    for shard in "ab":
        steps.sql(
            shard,
            "ALTER TABLE orders ADD COLUMN late INT",
            *(sql.replace(", seq FROM", ", seq, 1 FROM") for sql in insert(2000, 40)),
        )
    steps.run()
    must_be_right(steps)
    files = DeltaTable(place(steps)).get_add_actions(flatten=True)
    assert max(files.column("num_records").to_pylist()) < 400


def test_what_may_change_and_what_stays(steps: Steps) -> None:
    steps.run()
    settled(steps.feed)
    (rule,) = ARRANGE
    steps.set(arrange=[{**rule, "partition_by": "year(c)"}])
    with pytest.raises(
        ConfigError, match=r"partition_by is month\(c\) since the feed began, and year\(c\) now"
    ):
        steps.run()
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    with pytest.raises(ConfigError, match="the partitions of a table stay"):
        verification.verify(steps.feed, endpoints, Here())
    assert execute(["doctor", str(steps.file)]) != 0
    steps.set(arrange=[{**rule, "cluster_by": ["secret"]}])
    with pytest.raises(
        ConfigError, match="cluster_by names secret, which is no column of the table in the lake"
    ):
        steps.run()
    steps.set(arrange=[{"match": "*.orders", "partition_by": "month(c)", "cluster_by": ["EMAIL"]}])
    steps.sql("a", "UPDATE orders SET customer = 1")
    steps.run()
    settled(steps.feed)
    newest = DeltaTable(place(steps)).get_add_actions(flatten=True)
    paths = newest.column("path").to_pylist()
    at = newest.column("modification_time").to_pylist()
    last = max(zip(at, paths, strict=True))[1]
    masked = pq.read_table(place(steps) / last, partitioning=None)["email"].to_pylist()
    assert masked == sorted(masked)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"partition_by": "month(email)"}, "email is no DATE, DATETIME or TIMESTAMP"),
        ({"partition_by": "day(secret)"}, "secret is no DATE"),
        ({"partition_by": "day(crated)"}, "crated is no DATE"),
        ({"cluster_by": ["customr"]}, "cluster_by names customr"),
        ({"match": "*.ordres", "cluster_by": ["id"]}, "no chosen table has this name"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    steps: Steps, said: dict[str, Any], why: str
) -> None:
    steps.set(arrange=[{"match": "*.orders", **said}])
    with pytest.raises(ConfigError, match=why):
        steps.run()
    assert not place(steps).exists()


def test_a_column_with_the_name_of_a_partition_is_refused(
    steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE orders ADD COLUMN _Created_Month INT")
    with pytest.raises(ConfigError, match="that of the lake's tables themselves"):
        steps.run()
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE orders DROP COLUMN _Created_Month")
    steps.run()
    steps.sql("a", "ALTER TABLE orders ADD COLUMN _Created_Month INT")
    steps.must_stop(caplog, "orders", "drop it again")
