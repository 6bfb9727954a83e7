"""Statements of the servers' own test suites, run for real over chosen tables: none changes a chosen row and passes.

MariaDB's are those of Debian's `mariadb-test-data`, MySQL's those of `mysql-testsuite` of Debian sid (version 9.7).
What a statement did to the chosen tables is seen in the tables; what Catchment makes of it comes from the log alone,
read once right behind the statement and once more when tables, views, triggers and routines have become others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from tests.conftest import had
from tests.promises.statements.campaign import Campaign, Tally, explained
from tests.promises.statements.corpus import a_tenth, distinct, suite_files
from tests.promises.statements.guest import allow
from tests.world.servers.builds import Build, mariadb_statements, mysql_statements
from tests.world.servers.launch import PrivateMySQL

SETTINGS: dict[str, str | int] = {
    "log_bin_trust_function_creators": 1,
    "innodb_lock_wait_timeout": 2,
    "lock_wait_timeout": 3,
    "event_scheduler": "OFF",
    "innodb_flush_method": "nosync",
    "loose_max_statement_time": 20,
    "loose_max_execution_time": 20_000,
    # The default of MySQL. A recursion without an end takes all memory: no limit of time holds for an INSERT.
    "loose_cte_max_recursion_depth": 1000,
}
FORMATS = ["STATEMENT", "MIXED"]
# Why a run ends where rows in the log are all there is to know, by what was run and what was said.
EXPLAINED = {r"`shop`\.`t1`.*<-  Unsupported: shard s, shop\.t1 at": "DDL on a chosen table"}


pytestmark = pytest.mark.mariadb("a server of each kind is started here")


@pytest.fixture(scope="module")
def mariadb() -> Iterator[PrivateServer]:
    with PrivateServer(server_id=9, settings=SETTINGS) as server:
        yield _allowed(server)


@pytest.fixture(scope="module")
def mysql_80(mysql_80_build: Build) -> Iterator[PrivateServer]:
    with PrivateMySQL(mysql_80_build, server_id=9, settings=SETTINGS) as server:
        yield _allowed(server)


@pytest.fixture(scope="module")
def mysql_97(mysql_97_build: Build) -> Iterator[PrivateServer]:
    with PrivateMySQL(mysql_97_build, server_id=9, settings=SETTINGS) as server:
        yield _allowed(server)


def _allowed(server: PrivateServer) -> PrivateServer:
    server.sql(*(f"CREATE DATABASE IF NOT EXISTS {schema}" for schema in ("test", "shop", "plain")))
    allow(server)
    return server


@contextmanager
def campaign(server: PrivateServer, schema: str, binlog_format: str) -> Iterator[Campaign]:
    """A campaign, whose numbers are printed; a chosen row that changed without a word in the log fails it."""
    one = Campaign(server, schema, binlog_format)
    try:
        yield one
    finally:
        one.close()
    print(
        f"{binlog_format}, in {schema}: {one.tally}; refused mostly with {one.tally.refusals.most_common(3)}"
    )
    assert not one.tally.unseen


def none_passed(tally: Tally) -> None:
    """No statement changed chosen rows so that the feed would go on without knowing."""
    told = [f"{case.statement[:300]!r} logged as {log!r}" for case, log in tally.passed]
    assert not told, f"{len(told)} of {tally.run}: " + "\n".join(told[:30])


def all_explained(tally: Tally) -> None:
    """Where nothing was lost, the feed ended for known reasons only."""
    kinds = explained(tally.stops, EXPLAINED)
    print({kind: len(cases) for kind, cases in kinds.items()})
    assert not kinds.get(""), "\n".join(kinds[""][:30])


def must_see_all(server: PrivateServer, binlog_format: str, share: int, ordered: int) -> None:
    """One statement of `share` of each kind alone, and the first files in order."""
    suite = had(mariadb_statements)
    files = a_tenth(suite)
    with campaign(server, "test", binlog_format) as run:
        run.alone(distinct(files, share))
        for file in files[1 : 1 + ordered]:
            run.in_order(file, hooked=True)
    assert run.tally.run >= 4200 // share
    assert run.tally.changed >= 1000 // share
    none_passed(run.tally)


@pytest.mark.promise("no statement logged as text changes a chosen row unnoticed")
def test_no_statement_changes_a_chosen_row_and_passes(mariadb: PrivateServer) -> None:
    must_see_all(mariadb, "STATEMENT", share=40, ordered=1)


@pytest.mark.parametrize("binlog_format", FORMATS)
def test_no_statement_of_some_changes_a_chosen_row_and_passes(
    mariadb: PrivateServer, binlog_format: str
) -> None:
    must_see_all(mariadb, binlog_format, share=21, ordered=2)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("binlog_format", FORMATS)
@pytest.mark.parametrize(
    ("kind", "statements"),
    [("mariadb", mariadb_statements), ("mysql_80", mariadb_statements), ("mysql_97", mysql_statements)],
)
def test_no_statement_of_many_changes_a_chosen_row_and_passes(
    kind: str, statements: Callable[[], Path], binlog_format: str, request: pytest.FixtureRequest
) -> None:
    suite = had(statements)
    server = request.getfixturevalue(kind)
    files = suite_files(suite)
    with campaign(server, "test", binlog_format) as run:
        run.alone(distinct(files))
        for file in files[:40]:
            run.in_order(file, hooked=True)
    assert run.tally.run >= 2000
    assert run.tally.changed >= 500
    none_passed(run.tally)


def test_statements_that_log_rows_end_no_feed_for_nothing(mariadb: PrivateServer) -> None:
    suite = had(mariadb_statements)
    files = a_tenth(suite)
    with campaign(mariadb, "test", "ROW") as run:
        run.alone(distinct(files, 60))
    assert run.tally.run >= 75
    assert run.tally.logged >= 40
    none_passed(run.tally)
    all_explained(run.tally)


def test_statements_in_schemas_that_lead_nowhere_end_no_feed(mariadb: PrivateServer) -> None:
    suite = had(mariadb_statements)
    files = a_tenth(suite)
    with campaign(mariadb, "plain", "STATEMENT") as run:
        for file in files[3:6]:
            run.in_order(file, hooked=False)
    assert run.tally.logged >= 40
    none_passed(run.tally)
    all_explained(run.tally)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("schema", "binlog_format"), [("test", "ROW"), ("plain", "STATEMENT")])
def test_no_statement_of_many_ends_a_feed_for_nothing(
    mariadb: PrivateServer, schema: str, binlog_format: str
) -> None:
    suite = had(mariadb_statements)
    files = suite_files(suite)
    with campaign(mariadb, schema, binlog_format) as run:
        if schema == "test":
            run.alone(distinct(files))
        for file in files[:40]:
            run.in_order(file, hooked=schema == "test")
    assert run.tally.run >= 2000
    none_passed(run.tally)
    all_explained(run.tally)
