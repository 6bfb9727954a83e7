"""Tables that are made while a feed runs are followed from their first row on, and no row of them is copied."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.promises.exact.conftest import Servers
from tests.promises.exact.manifests import born_on, carried, manifests, must_be_equal, newest
from tests.promises.exact.steps import Steps, run_here
from tests.world.checkpoints import ended_by_checkpoint
from tests.world.servers.chosen import MYSQL, chosen_kind

KEY = ("id", "n")
NEW = "CREATE TABLE {t} (id INT PRIMARY KEY, n INT)"
ROWS = "INSERT INTO {t} (id, n) VALUES (1, 10), (2, 20), (3, 30)"
AS_TEXT = ("SET SESSION binlog_format = STATEMENT", ROWS, "SET SESSION binlog_format = ROW")
SELECTED = "CREATE TABLE {t} (PRIMARY KEY (id)) SELECT * FROM v"
BOTH = {"-80", "80-"}
PROOF = ("INSERT INTO t VALUES (99)", "DELETE FROM t WHERE id = 99")
BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "INSERT INTO t VALUES (1), (2)",
    NEW.format(t="half"),
    ROWS.format(t="half"),
    NEW.format(t="v"),
    "INSERT INTO v VALUES (1, 1), (2, 2)",
)
# However it is made.
WAYS = {
    "simply": [NEW],
    "alike": ["CREATE TABLE {t} LIKE v"],
    "alike_too": ["CREATE TABLE IF NOT EXISTS x (id INT PRIMARY KEY)", "CREATE TABLE {t} (LIKE v)"],
    "longer": [
        "CREATE TABLE {t} (id INT PRIMARY KEY)",
        "ALTER TABLE {t} ADD COLUMN n INT",
        "CREATE INDEX i ON {t} (n)",
    ],
    "shorter": ["CREATE TABLE {t} (id INT PRIMARY KEY, n INT, m INT)", "ALTER TABLE {t} DROP COLUMN m, ADD UNIQUE (n)"],
    "commented": ["CREATE TABLE {t} (id INT PRIMARY KEY, n INT) ENGINE=InnoDB COMMENT='it is'"],
    "twice": ["CREATE TABLE {t} (id INT PRIMARY KEY)", "DROP TABLE {t}", NEW],
    "replaced": ["CREATE TABLE {t} (id INT, n INT)", "CREATE OR REPLACE TABLE {t} (id INT PRIMARY KEY, n INT)"],
    "truncated": [NEW, ROWS, "TRUNCATE TABLE {t}"],
    "selected": [SELECTED, "DELETE FROM {t}"],
    "selected_with_options": [
        "CREATE TABLE {t} (PRIMARY KEY (id)) ENGINE=InnoDB COMMENT='x' DEFAULT CHARSET=latin1 SELECT * FROM v",
        "DELETE FROM {t}",
    ],
    "selected_into_parts": [
        "CREATE TABLE {t} (PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 2 SELECT * FROM v",
        "DELETE FROM {t}",
    ],
}  # fmt: skip
# What of it no log tells.
UNTOLD = {
    "as_text": [NEW, *AS_TEXT],
    "selected_as_text": [
        "SET SESSION binlog_format = STATEMENT",
        SELECTED,
        "SET SESSION binlog_format = ROW",
    ],
    "selected_and_longer": [SELECTED, "ALTER TABLE {t} ADD COLUMN m INT"],
    "longer_with_rows": [NEW, ROWS, "ALTER TABLE {t} ADD COLUMN m INT"],
    "longer_as_text": [NEW, *AS_TEXT, "ALTER TABLE {t} ADD COLUMN m INT"],
    "wider": [NEW, ROWS, "ALTER TABLE {t} MODIFY n BIGINT"],
    "another_key_before": [
        "CREATE TABLE {t} (k INT PRIMARY KEY)", "INSERT INTO {t} VALUES (1)", "DROP TABLE {t}", NEW, ROWS,
    ],
}  # fmt: skip


def known(ways: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The ways that the chosen server knows."""
    without: set[str] = set()
    if chosen_kind() in MYSQL:
        without.add("OR REPLACE")
    if chosen_kind() == "mysql-8.0":
        without.add("SELECT *")  # refused with GTIDs before 8.0.21
    return {
        name: [sql.format(t=name) for sql in made]
        for name, made in ways.items()
        if not any(word in sql for word in without for sql in made)
    }


