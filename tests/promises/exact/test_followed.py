"""DDL that a feed follows: every epoch is exact, no table is ever stale, and no row is read from the source again.

The cases are in ddl_cases.py, and each is a table of a feed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, must_follow
from tests.promises.exact.ddl_cases import (
    ADDED,
    ALL,
    DROPPED,
    ESCAPED,
    FILLED,
    NULLABLE,
    OF_MARIADB,
    RENAMED,
    TRUNCATED,
    WIDENED,
    WRITTEN,
)
from tests.promises.exact.steps import Steps, run_here


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    return Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))


@pytest.mark.promise("a column that is added is NULL in every row, and the feed follows it")
def test_columns_that_are_added(steps: Steps) -> None:
    must_follow(steps, ADDED, ESCAPED, *OF_MARIADB, settles=True, alone=False)


@pytest.mark.promise(
    "a column that is dropped is gone from new epochs, and a new one of its name has new values"
)
def test_columns_that_are_dropped(steps: Steps) -> None:
    must_follow(steps, DROPPED, settles=True, alone=False)


@pytest.mark.promise("a column added with a default has its value in every row, though no row is logged")
def test_columns_that_come_with_a_value(steps: Steps) -> None:
    must_follow(steps, FILLED, NULLABLE, WRITTEN, settles=True, alone=False)


@pytest.mark.promise("a renamed column keeps its values, though no row is logged")
def test_columns_that_get_another_name(steps: Steps) -> None:
    must_follow(steps, RENAMED, settles=True, alone=False)


@pytest.mark.promise("a widened column keeps its values, though no row is logged")
def test_columns_that_become_wider(steps: Steps) -> None:
    must_follow(steps, WIDENED, settles=True, alone=False)


@pytest.mark.promise("after a TRUNCATE no epoch has the old rows, though no row is logged")
def test_tables_that_are_truncated(steps: Steps) -> None:
    must_follow(steps, TRUNCATED, settles=True, alone=False)


def test_rows_of_before_that_are_not_settled(steps: Steps) -> None:
    """One settle takes up what the tables were filled with and both epochs."""
    must_follow(steps, *ALL, settles=False, alone=True)


@pytest.fixture(scope="module")
def nameless() -> Iterator[PrivateServer]:
    """A server whose log does not name columns."""
    with PrivateServer(server_id=7, settings={"binlog_row_metadata": "NO_LOG"}) as server:
        yield server


@pytest.mark.mariadb("MySQL logs the names of columns or nothing that a table could be described by")
def test_a_log_that_names_no_columns(
    nameless: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    must_follow(Steps(tmp_path, {"a": nameless}, fresh_schema(nameless)), *ALL, settles=True, alone=False)


ALONE = (
    "ALTER TABLE t ADD k INT",
    "ALTER TABLE t ADD m INT NOT NULL DEFAULT 4",
    "ALTER TABLE t MODIFY n BIGINT",
    "ALTER TABLE t RENAME COLUMN n TO o",
    "ALTER TABLE t CHANGE m p BIGINT NOT NULL",
    "ALTER TABLE t DROP o",
    "TRUNCATE t",
)


@pytest.mark.parametrize("settles", [True, False])
def test_a_statement_is_all_that_an_epoch_has(steps: Steps, settles: bool) -> None:
    """No row of any table, and no other statement, helps the feed to see what it did."""
    begin = ("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20)")
    cases = Cases(steps, {"t": begin})
    cases.begin()
    for statement in ALONE:
        if settles:
            cases.settle()
        cases.turn({"t": statement})
        cases.compare()
    cases.settle()
    cases.must_be_followed()
