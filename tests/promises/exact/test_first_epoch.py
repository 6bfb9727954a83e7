"""What the first epoch of a feed claims, when the last transaction before it took rows away."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.steps import Steps, run_here

pytestmark = pytest.mark.mariadb("its first cut is the end of the log, not the start of the last transaction")

KEPT = ("grown", "changed")
LEFT = ("emptied", "shortened", "moved", "worded")


def first_claims(steps: Steps) -> dict[str, tuple[bool, Bound | None]]:
    """Of each table, what the first epoch says: all copied, and the key behind which all rows are there."""
    rows = EpochsTable(steps.feed.sink.path, "exact").read_all()
    first = next(row for row in rows if row.manifest.previous == 0)
    return {copy.table.name: (copy.done, copy.born_after) for copy in first.manifest.cut.copies}


@pytest.mark.parametrize("xa", [False, True], ids=["transaction", "XA transaction"])
def test_keys_that_went_away_behind_the_first_cut(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    xa: bool,
) -> None:
    """Rows of an XA transaction stand in the log where they were prepared, which is before the cut."""
    run_here(monkeypatch)
    schema = fresh_schema(shard)
    steps = Steps(tmp_path, {"a": shard}, schema)
    tables = [*KEPT, "emptied", "shortened", "moved"]
    steps.sql("a", *(f"CREATE TABLE {name} (id INT PRIMARY KEY, c INT)" for name in tables))
    steps.sql(
        "a", "CREATE TABLE worded (id VARCHAR(9) PRIMARY KEY, c INT)", "INSERT INTO worded VALUES ('x', 1)"
    )
    steps.sql("a", *(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)" for name in tables))
    begin, end = (
        (["XA START 'x'"], ["XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"])
        if xa
        else (["BEGIN"], ["COMMIT"])
    )
    steps.sql(
        "a",
        *begin,
        "DELETE FROM emptied",
        "DELETE FROM worded",
        "DELETE FROM shortened WHERE id = 3",
        "UPDATE moved SET id = 0 WHERE id = 3",
        "INSERT INTO grown VALUES (4, 4)",
        "UPDATE changed SET c = 5",
        *end,
    )
    steps.run()
    claimed = first_claims(steps)
    assert {claimed[name] for name in LEFT} == {(False, None)}
    assert claimed["grown"] == (False, (4,))
    assert claimed["changed"] == (False, (3,))
    for name in (*KEPT, *LEFT):
        steps.must_be_equal(name, "id", "c")
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    assert newest.manifest.cut.copied
