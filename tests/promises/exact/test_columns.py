"""Columns that a feed leaves out, masks or renames: what is hidden is kept nowhere, and all the rest is exact."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import catchment
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import verify as verification
from catchment.model.errors import ConfigError
from catchment.rewind import spill
from tests.promises.exact.cases import Cases
from tests.promises.exact.people import (
    HIDDEN,
    KEY,
    RULES,
    TABLE,
    digest,
    insert,
    into,
    must_be_nowhere,
    must_be_right,
)
from tests.promises.exact.steps import Steps, run_here
from tests.world.engines import Here
from tests.world.settled import settled


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(columns=RULES, mask_key=KEY)
    return found


@pytest.mark.promise(
    "excluded and masked values are in no file of the lake or the state store, and all other values are exact"
)
def test_what_is_hidden_is_nowhere_and_the_rest_is_exact(steps: Steps) -> None:
    for shard, first in (("a", 1), ("b", 1001)):
        steps.sql(shard, TABLE, insert(first, 300))
    steps.run()
    must_be_right(steps)
    must_be_nowhere(steps)

    steps.sql(
        "a",
        insert(400, 20),
        "UPDATE people SET secret_plan = 'hidden again' WHERE id < 20",
        "UPDATE people SET email = 'hidden@elsewhere' WHERE id BETWEEN 10 AND 30",
        "UPDATE people SET id = id + 5000, note = NULL WHERE id BETWEEN 40 AND 50",
        "DELETE FROM people WHERE id BETWEEN 60 AND 70",
        "XA START 'm'",
        insert(700, 5),
        "XA END 'm'",
        "XA PREPARE 'm'",
    )
    steps.run()
    steps.sql("a", "XA COMMIT 'm'")
    steps.run()
    must_be_right(steps)
    must_be_nowhere(steps)


def test_columns_that_come_later_have_the_same_rules(steps: Steps) -> None:
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 50))
    steps.run()
    steps.sql(
        "a",
        "ALTER TABLE people ADD COLUMN secret_late TEXT, DROP COLUMN card, DROP COLUMN email",
        "UPDATE people SET secret_late = 'hidden late', open = 7",
    )
    steps.run()
    steps.sql("a", "UPDATE people SET open = 8 WHERE id < 9")
    steps.sql("b", "ALTER TABLE people ADD COLUMN secret_late TEXT, DROP COLUMN card, DROP COLUMN email")
    steps.run()
    for shard in "ab":
        steps.sql(shard, "ALTER TABLE people ADD COLUMN card VARCHAR(40), ADD COLUMN Email VARCHAR(80)")
        steps.sql(shard, "UPDATE people SET card = 'hidden card 99', email = 'hidden@new' WHERE id < 9")
    steps.run()
    COLUMNS_NOW = ["_shard", "id", "age", "token", "note", "remark", "open", "card", "Email"]
    rows = catchment.read(steps.feed, f"{steps.schema}.people").arrow()
    assert [c for c in rows.schema.names if c != "_epoch"] == COLUMNS_NOW
    settled(steps.feed)
    for row in rows.to_pylist():
        new = row["id"] < 9
        assert (row["card"], row["Email"]) == (
            ("****" + " 99", digest("hidden@new")) if new else (None, None)
        )
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    assert verification.verify(steps.feed, endpoints, Here()).differences == 0
    must_be_nowhere(steps)


def test_what_was_hidden_is_not_shown_under_another_name(steps: Steps) -> None:
    """A table waits until there is a rule for the other name, also where it was ordered to be copied before. It is
    shown when somebody orders a copy behind the renaming."""
    names, proof = ("people", "people_swapped", "people_ordered"), "INSERT INTO other VALUES (NULL)"
    cases = Cases(steps, dict.fromkeys(names, (TABLE.replace(" people ", " t "), into("t", 1, 30))))
    cases.make()
    steps.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)")
    steps.run()
    tables = [f"{steps.schema}.{name}" for name in names]
    before = [state.arrow() for state in catchment.read(steps.feed, tables)]
    assert execute(["dump", "restart", str(steps.file), "--table", tables[2]]) == 0
    renamed = "ALTER TABLE t CHANGE email mail VARCHAR(80)"
    swapped = "CREATE TABLE _t_gho LIKE t; ALTER TABLE _t_gho CHANGE email mail VARCHAR(80);"
    swapped += "INSERT INTO _t_gho SELECT * FROM t; RENAME TABLE t TO _t_del, _t_gho TO t"
    cases.write({"people": renamed, "people_swapped": swapped, "people_ordered": renamed})
    for _ in range(2):
        steps.everywhere(proof)
        steps.run()
        for state, rows in zip(catchment.read(steps.feed, tables), before, strict=True):
            assert state.arrow().equals(rows), state.shape.table
    must_be_nowhere(steps)
    steps.set(columns=[{"match": f"*.{name}.mail", "mask": "hmac"} for name in names[:2]] + RULES)
    for _ in range(2):
        steps.everywhere(proof)
        steps.run()
    for state in catchment.read(steps.feed, tables[:2]):
        rows = state.arrow()
        assert "Email" not in rows.schema.names
        assert set(rows["mail"].to_pylist()) == {None, *(digest(f"{HIDDEN}{n}@é.example") for n in range(5))}
    must_be_nowhere(steps)
    assert execute(["dump", "start", str(steps.file), "--table", tables[2]]) == 0
    steps.renew(proof)
    assert f"{HIDDEN}1@é.example" in catchment.read(steps.feed, tables[2]).arrow()["mail"].to_pylist()


def test_rows_that_lie_on_disk_for_a_while_are_masked(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction larger than memory holds is spilled: what is hidden is not in those files either."""
    written: list[bytes] = []
    write = spill.Spilling._write

    def noted(self: spill.Spilling, table: pa.Table) -> spill.Extent:
        written.extend(str(column.to_pylist()).encode() for column in table.itercolumns())
        return write(self, table)

    monkeypatch.setattr(spill.Spilling, "_write", noted)
    monkeypatch.setattr("catchment.rewind.spool.MEMORY_BYTES", 4096)
    monkeypatch.setattr("catchment.rewind.spool.Spool.__init__.__defaults__", (4096, 0))
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 10))
    steps.run()
    steps.sql("a", insert(100, 400), "UPDATE people SET open = 1")
    steps.run()
    assert written, "nothing was spilled"
    assert not any(HIDDEN.encode() in text for text in written)
    must_be_right(steps)


