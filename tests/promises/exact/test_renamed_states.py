"""Columns renamed in tables of each state, mode and policy; and those that are copied again."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from catchment.model.errors import Unsupported
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.renaming import (
    BEGIN,
    FURTHER,
    OTHER,
    PROOF,
    RENAME,
    begun,
    must_be_settled,
    of_others,
    some_wide,
)
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_filled import never_stale
from tests.world.settled import settled

FAULTS = (Fault.AFTER_PLAN, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of one table on two shards that has caught up."""
    return begun(tmp_path, fresh_schema(*shards), monkeypatch, {"-80": shards[0], "80-": shards[1]})


@pytest.mark.wide
@pytest.mark.parametrize("mode", ["soft_delete", "history"])
@pytest.mark.parametrize("options", [{}, {"changes": True}, {"vectors": False, "changes": True}])
def test_modes(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    options: dict[str, bool],
) -> None:
    """A table whose mode keeps the past could not be copied again without losing it."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(modes=[{"match": f"{steps.schema}.*", "mode": mode}])
    steps.set(sink={"path": str(steps.feed.sink.path), **options})
    steps.everywhere(*BEGIN)
    steps.run()
    settled(steps.feed)
    steps.sql("-80", "UPDATE t SET a = 11 WHERE id = 1", RENAME, "DELETE FROM t WHERE id = 2")
    steps.run()
    settled(steps.feed)
    steps.sql("80-", RENAME)
    steps.sql("80-", "DELETE FROM t WHERE id = 1", "UPDATE t SET v = 'x' WHERE id = 2")
    steps.must_be_equal("t", "id", "c", "v")
    settled(steps.feed)
    assert steps.lake("t", "id", "c", "v") == steps.source("t", "id", "c", "v")
    # Rows and versions that are gone keep what they had.
    gone = {row[:3] for row in of_others(steps, "id", "c")} - {
        row[:3] for row in steps.source("t", "id", "c")
    }
    past = {("-80", 1, 10)} if mode == "history" else set()
    assert gone == {("-80", 2, 20), ("80-", 1, 10), *past}
    assert never_stale(steps)


@pytest.mark.wide
def test_changes_without_vectors(steps: Steps) -> None:
    steps.set(sink={"path": str(steps.feed.sink.path), "vectors": False, "changes": True})
    settled(steps.feed)
    steps.sql("-80", RENAME)
    steps.must_be_equal("t", "id", "v")
    settled(steps.feed)
    assert [row[2] for row in of_others(steps, "id", "c")] == [10, 20, None, None, None, None]
    steps.sql("80-", RENAME, "UPDATE t SET c = 5 WHERE id = 1")
    steps.run()
    must_be_settled(steps, "id", "c", "v")
    directory = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "t"))
    table = DeltaTable(directory)
    told = pa.table(table.load_cdf(starting_version=table.version()).read_all()).to_pylist()
    found = sorted((row["_change_type"], row["id"], row["c"]) for row in told if row["id"] < 3)
    assert found == [
        ("update_postimage", 1, 5),
        ("update_postimage", 2, 20),
        ("update_preimage", 1, None),
        ("update_preimage", 2, None),
    ]


REFUSED = {
    "a part of the key": ("ALTER TABLE t CHANGE id ident INT", "ident", {}),
    "a swap": ("ALTER TABLE t CHANGE a v INT, CHANGE v a VARCHAR(9)", "id", {}),
    "another definition": ("ALTER TABLE t CHANGE a c SMALLINT", "id", {}),
    "the case of letters": ("ALTER TABLE t CHANGE a A INT", "id", {}),
    "named by a rule": (RENAME, "id", {"columns": [{"match": "*.t.a", "rename": "shown"}]}),
}


@pytest.mark.parametrize(("statement", "key", "options"), some_wide(REFUSED, ("a swap",)))
def test_others_are_copied(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    key: str,
    options: dict[str, list[dict[str, str]]],
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(**options)
    steps.everywhere(*BEGIN, OTHER)
    steps.run()
    steps.everywhere(statement, PROOF)
    steps.renew(PROOF)
    steps.must_be_equal("t", key)
    assert not never_stale(steps)


@pytest.mark.wide
@pytest.mark.parametrize("definition", ["g INT AS (a + 1) STORED", "g INT AS (1 + 1) VIRTUAL"])
def test_a_table_with_generated_columns_is_copied(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    definition: str,
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.everywhere(f"CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT, {definition})", OTHER)
    steps.everywhere("INSERT INTO t (id, a, v) VALUES (1, 1, 1)")
    steps.run()
    steps.everywhere("ALTER TABLE t RENAME COLUMN v TO w", PROOF)
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "a", "w", "g")
    assert not never_stale(steps)


@pytest.mark.wide
def test_a_column_of_a_foreign_key_is_copied(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server renames it in the key, too. Others of the same tables are followed."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(shards[0]))
    steps.everywhere(
        "CREATE TABLE p (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE t (id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        OTHER,
    )
    steps.run()
    steps.everywhere("ALTER TABLE t RENAME COLUMN n TO m", "ALTER TABLE p RENAME COLUMN n TO m")
    steps.must_be_equal("t", "id", "p", "m")
    steps.everywhere("DELETE FROM p WHERE id = 1")
    steps.must_be_equal("t", "id", "p", "m")
    assert never_stale(steps)
    steps.everywhere("ALTER TABLE t RENAME COLUMN p TO parent", PROOF, "DELETE FROM p WHERE id = 2", PROOF)
    steps.run()
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "parent", "m")
    assert not never_stale(steps)
    steps.everywhere("DELETE FROM p WHERE id = 3", PROOF)
    steps.must_be_equal("t", "id", "parent", "m")


@pytest.mark.wide
def test_what_files_are_arranged_by_is_copied(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(shards[0]))
    steps.set(arrange=[{"match": "*.t", "cluster_by": ["a"]}])
    steps.everywhere(*BEGIN, OTHER)
    steps.run()
    steps.everywhere(RENAME, PROOF)
    steps.run()
    assert not never_stale(steps)
    steps.set(arrange=[])
    steps.renew(PROOF)
    steps.must_be_equal("t", "id", "c", "v")


@pytest.mark.wide
@pytest.mark.parametrize("policy", ["freeze", "fail"])
def test_policies(steps: Steps, policy: str) -> None:
    steps.set(schema_change=policy)
    steps.everywhere(RENAME, "UPDATE t SET c = 1")
    before = steps.lake("t", "id", "a")
    if policy == "fail":
        with pytest.raises(Unsupported, match="a to c renamed"):
            steps.run()
    else:
        steps.run()
        assert not never_stale(steps)
    assert steps.lake("t", "id", "a") == before


@pytest.mark.wide
def test_while_the_table_is_copied(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one row each, and renamings between runs that have not copied all."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(copy={"chunk_rows_max": 1, "group_time": "0s", "groups_per_shard": 1})
    steps.everywhere(*BEGIN, *(f"INSERT INTO t VALUES ({key}, {key}, 'x')" for key in range(11, 40)))
    copying = 0
    for number, fault in enumerate((Fault.AFTER_EPOCH_ROW, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY) * 2):
        steps.die_again_and_again(fault, 1)
        row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
        copying += row is not None and not row.manifest.cut.copied
        shard = "-80" if number % 2 else "80-"
        old, new = steps.columns(shard, "t")[1], f"c{number}"
        steps.sql(
            shard,
            f"UPDATE t SET {old} = {number} WHERE id % 3 = 0",
            f"ALTER TABLE t RENAME COLUMN {old} TO {new}",
            f"UPDATE t SET {new} = -{number} WHERE id % 5 = 0",
        )
    assert copying > 2
    for shard in steps.servers:
        steps.sql(shard, f"ALTER TABLE t RENAME COLUMN {steps.columns(shard, 't')[1]} TO z")
    steps.must_be_equal("t", "id", "z", "v")
    must_be_settled(steps, "id", "z", "v")
    assert never_stale(steps)


@pytest.mark.parametrize(
    "fault",
    some_wide({one.value: (one,) for one in FAULTS}, (Fault.AFTER_MANIFEST.value,)),
)
def test_a_run_that_dies_anywhere_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.sql("-80", "UPDATE t SET a = 11 WHERE id = 1", RENAME, "UPDATE t SET c = 5 WHERE id = 2")
    steps.die_again_and_again(fault, 4)
    steps.everywhere("UPDATE t SET v = 'x' WHERE id = 3")
    steps.sql("-80", FURTHER)
    steps.die_again_and_again(fault, 4)
    steps.sql("80-", "UPDATE t SET a = 7 WHERE id = 1", RENAME, "DELETE FROM t WHERE id = 2", FURTHER)
    steps.die_again_and_again(fault, 4)
    steps.must_be_equal("t", "id", "d", "v")
    must_be_settled(steps, "id", "d", "v")
    assert never_stale(steps)
