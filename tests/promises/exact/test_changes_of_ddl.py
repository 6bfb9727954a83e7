"""What the change data of a plain table says of DDL: each row that went or got another value, and no other."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import catchment
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 11), (2, 20), (3, NULL)",
)
# Of each table what the first shard runs, the column that is compared, and the changes that the settle behind it tells.
TABLES: dict[str, tuple[str, str, set[tuple[str, int, int | None]]]] = {
    "truncated": (
        "INSERT INTO t VALUES (4, 4); TRUNCATE t; INSERT INTO t VALUES (2, 2), (5, 5)",
        "n",
        {
            *(("delete", 1, 11), ("delete", 3, None), ("insert", 5, 5)),
            *(("update_preimage", 2, 20), ("update_postimage", 2, 2)),
        },
    ),
    "renamed": (
        "ALTER TABLE t RENAME COLUMN n TO m; UPDATE t SET m = 5 WHERE id = 1",
        "m",
        {
            *(("update_preimage", 1, None), ("update_postimage", 1, 5)),
            *(("update_preimage", 2, None), ("update_postimage", 2, 20)),
            *(("update_preimage", 3, None), ("update_postimage", 3, None)),
        },
    ),
    "filled": (
        "ALTER TABLE t ADD m INT DEFAULT 4; UPDATE t SET m = 5 WHERE id = 1",
        "m",
        {
            *(
                (f"update_{image}", key, value)
                for key in (2, 3)
                for image, value in (("preimage", None), ("postimage", 4))
            ),
            *(("update_preimage", 1, None), ("update_postimage", 1, 5)),
        },
    ),
    "wider": (
        "ALTER TABLE t MODIFY n BIGINT; UPDATE t SET n = 5 WHERE id = 1",
        "n",
        {("update_preimage", 1, 11), ("update_postimage", 1, 5)},
    ),
    "dropped": ("ALTER TABLE t DROP n", "id", set()),
}


@pytest.mark.parametrize("vectors", [True, False])
def test_the_changes_tell_each_row(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    vectors: bool,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(shards[0]))
    steps.set(sink={"path": str(steps.feed.sink.path), "vectors": vectors, "changes": True})
    cases = Cases(steps, dict.fromkeys(TABLES, BEGIN))
    cases.begin()
    settled(steps.feed)
    since = every_epoch(steps)[-1].manifest.epoch
    cases.turn({table: statements for table, (statements, _, _) in TABLES.items()})
    cases.settle()
    for table, (_, column, changes) in TABLES.items():
        plain = DeltaTable(table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table)))
        by_delta_rs = pa.table(plain.load_cdf(starting_version=plain.version()).read_all())
        for found in (by_delta_rs, catchment.changes(steps.file, f"{steps.schema}.{table}", since).arrow()):
            told = [(row["_change_type"], row["id"], row[column]) for row in found.to_pylist()]
            assert sorted(told, key=repr) == sorted(changes, key=repr), table
    cases.must_be_followed()
