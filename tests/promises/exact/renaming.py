"""A table whose columns are renamed, and what all readers must have of it."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.sink.reading import double_quoted
from tests.promises.exact.steps import Rows, Steps, run_here
from tests.promises.exact.test_filled import never_stale
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(9)) CHARACTER SET utf8mb4",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL)",
)
RENAME = "ALTER TABLE t RENAME COLUMN a TO c"
FURTHER = "ALTER TABLE t RENAME COLUMN c TO d"
BACK = "ALTER TABLE t RENAME COLUMN c TO a"
OTHER, PROOF = (
    "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
    "INSERT INTO other VALUES (NULL)",
)


def some_wide(cases: Mapping[str, tuple[Any, ...]], usual: Collection[str]) -> list[Any]:
    """Parameters of a test, of which few are not of the wide part."""
    return [
        pytest.param(*case, id=name, marks=() if name in usual else pytest.mark.wide)
        for name, case in cases.items()
    ]


def begun(
    directory: Path, schema: str, patch: pytest.MonkeyPatch, servers: dict[str, PrivateServer]
) -> Steps:
    run_here(patch)
    steps = Steps(directory, servers, schema)
    steps.everywhere(*BEGIN)
    steps.run()
    return steps


def epochs(steps: Steps) -> list[int]:
    return [row.manifest.epoch for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()]


def of_others(steps: Steps, *columns: str, version: int | None = None) -> Rows:
    """The plain table's rows as delta-rs has them, which knows nothing of Catchment."""
    directory = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "t"))
    engine = QueryBuilder().register("plain", DeltaTable(directory, version=version))
    names = ("_shard", *columns)
    listed = ", ".join(map(double_quoted, names))
    rows = pa.table(engine.execute(f"SELECT {listed} FROM plain").read_all())
    return sorted((tuple(row[n] for n in names) for row in rows.to_pylist()), key=repr)


def must_be_settled(steps: Steps, *columns: str) -> None:
    """Settle, and compare what all readers have."""
    expected = steps.source("t", *columns)
    assert steps.lake("t", *columns) == expected
    settled(steps.feed)
    assert steps.lake("t", *columns) == expected
    assert of_others(steps, *columns) == sorted(expected, key=repr)


def must_follow(steps: Steps, statements: str, columns: str) -> None:
    """Run statements in one epoch, and others behind it."""
    names = ("id", *columns.split())
    steps.everywhere(*statements.split(";"))
    steps.must_be_equal("t", *names)
    steps.everywhere("DELETE FROM t WHERE id = 1", "INSERT INTO t (id) VALUES (77)")
    steps.must_be_equal("t", *names)
    must_be_settled(steps, *names)
    assert never_stale(steps)
