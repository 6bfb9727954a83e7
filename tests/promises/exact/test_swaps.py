"""The swap of gh-ost and pt-online-schema-change is followed: the shadow table was born in the log, and nothing is
copied from the source."""

from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.model.epoch import Manifest
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, caught_up, run_here
from tests.promises.exact.test_born import apart  # noqa: F401 (a fixture)
from tests.world.settled import settled

BEGIN = (
    "CREATE TABLE other (id INT PRIMARY KEY)",
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)",
)
MAKE = (
    "CREATE TABLE _t_gho LIKE t",
    "ALTER TABLE _t_gho MODIFY n BIGINT, ADD COLUMN m VARCHAR(9) DEFAULT 'new'",
)
FIRST_CHUNK = "INSERT IGNORE INTO _t_gho (id, n) SELECT id, n FROM t WHERE id <= 3"
MEANWHILE = (
    "UPDATE t SET n = 21 WHERE id = 2", "REPLACE INTO _t_gho (id, n) VALUES (2, 21)",
    "DELETE FROM t WHERE id = 3", "DELETE FROM _t_gho WHERE id = 3",
    "REPLACE INTO t VALUES (7, 70)", "REPLACE INTO _t_gho (id, n) VALUES (7, 70)",
)  # fmt: skip
SECOND_CHUNK = "INSERT IGNORE INTO _t_gho (id, n) SELECT id, n FROM t WHERE id > 3"
BEHIND = "UPDATE t SET m = 'new2' WHERE id > 6"
CUT_OVER = "RENAME TABLE t TO _t_del, _t_gho TO t"
COLUMNS = ("id", "n", "m")


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    return caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *BEGIN)


def manifests(steps: Steps) -> list[Manifest]:
    return [row.manifest for row in EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()]


def copies(steps: Steps) -> int:
    """In how many epochs rows were copied from the source, the feed's first copy left out."""
    copied = [one.epoch for one in manifests(steps) if one.chunk_bytes]
    return len(copied) - 1


def shadows(steps: Steps) -> dict[str, tuple[str, ...]]:
    """The shadow tables that are followed, and the shards that have them."""
    return {one.table.name: one.shards for one in manifests(steps)[-1].shadows}


def migrate(steps: Steps) -> None:
    """All that a tool does up to the cut-over, on every shard, in several epochs."""
    steps.everywhere(*MAKE)
    steps.run()
    assert shadows(steps) == {"_t_gho": ("-80", "80-")}
    steps.everywhere(FIRST_CHUNK)
    steps.run()
    steps.everywhere(*MEANWHILE, SECOND_CHUNK)
    steps.run()


def must_be_swapped(steps: Steps) -> None:
    """The feed has what the source has, without a copy; a settle, too."""
    steps.must_be_equal("t", *COLUMNS)
    assert copies(steps) == 0
    assert shadows(steps) == {}
    assert manifests(steps)[-1].stale == ()
    steps.everywhere("UPDATE t SET n = n + 1 WHERE id = 1", "INSERT INTO t VALUES (8, 80, 'after')")
    steps.must_be_equal("t", *COLUMNS)
    settled(steps.feed)
    steps.everywhere("DELETE FROM t WHERE id = 2")
    steps.must_be_equal("t", *COLUMNS)
    assert copies(steps) == 0


def test_a_swap_copies_nothing(steps: Steps) -> None:
    seen = {manifests(steps)[-1].epoch: steps.source("t", "id", "n")}
    settled(steps.feed)
    migrate(steps)
    assert manifests(steps)[-1].tables == {one.table for one in manifests(steps)[-1].shapes}
    seen[manifests(steps)[-1].epoch] = steps.source("t", "id", "n")
    settled(steps.feed)
    steps.everywhere(
        "REPLACE INTO _t_gho (id, n) VALUES (4, 41)",
        CUT_OVER,
        "UPDATE t SET n = n + 1 WHERE id = 5",
        "INSERT INTO t VALUES (9, 9, 'new')",
    )
    must_be_swapped(steps)
    for epoch, wanted in seen.items():
        rows = catchment.read(steps.file, f"{steps.schema}.t", epoch).arrow().to_pylist()
        assert sorted((row["_shard"], row["id"], row["n"]) for row in rows) == wanted


@pytest.mark.wide
@pytest.mark.parametrize(
    "cut_over",
    [
        ["RENAME TABLE t TO _t_del", "RENAME TABLE _t_gho TO t", BEHIND],
        ["DROP TABLE t", "RENAME TABLE _t_gho TO t", BEHIND],
        [f"{CUT_OVER}, _t_del TO _t_older", "ALTER TABLE t ADD INDEX (n)", BEHIND, "DROP TABLE _t_older"],
        ["UPDATE t SET n = 51 WHERE id = 5", "REPLACE INTO _t_gho (id, n) VALUES (5, 51)", CUT_OVER],
    ],
)
def test_however_it_is_swapped(steps: Steps, cut_over: list[str]) -> None:
    migrate(steps)
    steps.everywhere(*cut_over)
    must_be_swapped(steps)


