"""One shard after the other gets an altered table by gh-ost or pt-online-schema-change: nothing is copied from any."""

from collections.abc import Callable
from pathlib import Path

import deltalake
import pytest

import catchment
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Rows, Steps, caught_up
from tests.promises.exact.test_swaps import (
    BEGIN,
    COLUMNS,
    CUT_OVER,
    FIRST_CHUNK,
    MAKE,
    MEANWHILE,
    SECOND_CHUNK,
    copies,
    manifests,
    shadows,
)
from tests.world.servers.chosen import chosen_server
from tests.world.settled import settled

COMMON = ("id", "n")
SHARDS = ("-80", "80-")


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    return caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *BEGIN)


def other_than(shard: str) -> str:
    return next(one for one in SHARDS if one != shard)


def migrate(steps: Steps, *shards: str) -> None:
    """All that a tool does on some shards up to the cut-over, in several epochs."""
    for statements in (MAKE, [FIRST_CHUNK], [*MEANWHILE, SECOND_CHUNK]):
        for shard in shards:
            steps.sql(shard, *statements)
        steps.run()
    assert shadows(steps) == {"_t_gho": shards}


def must_be_exact(steps: Steps, *columns: str) -> None:
    """Nothing is stale, and the lake has what the source has."""
    columns = columns or COMMON
    steps.run()
    assert manifests(steps)[-1].stale == ()
    assert steps.lake("t", *columns) == steps.source("t", *columns)


def must_take_place(steps: Steps, before: Rows) -> None:
    """Readers see the rows of `before` until a settle; then those of now, whatever comes and is settled."""
    steps.run()
    assert [one.settles for one in manifests(steps)[-1].stale] == [True]
    assert steps.lake("t", *COMMON) == before
    settled(steps.feed)
    assert steps.lake("t", *COMMON) == before
    must_be_exact(steps)
    assert shadows(steps) == {}
    assert copies(steps) == 0