def begun(servers: Servers, schema: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """A feed of two tables on two shards that has caught up, and takes all others but `v` and `x`."""
    run_here(monkeypatch)
    steps = Steps(directory, servers, schema)
    steps.set(tables=[f"{schema}.*", f"!{schema}.v", f"!{schema}.x"], new_tables="carry")
    steps.everywhere(*BEGIN)
    steps.run()
    return steps


@pytest.mark.promise("a table created while a feed runs is read from the log, without a copy")
def test_tables_are_followed_from_their_first_row(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = begun(servers, fresh_schema(*servers.values()), tmp_path, monkeypatch)
    ways = known(WAYS)
    for name, made in ways.items():
        steps.everywhere(
            *made,
            ROWS.format(t=name),
            f"DELETE FROM {name} WHERE id = 2",
            f"UPDATE {name} SET n = 9 WHERE id = 3",
        )
    steps.sql("-80", NEW.format(t="apart"), ROWS.format(t="apart"))
    steps.sql("-80", "DROP TABLE half", NEW.format(t="half"), "INSERT INTO half VALUES (7, 7)")
    steps.everywhere(NEW.format(t="prepared"), ROWS.format(t="prepared"))
    steps.sql(
        "-80", "XA START 'born'", "INSERT INTO prepared VALUES (5, 50)", "XA END 'born'", "XA PREPARE 'born'"
    )
    try:
        # Nothing has to follow it: on a server at rest, a copy would wait for another transaction.
        steps.everywhere(NEW.format(t="last"))
        steps.run()
        made = [*ways, "prepared", "last"]
        assert carried(newest(steps)) >= {"t", *made}
        assert "apart" not in carried(newest(steps))
        must_be_equal(steps, dict.fromkeys(made, KEY))
        assert {name: born_on(manifests(steps), name) for name in made} == dict.fromkeys(made, BOTH)
    finally:
        steps.sql("-80", "XA COMMIT 'born'")
    steps.sql("-80", "DELETE FROM apart WHERE id = 1", "INSERT INTO t VALUES (4)")
    steps.run()
    steps.sql("80-", NEW.format(t="apart"), ROWS.format(t="apart"))
    steps.everywhere(
        *(f"REPLACE INTO {name} (id, n) VALUES (1, 7), (2, 5)" for name in made), "INSERT INTO t VALUES (6)"
    )
    steps.renew(*PROOF)
    ends = {**dict.fromkeys((*made, "apart", "half"), KEY), "t": ("id",)}
    must_be_equal(steps, ends)
    assert born_on(manifests(steps), "apart") == BOTH
    # Of the shard where it was not made again, its rows are copied.
    assert born_on(manifests(steps), "half") == {"-80"}

    steps.set(copy={"log_budget": "1MB"})
    steps.everywhere("CREATE TABLE blobs (id INT PRIMARY KEY, b LONGBLOB)")
    steps.sql("-80", NEW.format(t="far"), ROWS.format(t="far"))
    steps.run()
    steps.sql("-80", *(f"INSERT INTO blobs VALUES ({number}, REPEAT('b', 600000))" for number in range(2)))
    steps.sql("80-", NEW.format(t="far"), ROWS.format(t="far"), "INSERT INTO t VALUES (8)")
    steps.enter("far", *PROOF)
    must_be_equal(steps, {**ends, "far": KEY})
    assert born_on(manifests(steps), "far") == {"80-"}


def test_what_the_log_does_not_tell_is_copied(
    logging_text: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = begun(logging_text, fresh_schema(*logging_text.values()), tmp_path, monkeypatch)
    ways = known(UNTOLD)
    for made in ways.values():
        steps.everywhere(*made)
    for name in ways:
        steps.enter(name, *PROOF)
    must_be_equal(steps, dict.fromkeys(ways, KEY))
    assert {name: born_on(manifests(steps), name) for name in ways} == {name: set() for name in ways}


@pytest.mark.mariadb("checkpoint events")
def test_a_feed_begins_in_front_of_a_create(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    for shard, server in servers.items():
        for _ in range(100):
            steps.sql(
                shard, "DROP TABLE IF EXISTS u", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (2)"
            )
            steps.sql(shard, "FLUSH BINARY LOGS", NEW.format(t="u"))
            if ended_by_checkpoint(server):
                break
        else:
            raise AssertionError("no checkpoint event came behind the CREATE")
    steps.run()
    must_be_equal(steps, {"u": KEY})
    assert born_on(manifests(steps), "u") == BOTH
    steps.everywhere(ROWS.format(t="u"), "INSERT INTO t VALUES (3)")
    steps.run()
    must_be_equal(steps, {"u": KEY, "t": ("id",)})
