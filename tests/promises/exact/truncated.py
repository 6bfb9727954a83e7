"""What tests of TRUNCATE look at: the same rows by every reader, at once and behind a settle."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from catchment.cli.main import execute
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_filled import never_stale
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
)


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def plain(steps: Steps, *columns: str, table: str = "t") -> list[Any]:
    """The plain table's rows, as DuckDB's delta_scan and delta-rs have them, which have to be the same."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    wanted = ("_shard", *columns)
    engine = QueryBuilder().register("plain", DeltaTable(place))
    with DeltaScan() as scan:
        found = [
            scan.rows(place, wanted).to_pylist(),
            pa.table(engine.execute(f"SELECT {', '.join(wanted)} FROM plain").read_all()).to_pylist(),
        ]
    first, second = (sorted(tuple(row[c] for c in wanted) for row in rows) for rows in found)
    assert first == second
    return first


def must_be_right(steps: Steps, *columns: str, table: str = "t") -> None:
    """Every reader sees the source's rows, before a settle and behind it; verify agrees; nothing was copied anew."""
    steps.must_be_equal(table, *columns)
    settled(steps.feed)
    assert steps.lake(table, *columns) == plain(steps, *columns, table=table) == steps.source(table, *columns)
    assert execute(["verify", str(steps.file)]) == 0
    assert never_stale(steps)
