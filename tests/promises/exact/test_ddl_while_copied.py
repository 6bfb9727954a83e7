"""DDL by a feed that dies again and again: while it copies the tables, and when it has."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.steps import Steps, run_here

SHARDS = ("-80", "80-")
BEGIN = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(9)) CHARACTER SET utf8mb4",
    *(f"INSERT INTO t VALUES ({key}, {key}, 'x')" for key in (1, 2, 3, *range(11, 26))),
)
FAULTS = (
    Fault.AFTER_EPOCH_ROW,
    Fault.AFTER_MANIFEST,
    Fault.AFTER_APPLY,
    Fault.AFTER_PLAN,
    Fault.BETWEEN_APPLIES,
)
TIMES_MAX = 12


def turn(number: int) -> dict[str, str]:
    """Rows and DDL of each table, for the shard whose turn it is."""
    old, new = "a" if number < 2 else f"c{number - 2}", f"c{number}"
    longer, bigger = 20 + number, ", MODIFY a BIGINT" if number in (4, 5) else ""
    return {
        "truncated": "INSERT INTO t (id) VALUES (9), (0); TRUNCATE t;"
        f"INSERT INTO t (id, a) VALUES (2, {number}), (7, 7)",
        "filled": f"UPDATE t SET v = 'f{number}' WHERE id % 3 = 0; ALTER TABLE t ADD m{number} INT NOT NULL DEFAULT 6;"
        f"UPDATE t SET m{number} = {number} WHERE id % 5 = 0; DELETE FROM t WHERE id = {11 + number}",
        "wider": f"UPDATE t SET a = {number} WHERE id % 3 = 0; ALTER TABLE t MODIFY v VARCHAR({longer}){bigger};"
        f"UPDATE t SET v = REPEAT('w', {longer}) WHERE id % 5 = 0",
        "renamed": f"UPDATE t SET {old} = {number} WHERE id % 3 = 0; ALTER TABLE t RENAME COLUMN {old} TO {new};"
        f"UPDATE t SET {new} = -{number} WHERE id % 5 = 0",
    }


def test_a_run_that_dies_anywhere_is_gone_on_with(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run dies once at each place while chunks of one row are copied, then at each again and again."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, dict(zip(SHARDS, shards, strict=True)), fresh_schema(*shards))
    steps.set(copy={"chunk_rows_max": 1, "group_time": "0s", "groups_per_shard": 1})
    cases = Cases(steps, dict.fromkeys(turn(0), BEGIN))
    cases.make()
    copying = 0
    for number, fault in enumerate(FAULTS):
        steps.die_again_and_again(fault, 1)
        rows = every_epoch(steps)
        copying += bool(rows) and not rows[-1].manifest.cut.copied
        cases.write(turn(number), SHARDS[number % 2])
    assert copying > 2
    steps.run()
    cases.compare()
    cases.settle()
    for number, fault in enumerate(FAULTS, len(FAULTS)):
        cases.write(turn(number), SHARDS[number % 2])
        steps.die_again_and_again(fault, TIMES_MAX)
        steps.run()
        cases.compare()
    cases.settle()
    cases.must_be_followed()