def test_change_data_and_commands(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed is told in the same form, and the commands read the key from where the file says it is."""
    monkeypatch.setenv("PEOPLE_KEY", KEY)
    sink = {"path": str(steps.feed.sink.path), "changes": True}
    steps.set(sink=sink, mask_key={"env": "PEOPLE_KEY"})
    for shard in "ab":
        steps.sql(shard, TABLE, insert(1, 9))
    steps.run()
    settled(steps.feed)
    since = catchment.read(steps.feed, f"{steps.schema}.people").epoch
    steps.sql("a", "UPDATE people SET email = 'hidden@new', comment = 'new' WHERE id = 5")
    steps.run()
    settled(steps.feed)
    told = catchment.changes(steps.feed, f"{steps.schema}.people", since=since).arrow().to_pylist()
    assert [(row["remark"], row["Email"]) for row in sorted(told, key=lambda row: row["_change_type"])] == [
        ("new", digest("hidden@new")),
        ("said 5", digest("hidden0@é.example")),
    ]
    must_be_nowhere(steps)
    assert execute(["verify", str(steps.file)]) == 0
    assert execute(["doctor", str(steps.file)]) == 0
    steps.set(columns=RULES[1:])
    assert execute(["verify", str(steps.file)]) == ConfigError.exit_code
    assert execute(["doctor", str(steps.file)]) != 0
