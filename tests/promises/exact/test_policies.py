"""Tables of one feed for which DDL means different things: one is followed, one stays as it was, one ends the run."""

from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.model.errors import ConfigError, Unsupported
from tests.conftest import Shards
from tests.promises.exact.cases import Cases, every_epoch
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_orders import running
from tests.world.patience import PATIENCE_SECONDS, until

PROOF = "INSERT INTO other VALUES ()"
FREEZE, FAIL = "freeze", "fail"
TABLE = ("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
# By what they do, and why a table that is not followed is stale.
STATEMENTS = {
    "added": ("ALTER TABLE t ADD COLUMN m INT", "columns were altered: m added"),
    "dropped": ("ALTER TABLE t DROP n", "columns were altered: n dropped"),
    "renamed": ("ALTER TABLE t RENAME COLUMN n TO m", "columns were altered: n to m renamed"),
    "wider": ("ALTER TABLE t MODIFY n BIGINT", "columns were altered: n modified"),
    "truncated": ("TRUNCATE t", "it was truncated"),
    "ordered": ("ALTER TABLE t ORDER BY n", ""),  # is followed by no log, so the table is copied again
}


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards that has not begun."""
    run_here(monkeypatch)
    return Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))


def begun(steps: Steps, *tables: str) -> Cases:
    """The feed has caught up with tables that are alike, and other. Of the rules of each table the first one counts."""
    rules = [("kept*", FREEZE), ("strict*", FAIL), ("*", "evolve"), ("strict*", FREEZE)]
    steps.set(ddl=[{"match": f"{steps.schema}.{name}", "schema_change": what} for name, what in rules])
    other = ("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO t VALUES ()")
    cases = Cases(steps, {**dict.fromkeys(tables, TABLE), "other": other})
    cases.begin()
    return cases


def stale(steps: Steps) -> dict[str, str]:
    """Why tables are stale at the newest epoch."""
    return {one.table.name: one.reason for one in every_epoch(steps)[-1].manifest.stale}


@pytest.mark.promise(
    "schema_change decides for each table whether DDL is followed, makes it stale, or ends the run"
)
def test_some_are_followed_and_some_stay_as_they_were(steps: Steps) -> None:
    followed, kept = ([f"{how}_{what}" for what in STATEMENTS] for how in ("followed", "kept"))
    cases = begun(steps, *followed, *kept)
    turn = {f"{how}_{what}": said for what, (said, _) in STATEMENTS.items() for how in ("followed", "kept")}
    cases.write({table: f"{said}; INSERT INTO t (id) VALUES (9)" for table, said in turn.items()})
    for _ in range(3):
        steps.everywhere(PROOF)
        steps.run()
    cases.compare(*followed, "other")
    found = stale(steps)
    assert found.keys() == {*kept}
    for what, (_, why) in STATEMENTS.items():
        assert why in found[f"kept_{what}"], found
        assert "freeze" in found[f"kept_{what}"] or what == "ordered", found
        assert [row[1:] for row in steps.lake(f"kept_{what}", "id", "n")] == [(1, 1), (2, 2)] * 2
    cases.must_be_followed(*kept, "followed_ordered")
    steps.set(ddl=[{"match": "*", "schema_change": "evolve"}])
    steps.renew(PROOF)
    cases.compare()


@pytest.mark.promise("with schema_change: fail the run ends before the epoch that has the statement")
def test_some_end_the_run_in_front_of_the_epoch(steps: Steps) -> None:
    strict = [f"strict_{what}" for what in STATEMENTS]
    cases = begun(steps, "t", *strict)
    rules = steps.feed.model_dump(mode="json")["ddl"]
    for what, (said, why) in STATEMENTS.items():
        table = f"strict_{what}"
        cases.turn(
            {table: "CREATE INDEX i ON t (n); INSERT INTO t VALUES (3, 3)", "t": "UPDATE t SET n = n + 1"}
        )
        cases.compare()
        before = every_epoch(steps)[-1].manifest.epoch
        cases.write({table: f"INSERT INTO t VALUES (4, 4); {said}", "t": "UPDATE t SET n = n + 1"})
        for _ in range(2):
            with pytest.raises(Unsupported, match=rf"shard -80, {steps.schema}\.{table} at .*: .*{why}"):
                steps.run()
        assert stale(steps) == {}
        assert every_epoch(steps)[-1].manifest.epoch == before
        assert [row[1:] for row in steps.lake(table, "id", "n")] == [(1, 1), (2, 2), (3, 3)] * 2
        rules.insert(0, {"match": f"{steps.schema}.{table}", "schema_change": "evolve"})
        steps.set(ddl=rules)
        steps.everywhere(PROOF)
        steps.renew(PROOF)
        cases.compare()
    cases.must_be_followed("strict_ordered")


def test_a_run_goes_by_another_policy(steps: Steps) -> None:
    cases = begun(steps, "t", "kept")
    add = "ALTER TABLE t ADD COLUMN m INT"
    with running(steps):
        steps.set(ddl=[{"match": "*.t", "schema_change": FREEZE}])
        kept = catchment.apply(steps.file, wait=PATIENCE_SECONDS)
        assert kept.answer is not None
        assert kept.answer.said == "the run uses the new ddl"
        cases.write({"t": add, "kept": add, "other": PROOF})
        until("t is stale", lambda: "t" in stale(steps))
        cases.write({"kept": "INSERT INTO t VALUES (3, 3, 3)"})
        until("kept has its row", lambda: steps.lake("kept", "id", "n") == steps.source("kept", "id", "n"))
    assert set(stale(steps)) == {"t"}


def test_doctor_tells_what_is_ahead_of_each(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    cases = begun(steps, "t", "kept", "strict")
    cases.write(dict.fromkeys(("t", "kept", "strict"), "ALTER TABLE t ADD COLUMN m INT"))
    assert execute(["doctor", str(steps.file)]) == 3
    said = capsys.readouterr().out
    assert f"{steps.schema}.strict at" in said
    assert f"{steps.schema}.kept at" in said
    assert f"{steps.schema}.t at" not in said


def test_a_rule_that_is_none(steps: Steps) -> None:
    begun(steps, "t")
    steps.set(ddl=[{"match": "/nowhere/", "schema_change": FAIL}])
    with pytest.raises(ConfigError, match=r"ddl\[0\]\.match"):
        steps.run()
