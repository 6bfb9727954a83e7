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

MODES = ("mirror", "soft_delete", "history")
TABLE = (
    "CREATE TABLE {} (id INT PRIMARY KEY, Customer INT COMMENT 'who', email VARCHAR(40), c DATETIME(3),"
    " secret INT, INDEX (c))"
)
COLUMNS = [
    {"match": "*.*.secret", "exclude": True},
    {"match": "*.*.email", "mask": "partial"},
    {"match": "*.*.c", "rename": "created"},
]
ARRANGE = [
    {
        "match": "*.*",
        "cluster_by": ["customer", "email"],
        "partition_by": "month(c)",
        "target_file_size": "2MB",
    }
]


def insert(table: str, first: int, count: int) -> Sequence[str]:
    """Rows of three months, some of which have no date, or none that a calendar has."""
    rows = (
        f"INSERT INTO {table} SELECT seq, seq % 7, CONCAT('mail', seq),"
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
    """A feed of two shards that has not begun, with a table of each mode that bears its name."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    modes = [{"match": f"*.{mode}", "mode": mode} for mode in MODES]
    found.set(columns=COLUMNS, arrange=ARRANGE, modes=modes)
    for shard, first in (("a", 1), ("b", 1001)):
        for mode in MODES:
            found.sql(shard, TABLE.format(mode), *insert(mode, first, 200))
    return found


def place(steps: Steps, table: str) -> Path:
    return table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))


def of_source(steps: Steps, table: str) -> list[tuple[Any, ...]]:
    """What the lake is to hold, worked out from the shards."""
    rows = []
    for shard, server in steps.servers.items():
        query = f"SELECT id, customer, email, IF(c = 0, NULL, c) FROM {steps.schema}.{table}"
        for key, customer, email, when in server.sql(query):
            rows.append((shard, key, customer, f"****{email[-4:]}", when, month(when)))
    return sorted(rows, key=repr)


def month(when: datetime | None) -> date | None:
    return None if when is None else when.date().replace(day=1)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"partition_by": "month(email)"}, "email is no DATE, DATETIME or TIMESTAMP"),
    ({"partition_by": "day(secret)"}, "secret is no DATE"),
    ({"partition_by": "day(crated)"}, "crated is no DATE"),
    ({"cluster_by": ["customr"]}, "cluster_by names customr"),
    ({"match": "*.ordres", "cluster_by": ["id"]}, "no chosen table has this name"),
]
SHOWN = ["_shard", "id", "Customer", "email", "created", "_created_month"]


def must_be_right(steps: Steps) -> None:
    """By polars, DuckDB, `catchment.read` and `verify`; and each file has rows of one month, in order."""
    settled(steps.feed)
    with DeltaScan() as judge:
        for table in MODES:
            _must_be_right(steps, table, judge)
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0


def _must_be_right(steps: Steps, table: str, judge: DeltaScan) -> None:
    wanted, directory = of_source(steps, table), place(steps, table)
    lives = pl.read_delta(str(directory))
    if table == "soft_delete":
        lives = lives.filter(~pl.col("_deleted"))
    if table == "history":
        lives = lives.filter(pl.col("_epoch_to").is_null())
    assert sorted(lives.select(SHOWN).rows(), key=repr) == wanted, table
    if table == "mirror":
        rows = judge.query(following_views(steps.feed), f"SELECT * FROM {steps.schema}.{table}").to_pylist()
        assert sorted((tuple(row[name] for name in SHOWN) for row in rows), key=repr) == wanted
    read = catchment.read(steps.feed, f"{steps.schema}.{table}").arrow().to_pylist()
    had = sorted((tuple(row[name] for name in SHOWN[:-1]) for row in read), key=repr)
    assert had == [row[:-1] for row in wanted], table
    for path in files(directory).column("path").to_pylist():
        rows = pq.read_table(directory / path, partitioning=None).to_pylist()
        assert len({row["_created_month"] for row in rows}) == 1, (table, path)
        order = [(row["Customer"], row["email"]) for row in rows]
        assert order == sorted(order), (table, path)


def files(directory: Path) -> Any:
    return DeltaTable(directory).get_add_actions(flatten=True)


@pytest.mark.promise("the files of a table are partitioned and ordered as `arrange` says, in every mode")
def test_rows_move_between_partitions(steps: Steps) -> None:
    steps.run()
    must_be_right(steps)
    for table in MODES:
        assert DeltaTable(place(steps, table)).metadata().partition_columns == ["_created_month"]
        steps.sql(
            "a",
            f"UPDATE {table} SET c = c + INTERVAL 40 DAY WHERE id % 4 = 0 AND id % 9 > 1",
            f"UPDATE {table} SET c = NULL, customer = 99 WHERE id % 5 = 0",
            f"UPDATE {table} SET id = id + 5000 WHERE id BETWEEN 40 AND 50",
            f"DELETE FROM {table} WHERE id BETWEEN 60 AND 90",
        )
    steps.run()
    must_be_right(steps)
    for table in MODES:
        steps.everywhere(
            f"ALTER TABLE {table} ADD COLUMN late INT",
            *(sql.replace(", seq FROM", ", seq, 1 FROM") for sql in insert(table, 2000, 40)),
        )
    steps.run()
    must_be_right(steps)
    for table in MODES:
        assert max(files(place(steps, table)).column("num_records").to_pylist()) < 300, table


def test_what_may_change_and_what_is_refused(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    steps.set(tables=[f"{steps.schema}.mirror"], modes=[])
    for said, why in REFUSED:
        steps.set(arrange=[{"match": "*.mirror", **said}])
        with pytest.raises(ConfigError, match=why):
            steps.run()
        assert not place(steps, "mirror").exists()
    steps.set(arrange=ARRANGE)
    steps.everywhere("ALTER TABLE mirror ADD COLUMN _Created_Month INT")
    with pytest.raises(ConfigError, match="that of the lake's tables themselves"):
        steps.run()
    steps.everywhere("ALTER TABLE mirror DROP COLUMN _Created_Month")
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
    steps.set(arrange=[{"match": "*.*", "partition_by": "month(c)", "cluster_by": ["EMAIL"]}])
    steps.sql("a", "UPDATE mirror SET customer = 1")
    before = set(files(place(steps, "mirror")).column("path").to_pylist())
    steps.run()
    settled(steps.feed)
    new = [path for path in files(place(steps, "mirror")).column("path").to_pylist() if path not in before]
    assert new
    for path in new:
        masked = pq.read_table(place(steps, "mirror") / path, partitioning=None)["email"].to_pylist()
        assert masked == sorted(masked)
    steps.sql("a", "ALTER TABLE mirror ADD COLUMN _Created_Month INT")
    steps.must_stop(caplog, "mirror", "drop it again")