class Follower:
    """A job that goes by the change data of a table, and holds its rows."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.rows = steps, dict[tuple[object, ...], tuple[object, ...]]()
        self.since: int | None = None

    def must_have(self, wanted: Rows) -> None:
        told = catchment.changes(self.steps.file, f"{self.steps.schema}.t", self.since)
        self.since = told.until
        rows = sorted(
            told.arrow().to_pylist(), key=lambda row: (row["_commit_version"], row["_change_type"][0] != "d")
        )
        for row in rows:
            key = (row["_shard"], row["id"])
            if row["_change_type"] in ("delete", "update_preimage"):
                assert self.rows.get(key) == (*key, row["n"])
                if row["_change_type"] == "delete":
                    del self.rows[key]
            else:
                self.rows[key] = (*key, row["n"])
        assert sorted(self.rows.values()) == wanted


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"vectors": False, "changes": True}, marks=pytest.mark.wide)]
)
def test_one_shard_after_the_other(steps: Steps, options: dict[str, bool]) -> None:
    steps.set(sink={"path": str(steps.feed.sink.path), **options})
    seen: dict[int, Rows] = {}
    follower = Follower(steps) if options else None
    steps.run()
    settled(steps.feed)
    for number, shard in enumerate(SHARDS):
        other = other_than(shard)
        migrate(steps, shard)
        steps.sql(shard, "UPDATE t SET n = 100 WHERE id = 1", "UPDATE _t_gho SET n = 100 WHERE id = 1")
        steps.sql(other, "UPDATE t SET n = 5 WHERE id = 1")
        steps.run()
        before = steps.source("t", *COMMON)
        assert steps.lake("t", *COMMON) == before
        seen[manifests(steps)[-1].epoch] = before
        # A row that the new table never had goes with the old one.
        steps.sql(shard, "INSERT INTO t (id, n) VALUES (50, 5)")
        steps.run()
        before = steps.source("t", *COMMON)
        steps.sql(shard, "DELETE FROM t WHERE id = 4", "DELETE FROM _t_gho WHERE id = 4", CUT_OVER)
        steps.sql(shard, "UPDATE t SET n = n + 1 WHERE id = 6", f"INSERT INTO t VALUES (1{number}, 1, 'x')")
        steps.sql(other, "DELETE FROM t WHERE id = 5", "REPLACE INTO t (id, n) VALUES (77, 7)")
        must_take_place(steps, before)
        if follower is not None:
            follower.must_have(steps.source("t", *COMMON))
        seen[manifests(steps)[-1].epoch] = steps.source("t", *COMMON)
        steps.everywhere("DELETE FROM t WHERE id IN (1, 77)", "REPLACE INTO t (id, n) VALUES (4, 4), (78, 8)")
        must_be_exact(steps)
        settled(steps.feed)
        steps.everywhere("REPLACE INTO t (id, n) VALUES (1, 1), (5, 5)", "DELETE FROM t WHERE id = 78")
        must_be_exact(steps)
        seen[manifests(steps)[-1].epoch] = steps.source("t", *COMMON)
    must_be_exact(steps, *COLUMNS)
    settled(steps.feed)
    must_be_exact(steps, *COLUMNS)
    for epoch, wanted in seen.items():
        rows = catchment.read(steps.file, f"{steps.schema}.t", epoch).arrow().to_pylist()
        assert sorted((row["_shard"], *(row[name] for name in COMMON)) for row in rows) == wanted
    plain = deltalake.DeltaTable(str(table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "t"))))
    if not options:
        return
    rows = plain.to_pyarrow_table().to_pylist()
    assert sorted((row["_shard"], row["id"], row["n"], row["m"]) for row in rows) == steps.source(
        "t", *COLUMNS
    )


@pytest.mark.wide
@pytest.mark.parametrize(
    "fault",
    [
        Fault.AFTER_PLAN,
        Fault.AFTER_MANIFEST,
        Fault.BETWEEN_APPLIES,
        Fault.AFTER_APPLY,
        Fault.AFTER_EPOCH_ROW,
    ],
)
def test_a_run_that_dies_meanwhile_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.sql("-80", *MAKE)
    steps.run()
    for statements in ([FIRST_CHUNK], [*MEANWHILE, SECOND_CHUNK]):
        steps.sql("-80", *statements)
        steps.die_again_and_again(fault, 4)
    before = steps.source("t", *COMMON)
    steps.sql("-80", CUT_OVER, "UPDATE t SET n = n + 1 WHERE id < 6")
    steps.sql("80-", "UPDATE t SET n = n + 2 WHERE id < 3")
    steps.die_again_and_again(fault, 6)
    assert steps.lake("t", *COMMON) == before
    settled(steps.feed)
    steps.everywhere("UPDATE t SET n = n + 1 WHERE id = 6")
    steps.die_again_and_again(fault, 6)
    must_be_exact(steps)
    assert copies(steps) == 0


@pytest.mark.wide
@pytest.mark.parametrize(
    ("statements", "copied"),
    [
        (["TRUNCATE TABLE t", "INSERT INTO t (id, n) VALUES (1, 2)"], False),
        (["ALTER TABLE t ADD COLUMN later INT DEFAULT 5", "UPDATE t SET n = 8 WHERE id = 6"], False),
        (["ALTER TABLE t RENAME COLUMN n TO o", "ALTER TABLE t RENAME COLUMN o TO n"], False),
        (["ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"], True),
        (["ALTER TABLE t ORDER BY id"], True),
    ],
)
@pytest.mark.parametrize("on", [("-80",), ("80-",), SHARDS])
def test_ddl_while_a_settle_is_waited_for(
    steps: Steps,
    statements: list[str],
    copied: bool,
    on: tuple[str, ...],
) -> None:
    for made in (
        ["CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD COLUMN m INT"],
        [FIRST_CHUNK, SECOND_CHUNK],
    ):
        steps.sql("-80", *made)
        steps.run()
    before = steps.source("t", *COMMON)
    steps.sql("-80", CUT_OVER)
    steps.run()
    for shard in on:
        steps.sql(shard, *statements)
    steps.run()
    assert steps.lake("t", *COMMON) == before
    settled(steps.feed)
    if copied:
        for shard in set(SHARDS).difference(on):
            steps.sql(shard, *statements)
    steps.renew("INSERT INTO other VALUES (1)", "DELETE FROM other")
    must_be_exact(steps)
    settled(steps.feed)
    must_be_exact(steps)
    assert (copies(steps) > 0) == copied


@pytest.mark.wide
def test_another_shard_swaps_while_a_settle_is_waited_for(steps: Steps) -> None:
    migrate(steps, "-80")
    before = steps.source("t", *COMMON)
    steps.sql("-80", CUT_OVER)
    steps.run()
    for statements in (MAKE, [FIRST_CHUNK, SECOND_CHUNK, CUT_OVER]):
        steps.sql("80-", *statements)
        steps.run()
        assert steps.lake("t", *COMMON) == before
    steps.renew("INSERT INTO other VALUES (1)", "DELETE FROM other")
    must_be_exact(steps, *COLUMNS)
    settled(steps.feed)
    must_be_exact(steps, *COLUMNS)


@pytest.mark.wide
@pytest.mark.parametrize(
    "make",
    [
        ["CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho MODIFY n VARCHAR(20)"],
        ["CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho DROP PRIMARY KEY, ADD PRIMARY KEY (n)"],
        ["CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho MODIFY id BIGINT"],
    ],
)
def test_rows_that_do_not_fit_those_of_other_shards_are_copied(steps: Steps, make: list[str]) -> None:
    for statements in (make, [FIRST_CHUNK, SECOND_CHUNK], [CUT_OVER]):
        steps.sql("-80", *statements)
        steps.run()
    stale = manifests(steps)[-1].stale
    assert stale
    assert not any(one.settles for one in stale)
    if "n VARCHAR" not in make[1]:
        for statements in (make, [FIRST_CHUNK, SECOND_CHUNK, CUT_OVER]):
            steps.sql("80-", *statements)
        steps.renew("INSERT INTO other VALUES (1)", "DELETE FROM other")
        must_be_exact(steps)


@pytest.mark.wide
def test_two_of_three_shards(
    fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: Servers
) -> None:
    """The two swap at different times; readers see the table as of the epoch before the first one until both have."""
    with chosen_server(server_id=77, password="t") as third:
        three = {**servers, "x": third}
        steps = caught_up(monkeypatch, tmp_path, three, fresh_schema(*three.values()), *BEGIN)
        migrate(steps, "-80", "80-")
        before = steps.source("t", *COMMON)
        steps.sql("80-", CUT_OVER, "DELETE FROM t WHERE id = 7")
        steps.sql("x", "UPDATE t SET n = 3 WHERE id = 3")
        steps.run()
        assert [one.settles for one in manifests(steps)[-1].stale] == [False]
        assert steps.lake("t", *COMMON) == before
        steps.sql("-80", CUT_OVER, "INSERT INTO t VALUES (90, 9, 'x')")
        steps.sql("80-", "UPDATE t SET n = 3 WHERE id = 1")
        must_take_place(steps, before)
        settled(steps.feed)
        migrate(steps, "x")
        before = steps.source("t", *COMMON)
        steps.sql("x", CUT_OVER)
        must_take_place(steps, before)
        must_be_exact(steps, *COLUMNS)
