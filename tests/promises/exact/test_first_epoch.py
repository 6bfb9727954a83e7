"""What the first epoch of a feed claims, when the last transaction before it took rows away."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.epochs import EpochsTable
from tests.promises.exact.steps import Steps, run_here

KEPT = ("grown", "changed")
LEFT = ("emptied", "shortened", "moved", "worded")


@pytest.mark.mariadb("its first cut is the end of the log, not the start of the last transaction")
def test_keys_that_went_away_behind_the_first_cut(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    schema = fresh_schema(shard)
    steps = Steps(tmp_path, {"a": shard}, schema)
    tables = [*KEPT, "emptied", "shortened", "moved"]
    steps.sql("a", *(f"CREATE TABLE {name} (id INT PRIMARY KEY, c INT)" for name in tables))
    steps.sql(
        "a", "CREATE TABLE worded (id VARCHAR(9) PRIMARY KEY, c INT)", "INSERT INTO worded VALUES ('x', 1)"
    )
    steps.sql("a", *(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)" for name in tables))
    steps.sql(
        "a",
        "BEGIN",
        "DELETE FROM emptied",
        "DELETE FROM worded",
        "DELETE FROM shortened WHERE id = 3",
        "UPDATE moved SET id = 0 WHERE id = 3",
        "INSERT INTO grown VALUES (4, 4)",
        "UPDATE changed SET c = 5",
        "COMMIT",
    )
    steps.run()
    rows = EpochsTable(steps.feed.sink.path, "exact").read_all()
    first = next(row for row in rows if row.manifest.previous == 0)
    claimed = {p.table: (p.done, p.born_after) for p in first.manifest.progress}
    assert {claimed[TableId(schema, name)] for name in LEFT} == {(False, None)}
    assert claimed[TableId(schema, "grown")] == (False, (4,))
    assert claimed[TableId(schema, "changed")] == (False, (3,))
    for name in (*KEPT, *LEFT):
        steps.must_be_equal(name, "id", "c")
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    assert all(p.done for p in newest.manifest.progress)


@pytest.mark.mariadb("its first cut is the end of the log, not the start of the last transaction")
def test_a_key_that_went_away_by_an_xa_commit_behind_the_first_cut(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    schema = fresh_schema(shard)
    steps = Steps(tmp_path, {"a": shard}, schema)
    steps.sql(
        "a",
        "CREATE TABLE ended (id INT PRIMARY KEY, c INT)",
        "INSERT INTO ended VALUES (1, 1), (2, 2), (3, 3)",
    )
    # The log has the row before the first cut, and the commit behind it.
    ending = ("XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    steps.sql("a", "XA START 'x'", "DELETE FROM ended WHERE id = 3", *ending)
    steps.run()
    rows = EpochsTable(steps.feed.sink.path, "exact").read_all()
    (claimed,) = next(row.manifest.progress for row in rows if row.manifest.previous == 0)
    assert (claimed.done, claimed.born_after) == (False, None)
    steps.must_be_equal("ended", "id", "c")
