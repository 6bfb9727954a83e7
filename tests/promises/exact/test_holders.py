"""Tables that not all shards have, or that shards alter in different ways: exact, or stale with the reason."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch, stale_since
from tests.promises.exact.steps import Steps, run_here

TABLE, ROWS = "CREATE TABLE t (id INT PRIMARY KEY, c INT)", "INSERT INTO t VALUES (1, 1), (2, 2)"
ID_ALONE = "CREATE TABLE t (id INT PRIMARY KEY)"
PROOF = "INSERT INTO other VALUES (NULL)"
OTHER = ("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)",)
OTHER_SHARD = {"a": "b", "b": "a"}


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    return Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards))


def newest(steps: Steps) -> int:
    """The number of the newest epoch."""
    return every_epoch(steps)[-1].manifest.epoch


def test_one_shard_adds_what_another_drops(steps: Steps) -> None:
    """In the same epoch. The one's former values do not come into the other's new column. Where neither order of the
    two gives what both shards wrote, the table is copied again, and no value is lost."""
    drops = {f"dropped_on_{shard}": shard for shard in "ab"}
    again = {f"again_on_{shard}_{how}": shard for shard in "ab" for how in ("no_row", "a_row")}
    tables = {name: () for name in (*drops, *again, "crosswise")}
    cases = Cases(steps, {**tables, "other": ()})
    first = {
        name: (TABLE, ROWS) if shard == "a" else (ID_ALONE,) for name, shard in {**drops, **again}.items()
    }
    second = {
        name: (TABLE, ROWS) if shard == "b" else (ID_ALONE,) for name, shard in {**drops, **again}.items()
    }
    cases.write({**first, "crosswise": "CREATE TABLE t (id INT PRIMARY KEY, c INT)", "other": OTHER}, "a")
    cases.write({**second, "crosswise": "CREATE TABLE t (id INT PRIMARY KEY, d INT)", "other": OTHER}, "b")
    steps.run()
    cases.compare()

    last = newest(steps)
    for name, shard in drops.items():
        cases.write(
            {name: "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c; INSERT INTO t VALUES (4)"}, shard
        )
        adds = "INSERT INTO t VALUES (7); ALTER TABLE t ADD c INT; INSERT INTO t VALUES (8, 42)"
        cases.write({name: adds}, OTHER_SHARD[shard])
    for name, shard in again.items():
        row = "INSERT INTO t VALUES (9, 9)" if name.endswith("a_row") else ""
        cases.write({name: f"ALTER TABLE t DROP c, ADD c INT; {row}"}, shard)
        cases.write({name: "ALTER TABLE t ADD c INT; INSERT INTO t VALUES (8, 42)"}, OTHER_SHARD[shard])
    cases.write({"crosswise": "ALTER TABLE t DROP c, ADD d INT; INSERT INTO t VALUES (1, 1)"}, "a")
    cases.write({"crosswise": "ALTER TABLE t DROP d, ADD c INT; INSERT INTO t VALUES (2, 2)"}, "b")
    steps.run()
    stale = stale_since(steps, last)
    assert stale.keys() == {*again, "crosswise"}
    assert all("cannot be told" in stale[name] for name in again), stale
    assert re.search(r"column \w was added on shard \w, and dropped on another", stale["crosswise"])
    cases.compare(*drops, "other")

    rows = "INSERT INTO t (id) VALUES (20), (21); INSERT INTO t (id) VALUES (22)"
    cases.write(dict.fromkeys([*again, "crosswise"], rows))
    for name, shard in drops.items():
        cases.write({name: "UPDATE t SET c = 43"}, OTHER_SHARD[shard])
    steps.everywhere(PROOF)
    steps.renew(PROOF)
    cases.settle()
    cases.must_be_followed(*again, "crosswise")


def test_a_name_that_is_written_in_another_case(steps: Steps) -> None:
    cases = Cases(steps, {"t": (TABLE, ROWS)})
    cases.begin()
    last = newest(steps)
    cases.write({"t": "ALTER TABLE t ADD n INT; INSERT INTO t VALUES (3, 3, 3)"}, "a")
    cases.write({"t": "ALTER TABLE t ADD N INT; INSERT INTO t VALUES (3, 3, 3)"}, "b")
    steps.run()
    assert re.search(
        r"shard b: .*t does .*column N is written n on other shards", stale_since(steps, last)["t"]
    )


def test_tables_that_one_shard_has(steps: Steps) -> None:
    """What another shard does to tables of other names, or of a name that it has not, concerns nobody. When it makes
    one, that is copied again."""
    cases = Cases(steps, {"t": (TABLE, ROWS), "u": (ID_ALONE,)}, {"t": "a", "u": "b"})
    cases.begin()
    cases.write({"t": "ALTER TABLE t DROP c"}, "a")
    steps.run()
    cases.compare()
    cases.write({"t": "ALTER TABLE t ADD c BIGINT; UPDATE t SET c = 1 << 40 WHERE id = 1"}, "a")
    steps.run()
    cases.compare()
    # No row shows the new type until a later epoch.
    cases.write({"t": "INSERT INTO t VALUES (3, 3); ALTER TABLE t DROP c, ADD c DECIMAL(9,2)"}, "a")
    steps.run()
    cases.compare()
    cases.write({"t": "INSERT INTO t VALUES (4, 1.25)"}, "a")
    steps.run()
    cases.compare()
    steps.sql(
        "b", "CREATE TABLE tmp_t (id INT PRIMARY KEY, c INT)", "ALTER TABLE tmp_t DROP c", "DROP TABLE tmp_t"
    )
    steps.sql("b", "DROP TABLE IF EXISTS t", "DROP TABLE u")
    steps.run()
    (row,) = [row for row in every_epoch(steps) if row.manifest.stale]
    (one,) = row.manifest.stale
    assert one.table.name == "u"
    assert re.search(r"shard b at .*: it was dropped", one.reason)

    last = newest(steps)
    steps.sql("b", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, c DECIMAL(9,2))")
    steps.run()
    assert re.search(
        r"shard b at .*: it was created while the feed was running", stale_since(steps, last)["t"]
    )
    steps.sql("b", "INSERT INTO t VALUES (5, 5)", "INSERT INTO t VALUES (6, 6)")
    steps.renew("UPDATE t SET c = 7")
    steps.must_be_equal("t", "id", "c")


def test_a_key_that_was_away_for_a_while(steps: Steps) -> None:
    """For a part of an epoch, and for longer."""
    unique = ("CREATE TABLE t (id INT NOT NULL, c INT, UNIQUE u (id), KEY other (c))", ROWS)
    cases = Cases(steps, {"shortly": unique, "longer": unique, "other": OTHER})
    cases.begin()
    last = newest(steps)
    away = "INSERT INTO t VALUES (7, 70); ALTER TABLE t DROP INDEX u; INSERT INTO t VALUES (7, 71)"
    back = "DELETE FROM t WHERE c = 71; ALTER TABLE t DROP KEY other, ADD UNIQUE u (id)"
    cases.write({"shortly": f"{away}; {back}", "longer": away}, "a")
    steps.run()
    stale = stale_since(steps, last)
    assert stale.keys() == {"shortly", "longer"}
    assert all("an index was dropped" in reason for reason in stale.values())
    assert {table for table, reason in stale.items() if "a unique one was added later" in reason} == {
        "shortly"
    }
    cases.write({"longer": back}, "a")
    steps.everywhere(PROOF)
    steps.renew(PROOF)
    cases.compare()