@pytest.mark.wide
def test_one_shard_long_before_the_other(steps: Steps) -> None:
    """Readers see the table as of the epoch before the first swap, until the last."""
    migrate(steps)
    before = steps.source("t", "id", "n")
    steps.sql("-80", CUT_OVER, "UPDATE t SET n = n + 5")
    for number in range(3):
        steps.sql(
            "80-", f"UPDATE t SET n = {number} WHERE id = 1", f"UPDATE _t_gho SET n = {number} WHERE id = 1"
        )
        steps.sql("-80", f"INSERT INTO t VALUES (10{number}, {number}, 'late')")
        steps.run()
        assert steps.lake("t", "id", "n") == before
        assert shadows(steps) == {"_t_gho": ("80-",)}
    steps.sql("80-", CUT_OVER)
    must_be_swapped(steps)


@pytest.mark.wide
@pytest.mark.parametrize(
    "fault", [Fault.AFTER_MANIFEST, Fault.BETWEEN_APPLIES, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW]
)
def test_a_run_that_dies_meanwhile_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.everywhere(*MAKE)
    steps.run()
    steps.everywhere(FIRST_CHUNK)
    steps.die_again_and_again(fault, 4)
    steps.everywhere(*MEANWHILE, SECOND_CHUNK)
    steps.die_again_and_again(fault, 4)
    steps.everywhere(CUT_OVER, "UPDATE t SET n = n + 1 WHERE id < 6")
    steps.die_again_and_again(fault, 6)
    must_be_swapped(steps)


@pytest.mark.wide
def test_one_that_is_given_up_leaves_nothing(steps: Steps) -> None:
    migrate(steps)
    steps.everywhere("DROP TABLE _t_gho", "UPDATE t SET n = 22 WHERE id = 2")
    steps.must_be_equal("t", "id", "n")
    assert shadows(steps) == {}
    settled(steps.feed)
    left = [file for file in Path(str(steps.feed.sink.path)).glob("_catchment/tail-*/**/*.parquet")]
    assert left == []
    migrate(steps)
    steps.everywhere(CUT_OVER)
    must_be_swapped(steps)


@pytest.mark.wide
@pytest.mark.parametrize(
    "statements",
    [
        [*MAKE, FIRST_CHUNK, SECOND_CHUNK, CUT_OVER],
        [*MAKE, None, FIRST_CHUNK, "ALTER TABLE _t_gho MODIFY n DECIMAL(20,2)", None, SECOND_CHUNK, CUT_OVER],
        ["CREATE TABLE _t_gho AS SELECT * FROM t", "ALTER TABLE _t_gho ADD PRIMARY KEY (id), ADD m INT", None,
         CUT_OVER],
        [*MAKE, None, FIRST_CHUNK, SECOND_CHUNK, None, "ALTER TABLE _t_gho DROP m",
         "ALTER TABLE _t_gho ADD m VARCHAR(9)", CUT_OVER],
        [*MAKE, None, FIRST_CHUNK, SECOND_CHUNK, None, CUT_OVER, "ALTER TABLE t MODIFY n DECIMAL(20,2)"],
        [*MAKE, None, FIRST_CHUNK, SECOND_CHUNK, None, CUT_OVER, "RENAME TABLE t TO _x, _t_del TO t, _x TO _t_del",
         "ALTER TABLE t ADD m INT"],
    ],
    ids=["one epoch", "altered with rows", "made with rows", "altered in the epoch", "altered behind", "swapped back"],
)  # fmt: skip
def test_in_doubt_the_table_is_copied(steps: Steps, statements: list[str | None]) -> None:
    for statement in statements:
        if statement is None:
            steps.run()
        else:
            steps.everywhere(statement)
    steps.renew("INSERT INTO other VALUES (1)", "DELETE FROM other")
    steps.must_be_equal("t", *COLUMNS)
    assert copies(steps) > 0


@pytest.mark.wide
def test_what_a_session_does_to_a_shadow_alone_ends_no_run(
    apart: Servers,  # noqa: F811
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, apart, fresh_schema(*apart.values()))
    steps.everywhere(*BEGIN)
    steps.run()
    for session in ("binlog_format = STATEMENT", "binlog_row_image = MINIMAL"):
        steps.everywhere(
            "DROP TABLE IF EXISTS _t_gho", "CREATE TABLE _t_gho (id INT PRIMARY KEY, n INT, m INT)"
        )
        steps.run()
        assert shadows(steps) == {"_t_gho": ("-80", "80-")}
        steps.everywhere(FIRST_CHUNK)
        steps.run()
        steps.everywhere(f"SET SESSION {session}", "UPDATE _t_gho SET n = 5")
        steps.run()
        assert shadows(steps) == {}
    steps.everywhere(SECOND_CHUNK, CUT_OVER)
    steps.renew("INSERT INTO other VALUES (1)", "DELETE FROM other")
    steps.must_be_equal("t", *COLUMNS)
    assert copies(steps) > 0


def test_a_table_that_the_rules_name_alone(steps: Steps) -> None:
    """Its shadow is followed all the same, also by a run that begins meanwhile."""
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.other"])
    migrate(steps)
    steps.everywhere("TRUNCATE TABLE _t_gho", FIRST_CHUNK, SECOND_CHUNK)
    steps.run()
    steps.everywhere(CUT_OVER)
    must_be_swapped(steps)
