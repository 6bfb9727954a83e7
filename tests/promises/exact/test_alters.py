"""ALTERs and rows in one epoch, and what a shard without the table, or with another definition, does."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed import altered
from catchment.model.errors import Unsupported
from catchment.model.table import Table
from catchment.source.catalog import read_table
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import on_mysql

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


ONE_EPOCH = {
    "a name in another case": """
        INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP COLUMN C; ALTER TABLE t ADD c INT""",
    "the same definition again": """
        INSERT INTO t VALUES (3, 3), (4, 4); ALTER TABLE t DROP c; DELETE FROM t WHERE id = 3;
        INSERT INTO t VALUES (5); ALTER TABLE t ADD c INT; INSERT INTO t VALUES (3, 33), (6, 6)""",
    "another type": """
        INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BIGINT; INSERT INTO t VALUES (4, 4)""",
    "another type and back": """
        INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BINARY(3); UPDATE t SET c = 'x' WHERE id = 1;
        ALTER TABLE t DROP c; INSERT INTO t VALUES (4); ALTER TABLE t ADD c INT; INSERT INTO t VALUES (5, 5)""",
    "another type and no row": """
        INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c BINARY(3)""",
    "another type behind an XA transaction": """
        INSERT INTO t VALUES (3, 3); XA START 'x'; INSERT INTO t VALUES (4, 4); XA END 'x'; XA PREPARE 'x';
        XA COMMIT 'x'; ALTER TABLE t DROP c, ADD c VARCHAR(9); INSERT INTO t VALUES (5, 'x')""",
}


@pytest.mark.parametrize("statements", ONE_EPOCH.values(), ids=ONE_EPOCH)
def test_one_epoch(shard: PrivateServer, begin: Begin, statements: str) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql("a", *statements.split(";"))
    steps.must_be_equal("t", "id", "c")


@pytest.mark.parametrize(
    "behind", ["ALTER TABLE t DROP c", "ALTER TABLE t ADD m INT", "ALTER TABLE t DROP c, ADD m INT"]
)
def test_values_of_a_new_column_before_another_alter_that_no_row_follows(
    shard: PrivateServer, begin: Begin, behind: str
) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql(
        "a",
        "ALTER TABLE t ADD n INT",
        "INSERT INTO t (id, n) VALUES (3, 33)",
        "UPDATE t SET n = 11 WHERE id = 1",
    )
    steps.sql("a", behind)
    steps.must_be_equal("t", "id", "n")
    steps.sql("a", "INSERT INTO t (id, n) VALUES (4, 44)")
    steps.must_be_equal("t", "id", "n")


def test_no_row_shows_the_new_type_until_a_later_epoch(shard: PrivateServer, begin: Begin) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql("a", "INSERT INTO t VALUES (3, 3)", "ALTER TABLE t DROP c, ADD c BIGINT")
    steps.must_be_equal("t", "id")
    steps.sql("a", "INSERT INTO t VALUES (4, 1 << 40)")
    steps.must_be_equal("t", "id", "c")


def test_an_xa_transaction_of_an_earlier_epoch_does_not_show_the_definition(
    shard: PrivateServer, begin: Begin
) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql("a", "XA START 'x'", "INSERT INTO t VALUES (3, 3)", "XA END 'x'", "XA PREPARE 'x'")
    steps.run()
    steps.sql("a", "XA COMMIT 'x'", "ALTER TABLE t DROP c, ADD c VARCHAR(9)", "INSERT INTO t VALUES (4, 'x')")
    steps.must_be_equal("t", "id", "c")


def test_statements_that_change_nothing(shard: PrivateServer, begin: Begin) -> None:
    steps = begin([shard], [TABLE, ROWS])
    steps.sql(
        "a",
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)",
        "CREATE PROCEDURE p() BEGIN UPDATE t SET c = LENGTH('it\\'s'); END",
        "CREATE VIEW v AS SELECT CONCAT('\\'', c) FROM t",
        "CREATE TABLE u (id INT PRIMARY KEY COMMENT 'don\\'t use t')",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "ALTER TABLE t COMMENT 'x\\', ADD n INT COMMENT 'y\\'",
        "INSERT INTO t VALUES (3, 3, 3)",
    )
    steps.must_be_equal("t", "id", "c", "n")
    if not on_mysql():
        steps.sql(
            "a", "ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT DEFAULT 5", "INSERT INTO t VALUES (4, 4, 4)"
        )
        steps.must_be_equal("t", "id", "c", "n")


UNIQUE = "CREATE TABLE t (id INT NOT NULL, c INT, UNIQUE u (id), KEY other (c))"


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_key_that_was_away_for_a_while(
    shard: PrivateServer, begin: Begin, epochs: int, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin([shard], [UNIQUE, ROWS])
    away = ["INSERT INTO t VALUES (7, 70)", "ALTER TABLE t DROP INDEX u", "INSERT INTO t VALUES (7, 71)"]
    back = ["DELETE FROM t WHERE c = 71", "ALTER TABLE t DROP KEY other, ADD UNIQUE u (id)"]
    steps.sql("a", *away, *back) if epochs == 1 else steps.sql("a", *away)
    steps.must_stop(caplog, "t", "an index was dropped")
    assert any("a unique one was added later" in said for said in caplog.messages) == (epochs == 1)
    steps.sql(
        "a", *(back if epochs == 2 else ()), "CREATE TABLE z (id INT PRIMARY KEY)", "INSERT INTO z VALUES (1)"
    )
    steps.must_be_equal("t", "id", "c")


def test_indexes_that_come_and_go_beside_the_key(shard: PrivateServer, begin: Begin) -> None:
    steps = begin([shard], [UNIQUE, ROWS])
    steps.sql(
        "a", "CREATE UNIQUE INDEX more ON t (c)", "DROP INDEX other ON t", "CREATE INDEX other ON t (c)"
    )
    steps.must_be_equal("t", "id", "c")
    steps.sql("a", "ALTER TABLE t DROP INDEX u, ADD UNIQUE u2 (id)", "INSERT INTO t VALUES (3, 3)")
    steps.must_be_equal("t", "id", "c")


def test_a_table_of_one_shard_loses_and_gets_columns(shards: Shards, begin: Begin) -> None:
    steps = begin(shards, [TABLE, ROWS], ["CREATE TABLE u (id INT PRIMARY KEY)"])
    steps.sql("a", "ALTER TABLE t DROP c")
    steps.must_be_equal("t", "id")
    with pytest.raises(KeyError):
        steps.lake("t", "c")
    steps.sql("a", "ALTER TABLE t ADD c BIGINT", "UPDATE t SET c = 5 WHERE id = 1")
    steps.must_be_equal("t", "id", "c")


def test_a_shard_without_the_table_drops_others(
    shards: Shards, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin(shards, [TABLE, ROWS], ["CREATE TABLE u (id INT PRIMARY KEY)"])
    steps.sql(
        "b", "CREATE TABLE tmp_t (id INT PRIMARY KEY, c INT)", "ALTER TABLE tmp_t DROP c", "DROP TABLE tmp_t"
    )
    steps.sql("b", "DROP TABLE IF EXISTS t", "DROP TABLE u")
    steps.must_stop(caplog, "u", r"shard b at .*: it was dropped")
    assert not any(".t stands as of" in said for said in caplog.messages)


def test_a_table_that_another_shard_has_is_created(
    shards: Shards, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin(shards, [TABLE, ROWS], ["CREATE TABLE u (id INT PRIMARY KEY)"])
    steps.sql("b", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, c INT)")
    steps.must_stop(caplog, "t", r"shard b at .*: it was created while the feed was running")
    steps.sql("b", "INSERT INTO t VALUES (5, 5)", "INSERT INTO t VALUES (6, 6)")
    steps.renew("UPDATE t SET c = c + 1")
    steps.must_be_equal("t", "id", "c")


@pytest.mark.parametrize("dropping", ["a", "b"])
def test_a_shard_adds_what_another_drops_in_the_same_epoch(
    shards: Shards, begin: Begin, dropping: str
) -> None:
    adding = "b" if dropping == "a" else "a"
    definitions = {dropping: [TABLE, ROWS], adding: ["CREATE TABLE t (id INT PRIMARY KEY)"]}
    steps = begin(shards, definitions["a"], definitions["b"])
    steps.sql(dropping, "INSERT INTO t VALUES (3, 3)", "ALTER TABLE t DROP c", "INSERT INTO t VALUES (4)")
    steps.sql(adding, "INSERT INTO t VALUES (7)", "ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (8, 42)")
    steps.run()
    dropped = [(dropping, n, None) for n in (1, 2, 3, 4)]
    assert steps.lake("t", "id", "c") == sorted([*dropped, (adding, 7, None), (adding, 8, 42)])
    steps.sql(adding, "UPDATE t SET c = 43")
    steps.run()
    assert steps.lake("t", "id", "c") == sorted([*dropped, (adding, 7, 43), (adding, 8, 43)])


@pytest.mark.parametrize("again", ["a", "b"])
@pytest.mark.parametrize("first", [[], ["INSERT INTO t VALUES (9, 9)"]], ids=["no row", "a row"])
def test_a_shard_adds_what_another_drops_and_adds_again_in_the_same_epoch(
    shards: Shards, begin: Begin, again: str, first: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    adding = "b" if again == "a" else "a"
    definitions = {again: [TABLE, ROWS], adding: ["CREATE TABLE t (id INT PRIMARY KEY)"]}
    steps = begin(shards, definitions["a"], definitions["b"])
    steps.sql(again, "ALTER TABLE t DROP c, ADD c INT", *first)
    steps.sql(adding, "ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (8, 42)")
    steps.must_stop(caplog, "t", "cannot be told")
    for one in "ab":
        steps.sql(one, "INSERT INTO t (id) VALUES (20), (21)", "INSERT INTO t (id) VALUES (22)")
    steps.renew("UPDATE t SET c = c + 1")
    steps.must_be_equal("t", "id", "c")


def test_two_shards_drop_and_add_other_columns_crosswise(
    shards: Shards, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither order of the two gives what both tasks have written: the table is copied anew, and no value is lost."""
    steps = begin(
        shards,
        ["CREATE TABLE t (id INT PRIMARY KEY, c INT)"],
        ["CREATE TABLE t (id INT PRIMARY KEY, d INT)"],
    )
    steps.sql("a", "ALTER TABLE t DROP c, ADD d INT", "INSERT INTO t VALUES (1, 1)")
    steps.sql("b", "ALTER TABLE t DROP d, ADD c INT", "INSERT INTO t VALUES (2, 2)")
    steps.must_stop(caplog, "t", r"column \w was added on shard \w, and dropped on another")
    for one in "ab":
        steps.sql(one, "INSERT INTO t (id) VALUES (20)", "INSERT INTO t (id) VALUES (22)")
    steps.renew("UPDATE t SET id = id + 0")
    assert {row[1:] for row in steps.lake("t", "id", "c")} == {(1, None), (2, 2), (20, None), (22, None)}


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


