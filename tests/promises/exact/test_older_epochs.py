"""Older epochs and versions of tables that DDL changed: each has the rows, the columns and the types of then."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from catchment.api.read import read
from catchment.model.table import TableId
from catchment.sink.delta.layout import epoch_app, table_dir
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.plain import PlainVersions
from tests.promises.exact.steps import Steps, run_here
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(9)) CHARACTER SET utf8mb4",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, NULL)",
)
# Statements of epochs, one after the other.
COURSES = {
    "truncated": ("UPDATE t SET a = a + 1", "TRUNCATE t", "INSERT INTO t VALUES (5, 50, 'x')", "TRUNCATE t"),
    "filled": (
        "ALTER TABLE t ADD m INT DEFAULT 4",
        "UPDATE t SET m = 5 WHERE id = 1",
        "ALTER TABLE t DROP m",
    ),
    "added": ("ALTER TABLE t ADD m INT", "UPDATE t SET m = 5 WHERE id = 1", "ALTER TABLE t DROP a, DROP m"),
    "wider": (
        "ALTER TABLE t MODIFY a BIGINT",
        "UPDATE t SET a = 1234567890123456789 WHERE id = 1",
        "ALTER TABLE t MODIFY v TEXT",
        "UPDATE t SET v = REPEAT('x', 300)",
    ),
    "renamed": (
        "ALTER TABLE t RENAME COLUMN a TO c",
        "UPDATE t SET c = 1 WHERE id = 1; ALTER TABLE t RENAME COLUMN c TO d; INSERT INTO t VALUES (4, 4, 'y')",
        "DELETE FROM t WHERE id = 2",
        "ALTER TABLE t RENAME COLUMN d TO e, ADD COLUMN f INT DEFAULT 4",
    ),
}


def test_every_epoch_and_version_is_as_it_was(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    cases = Cases(steps, dict.fromkeys(COURSES, BEGIN))
    cases.begin()
    names = [f"{steps.schema}.{table}" for table in COURSES]
    known: dict[int, list[pa.Table]] = {}

    def note() -> None:
        """Note what all tables are now, which is what the shards have."""
        cases.compare()
        known[every_epoch(steps)[-1].manifest.epoch] = [state.arrow() for state in read(steps.feed, names)]

    note()
    for number in range(max(map(len, COURSES.values()))):
        if number != 2:  # one settle takes up two epochs
            settled(steps.feed)
        cases.turn({table: course[number] for table, course in COURSES.items() if number < len(course)})
        note()
    cases.settle()
    cases.must_be_followed()
    types = [rows[list(COURSES).index("wider")].schema.field("a").type for rows in known.values()]
    assert (types[0], types[-1]) == (pa.int32(), pa.int64())

    with DeltaScan() as scan:
        root, feed = Path(str(steps.feed.sink.path)), steps.feed.name
        tables = [TableId.parse(name) for name in names]
        plain = [PlainVersions(table_dir(root, one), epoch_app(feed, one), scan) for one in tables]
        later = [row for row in every_epoch(steps) if row.manifest.epoch >= min(known)]
        assert [row.manifest.epoch for row in later] == [*known]
        for row in later:
            for number, state in enumerate(read(steps.feed, names, epoch=row.manifest.epoch)):
                order = [("_shard", "ascending"), ("id", "ascending")]
                rows = state.arrow()
                was = known[row.manifest.epoch][number]
                assert rows.sort_by(order).equals(was.sort_by(order)), (row.manifest.epoch, names[number])
                shape = row.manifest.shape(tables[number])
                assert list(plain[number].differing(row.manifest.epoch, shape, rows)) == []
    for table, versions in zip(COURSES, plain, strict=True):
        assert all(epoch < min(known) for epoch in versions.left), (table, versions.left)
        assert versions.compared >= 3, table
        assert versions.told >= 2, table
