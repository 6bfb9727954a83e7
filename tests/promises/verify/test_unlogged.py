"""Rows that a session changed with `sql_log_bin=0`, on servers at rest: no log tells them, so SELECTs must."""

import json

import pytest

from catchment.cli.main import execute
from catchment.model.errors import NOT_ALL_COMPARED
from catchment.model.table import TableId
from tests.promises.exact.steps import Steps
from tests.promises.verify.damage import KEYS, ROWS, counts, found
from tests.world.servers.chosen import on_mysql

_MADE_LAST = ROWS + 1


def _last_transaction(steps: Steps) -> None:
    """The last transaction of each shard changes rows of all tables, and the feed reads it."""
    statements = ["BEGIN"]
    for table, (_, made, _) in KEYS.items():
        new = made.replace("seq", str(_MADE_LAST))
        statements += [
            f"UPDATE {table} SET v = 'newer' WHERE id BETWEEN 30 AND 40",
            f"DELETE FROM {table} WHERE id = 41",
            f"INSERT INTO {table} VALUES ({new}, {_MADE_LAST}, 'made')",
        ]
    steps.everywhere(*statements, "COMMIT")
    steps.run()


def _unlogged(steps: Steps) -> None:
    """Change rows without a log: in front of the last transaction, over its changes, and back to what was before it."""
    statements = ["SET sql_log_bin = 0"]
    for table, (_, made, _) in KEYS.items():
        gone = made.replace("seq", "41")
        statements += [
            f"UPDATE {table} SET v = 'unlogged' WHERE id IN (1, 30)",
            f"DELETE FROM {table} WHERE id = 31",
            f"INSERT INTO {table} VALUES ({gone}, 41, 'unlogged')",
            f"UPDATE {table} SET v = 'new' WHERE id = 32",
            f"DELETE FROM {table} WHERE id = {_MADE_LAST}",
        ]
    steps.everywhere(*statements)


@pytest.mark.promise("verify finds rows that were changed without a log, on a server at rest too")
def test_each_difference_is_found_or_counted(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    """A SELECT that returns the row of before the last transaction proves nothing on a MariaDB at rest: the transaction
    may not be visible yet. These keys are counted, and the next transaction of the shard has them compared."""
    _last_transaction(steps)
    assert execute(["verify", str(steps.file)]) == 0
    _unlogged(steps)
    capsys.readouterr()
    at_rest = (1, 2, 3) if on_mysql() else (1, 1, 2)
    verdict = found(steps)
    for table in KEYS:
        assert counts(verdict, table) == tuple(2 * keys for keys in at_rest), table
        of = TableId(steps.schema, table)
        assert verdict.unproven.get(of, 0) == (0 if on_mysql() else 2 * 2), table
    assert execute(["verify", str(steps.file), "--repair", "--json"]) == (
        0 if on_mysql() else NOT_ALL_COMPARED
    )
    said = json.loads(capsys.readouterr().out)
    assert {one["unproven"] for one in said["tables"]} == {0 if on_mysql() else 4}
    steps.everywhere("CREATE TABLE follows (id INT PRIMARY KEY)", "INSERT INTO follows VALUES (1)")
    steps.run()
    verdict = found(steps)
    assert not verdict.unproven
    for table in KEYS:
        assert counts(verdict, table) == ((0, 0, 0) if on_mysql() else (0, 2, 2)), table