@pytest.mark.parametrize("change", ["ADD n INT", "DROP c"])
def test_schema_change_fail_ends_the_run_before_the_epoch(
    shard: PrivateServer, begin: Begin, change: str
) -> None:
    steps = begin([shard], [TABLE, ROWS], schema_change="fail")
    steps.sql("a", "CREATE INDEX i ON t (c)", "INSERT INTO t VALUES (3, 3)")
    steps.must_be_equal("t", "id", "c")
    steps.sql("a", "INSERT INTO t VALUES (4, 4)", f"ALTER TABLE t {change}")
    for _ in range(2):
        with pytest.raises(
            Unsupported, match=r"shard a, \w+\.t at .*: columns were altered: \w (added|dropped), and"
        ):
            steps.run()
    assert steps.lake("t", "id", "c") == [("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]
    steps.set(schema_change="evolve")
    steps.must_be_equal("t", *steps.columns("a", "t"))


def test_one_new_column_written_differently_on_two_shards(
    shards: Shards, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    steps = begin(shards, [TABLE, ROWS], [TABLE, ROWS])
    steps.sql("a", "ALTER TABLE t ADD n INT", "INSERT INTO t VALUES (3, 3, 3)")
    steps.sql("b", "ALTER TABLE t ADD N INT", "INSERT INTO t VALUES (3, 3, 3)")
    steps.must_stop(caplog, "t", r"shard b: .*t does .*column N is written n on other shards")


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
