"""DDL on tables whose mode keeps the past: what is followed keeps it as it was, and all else makes the table stale."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, by_delta_rs, every_epoch, stale_since
from tests.promises.exact.ddl_cases import BIG, LONG, RENAME, RENAMED, TEXT, WIDE, WIDENED
from tests.promises.exact.steps import Steps, run_here
from tests.world.settled import settled

MODES = ("append", "soft_delete", "history")
FILLED = "ALTER TABLE t ADD m INT NOT NULL DEFAULT 4"
# By the beginning of a table's name: what made it, and what each shard runs in epochs of its own.
FOLLOWED = {
    "wider": (
        WIDENED.begin,
        ("UPDATE t SET n = 4 WHERE id = 1", f"{WIDE}; {TEXT}", f"UPDATE t SET {BIG}, v = {LONG}"),
    ),
    "renamed": (
        RENAMED.begin,
        (
            f"UPDATE t SET a = 11 WHERE id = 1; {RENAME}; DELETE FROM t WHERE id = 2",
            "UPDATE t SET v = 'x' WHERE id = 3",
        ),
    ),
    "filled": (
        RENAMED.begin,
        (
            f"UPDATE t SET a = 11 WHERE id = 1; {FILLED}; DELETE FROM t WHERE id = 2",
            "UPDATE t SET m = 5 WHERE id = 3",
        ),
    ),
}
AS_THEY_WERE = "would be new in changes of before, which the mode keeps as they were"
UNFOLLOWED = {
    **{
        f"truncated_{mode}": ("TRUNCATE t", f"truncated, which logs no rows, and its mode is {mode}")
        for mode in MODES
    },
    "renamed_append": (RENAME, f"a of .* was renamed to c, and it {AS_THEY_WERE}"),
    "filled_append": (FILLED, f"m of .* was added with a value in every row, and it {AS_THEY_WERE}"),
}


def test_tables_whose_mode_keeps_the_past(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    steps.set(modes=[{"match": f"*.*_{mode}", "mode": mode} for mode in MODES])
    tables = {
        f"{name}_{mode}": begin
        for name, (begin, _) in FOLLOWED.items()
        for mode in MODES
        if f"{name}_{mode}" not in UNFOLLOWED
    }
    cases = Cases(steps, {**tables, **dict.fromkeys(UNFOLLOWED, RENAMED.begin)})
    cases.begin()
    settled(steps.feed)
    for number in range(3):
        for shard in steps.servers:
            turn = {table: FOLLOWED[table.partition("_")[0]][1] for table in tables}
            cases.turn({table: said[number] for table, said in turn.items() if number < len(said)}, shard)
            cases.compare()
            settled(steps.feed)
            cases.compare()
    both = ("-80", "80-")
    assert gone(steps, "renamed_soft_delete", "c") == {(shard, 2, 20) for shard in both}
    assert gone(steps, "filled_soft_delete", "m") == {(shard, 2, 4) for shard in both}
    assert gone(steps, "renamed_history", "c") == {
        (shard, *was) for shard in both for was in ((1, 10), (2, 20))
    }
    assert gone(steps, "filled_history", "m") == {(shard, *was) for shard in both for was in ((2, 4), (3, 4))}
    cases.must_be_followed()

    last = every_epoch(steps)[-1].manifest.epoch
    cases.write({table: statement for table, (statement, _) in UNFOLLOWED.items()})
    steps.run()
    stale = stale_since(steps, last)
    assert stale.keys() == UNFOLLOWED.keys()
    for table, (_, why) in UNFOLLOWED.items():
        assert re.search(why, stale[table]), (table, stale[table])


def gone(steps: Steps, table: str, column: str) -> set[tuple[str, int, int]]:
    """What the plain table has of a column in rows and versions that the source has no longer."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    plain = by_delta_rs(place, ("_shard", "id", column)).to_pylist()
    return {(row["_shard"], row["id"], row[column]) for row in plain} - {*steps.source(table, "id", column)}
