"""Tables of one feed for which DDL means different things: one is followed, one stays as it was, one ends the run."""

from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.model.errors import ConfigError, Unsupported
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_orders import newest, running, wait
from tests.world.patience import PATIENCE_SECONDS

PROOF = "INSERT INTO other VALUES ()"
ADD = "ALTER TABLE {} ADD COLUMN m INT"
AGAIN = "ALTER TABLE {} ORDER BY n"  # is followed by no log, so the table is copied again
FREEZE, FAIL = "freeze", "fail"


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has caught up with t, kept and strict, which are alike, and other."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    rules = [("kept", FREEZE), ("strict*", FAIL), ("*", "evolve"), ("strict", FREEZE)]  # the first one counts
    begun.set(ddl=[{"match": f"{begun.schema}.{name}", "schema_change": what} for name, what in rules])
    for table in ("t", "kept", "strict"):
        made = f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)"
        begun.everywhere(made, f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    begun.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", PROOF)
    begun.run()
    return begun


def stale(steps: Steps) -> dict[str, str]:
    return {one.table.name: one.reason for one in newest(steps).stale}


@pytest.mark.parametrize("statement", [ADD, pytest.param(AGAIN, marks=pytest.mark.wide)])
def test_one_is_followed_and_one_stays_as_it_was(steps: Steps, statement: str) -> None:
    for table in ("t", "kept"):
        steps.everywhere(statement.format(table), f"UPDATE {table} SET n = 9")
    for _ in range(3):
        steps.everywhere(PROOF)
        steps.run()
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")
    assert set(stale(steps)) == {"kept"}
    assert [row[1:] for row in steps.lake("kept", "id", "n")] == [(1, 1), (2, 2)] * 2


@pytest.mark.parametrize("statement", [ADD, AGAIN])
def test_one_ends_the_run_in_front_of_it(steps: Steps, statement: str) -> None:
    before = newest(steps).epoch
    steps.everywhere(statement.format("t"), statement.format("strict"))
    with pytest.raises(Unsupported, match=rf"{steps.schema}\.strict"):
        steps.run()
    assert stale(steps) == {}
    assert newest(steps).epoch == before
    assert [row[1:] for row in steps.lake("strict", "id", "n")] == [(1, 1), (2, 2)] * 2
    steps.set(ddl=[])
    for _ in range(3):
        steps.everywhere(PROOF)
        steps.run()
    steps.must_be_equal("strict", "id", "n")
    steps.must_be_equal("t", "id", "n")


def test_a_run_goes_by_another_policy(steps: Steps) -> None:
    with running(steps):
        steps.set(ddl=[{"match": "*.t", "schema_change": FREEZE}])
        kept = catchment.apply(steps.file, wait=PATIENCE_SECONDS)
        assert kept.answer is not None
        assert kept.answer.said == "the run goes by ddl"
        steps.everywhere(ADD.format("t"), ADD.format("kept"), PROOF)
        wait(lambda: "t" in stale(steps))
        steps.everywhere("INSERT INTO kept VALUES (3, 3, 3)")
        wait(lambda: steps.lake("kept", "id", "n") == steps.source("kept", "id", "n"))
    assert set(stale(steps)) == {"t"}


def test_doctor_tells_what_is_ahead_of_each(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("t", "kept", "strict"):
        steps.everywhere(ADD.format(table))
    assert execute(["doctor", str(steps.file)]) == 3
    said = capsys.readouterr().out
    assert f"{steps.schema}.strict at" in said
    assert f"{steps.schema}.kept at" in said
    assert f"{steps.schema}.t at" not in said


def test_a_rule_that_is_none(steps: Steps) -> None:
    steps.set(ddl=[{"match": "nowhere", "schema_change": FAIL}])
    with pytest.raises(ConfigError, match=r"ddl\[0\]\.match"):
        steps.run()
