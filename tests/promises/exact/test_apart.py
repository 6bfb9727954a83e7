"""DDL on one shard before the other: each shard's rows are as that shard has them."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from catchment.cli.main import execute
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.ddl_cases import BIG, LABELS, LONG, TEXT, WIDE, WIDENED
from tests.promises.exact.steps import Steps, run_here

SHARDS = ("-80", "80-")
FILLED = "ALTER TABLE t ADD m INT NOT NULL DEFAULT {}"
LARGE = "UPDATE t SET {} = 1234567890123 WHERE id = {}"
RENAME, FURTHER = "ALTER TABLE t RENAME COLUMN n TO m", "ALTER TABLE t RENAME COLUMN m TO o"
ROW = "INSERT INTO t (id, b) VALUES (5{0}, '{0}')"
# Statements of steps that each shard takes in an epoch of its own; a pair: the second shard takes others.
CHAINS: dict[str, Sequence[str | tuple[str, str]]] = {
    "added": ("ALTER TABLE t ADD k INT", "UPDATE t SET k = 7 WHERE id = 3"),
    "dropped": ("ALTER TABLE t DROP d",),
    "truncated": ("TRUNCATE t", "INSERT INTO t (id, b) VALUES (2, 'x'), (6, 'y')", "TRUNCATE t"),
    "filled": ((FILLED.format(4), FILLED.format(5)), "UPDATE t SET m = 9 WHERE id = 3"),
    "filled_renamed": (FILLED.format(4), FURTHER, "ALTER TABLE t CHANGE o p INT NOT NULL DEFAULT 4"),
    "text": (TEXT, f"UPDATE t SET v = {LONG} WHERE id = 2"),
    "labels": (LABELS, "UPDATE t SET e = 'z' WHERE id = 2"),
    "integers": ("ALTER TABLE t MODIFY n BIGINT", LARGE.format("n", 2)),
    "decimals": (WIDE, f"UPDATE t SET {BIG} WHERE id = 2"),
    "renamed": (RENAME, "UPDATE t SET m = 6 WHERE id = 2", FURTHER),
    "renamed_far_apart": ((RENAME, ""), (FURTHER, RENAME), ("", FURTHER)),
    "wider_renamed": ("ALTER TABLE t MODIFY n BIGINT", RENAME, FURTHER),
    "renamed_wider": (RENAME, "ALTER TABLE t MODIFY m BIGINT", FURTHER),
    "text_renamed": (
        "ALTER TABLE t RENAME COLUMN v TO m",
        "ALTER TABLE t CHANGE m o VARCHAR(40)",
        "ALTER TABLE t CHANGE o p TEXT",
    ),
    "types_apart": (
        (f"ALTER TABLE t MODIFY n BIGINT; {LARGE.format('n', 1)}; {RENAME}", f"{RENAME}; UPDATE t SET m = 5"),
        (FURTHER, f"{FURTHER}; ALTER TABLE t MODIFY o BIGINT; {LARGE.format('o', 2)}"),
    ),
}


@pytest.mark.parametrize("settles", [True, False])
def test_one_shard_before_the_other(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settles: bool,
) -> None:
    """`settles`: behind each epoch, or all at once at the end. Then every chain has a second table, which gets no other
    rows in the epochs of its statements."""
    run_here(monkeypatch)
    steps = Steps(tmp_path, dict(zip(SHARDS, shards, strict=True)), fresh_schema(*shards))
    tables = {f"{chain}_{how}": chain for chain in CHAINS for how in ("among_rows", "alone")[: 2 - settles]}
    cases = Cases(steps, dict.fromkeys(tables, WIDENED.begin))
    cases.begin()
    for number, step in enumerate(zip_longest(*CHAINS.values(), fillvalue="")):
        told = dict(zip(CHAINS, step, strict=True))
        for place, shard in enumerate(SHARDS):
            turn = {}
            for table, chain in tables.items():
                said = told[chain]
                turn[table] = said[place] if isinstance(said, tuple) else said
                if not table.endswith("alone"):
                    turn[table] = (
                        f"INSERT INTO t (id, b) VALUES ({10 + number}, 'r'); {turn[table]};"
                        f"DELETE FROM t WHERE id = {9 + number}; UPDATE t SET id = -id WHERE id = {1 + place}"
                    )
            cases.turn(turn, shard)
            if not place:
                # The other shard goes on with its former definition, and writes rows that have all values.
                cases.turn(
                    dict.fromkeys(tables, f"UPDATE t SET b = '{number}' WHERE id = 2; {ROW.format(number)}")
                )
            if settles:
                cases.settle()
            else:
                cases.compare()
            assert execute(["verify", str(steps.file)]) == 0
    cases.settle()
    cases.must_be_followed()
    for shape in every_epoch(steps)[-1].manifest.shapes:
        live = {column.physical for column in shape.columns if column.live}
        assert not [one for one in shape.widened if one.shards and one.column in live], (
            "a former type is noted still"
        )
