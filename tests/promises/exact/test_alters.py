"""What shows a definition and what does not: XA, the catalog, and the last statement of a server at rest."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed import altered
from catchment.model.table import Table
from catchment.source.catalog import read_table
from tests.promises.exact.steps import Steps, run_here

Begin = Callable[..., Steps]
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, c INT)"
ROWS = "INSERT INTO t VALUES (1, 1), (2, 2)"


@pytest.fixture
def begin(fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """A feed that has copied what the statements of each server made; without any it has not begun."""
    run_here(monkeypatch)

    def made(servers: Sequence[PrivateServer], *statements: Sequence[str], **options: str) -> Steps:
        schema = fresh_schema(*servers)
        steps = Steps(tmp_path, dict(zip("ab", servers, strict=False)), schema, **options)
        for shard, own in zip("ab", statements, strict=False):
            steps.sql(shard, *own)
        if statements:
            steps.run()
        return steps

    return made


def test_an_xa_transaction_of_an_earlier_epoch_does_not_show_the_definition(
    shard: PrivateServer, begin: Begin
) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql("a", "XA START 'x'", "INSERT INTO t VALUES (3, 3)", "XA END 'x'", "XA PREPARE 'x'")
    steps.run()
    steps.sql("a", "XA COMMIT 'x'", "ALTER TABLE t DROP c, ADD c VARCHAR(9)", "INSERT INTO t VALUES (4, 'x')")
    steps.must_be_equal("t", "id", "c")


def test_an_alter_while_the_catalog_is_asked_for_another(
    shard: PrivateServer, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog then is that of a later cut: only the column asked for is taken from it."""
    steps = begin(
        [shard], ["CREATE TABLE t (id INT PRIMARY KEY, x INT, c INT)", "INSERT INTO t VALUES (1, 2, 3)"]
    )
    later = ["ALTER TABLE t DROP x, ADD y INT", "INSERT INTO t (id, y) VALUES (2, 5)"]
    real = read_table

    def late(*args: Any) -> Table:
        while later:
            steps.sql("a", later.pop(0))
        return real(*args)

    monkeypatch.setattr(altered, "read_table", late)
    steps.sql("a", "ALTER TABLE t ADD n INT NULL")
    steps.run()
    assert not later, "the catalog was not asked"
    steps.must_be_equal("t", "id", "c", "n", "y")


@pytest.mark.mariadb("before 8.0.21 MySQL refuses CREATE TABLE ... SELECT with GTIDs")
def test_the_last_statement_of_a_server_at_rest_is_create_table_select(
    shard: PrivateServer, begin: Begin
) -> None:
    steps = begin([shard])
    steps.sql("a", TABLE, ROWS, "CREATE TABLE u (PRIMARY KEY (id)) AS SELECT * FROM t")
    steps.must_be_equal("t", "id", "c")
    steps.must_be_equal("u", "id", "c")
    steps.sql("a", "INSERT INTO t VALUES (3, 3)", "UPDATE u SET c = 7")
    steps.must_be_equal("t", "id", "c")
    steps.must_be_equal("u", "id", "c")


@pytest.mark.mariadb("log_bin_compress is a setting of MariaDB")
def test_the_last_statement_of_a_server_at_rest_is_a_packed_one(begin: Begin) -> None:
    with PrivateServer(
        server_id=7, settings={"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
    ) as server:
        steps = begin([server])
        steps.sql(
            "a", TABLE, ROWS, "CREATE TABLE u (id INT PRIMARY KEY, c INT COMMENT 'a table that is new')"
        )
        steps.must_be_equal("t", "id", "c")
        steps.sql("a", "INSERT INTO u VALUES (1, 1)")
        steps.must_be_equal("u", "id", "c")
