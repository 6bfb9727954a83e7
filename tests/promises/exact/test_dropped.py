"""Tables that every shard drops leave the feed, and come back with another table of their name."""

from collections.abc import Callable
from pathlib import Path

import pytest

import catchment
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_stale import plain, rows_of
from tests.world.settled import settled

PROOF = ("INSERT INTO other VALUES ()",)
FIRST = {(1, 1), (2, 2)}


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two tables on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        *PROOF,
    )
    begun.run()
    return begun


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def test_it_leaves_and_its_past_stays(steps: Steps) -> None:
    exact = newest(steps).epoch
    steps.everywhere("UPDATE t SET n = 0", "DROP TABLE t", *PROOF)
    steps.run()
    assert [(one.table.name, one.epoch, one.dropped) for one in newest(steps).outside] == [("t", exact, True)]
    assert newest(steps).stale == ()
    with pytest.raises(
        ConfigError, match=r"\.t \(it was dropped, and its lake table stands as of .*\) as of epoch"
    ):
        catchment.read(steps.file, f"{steps.schema}.t")
    assert rows_of(steps, "id", "n", epoch=exact) == FIRST
    settled(steps.feed)
    assert plain(steps, "id", "n") == [sorted(FIRST)] * 2
    steps.everywhere(*PROOF)
    steps.must_be_equal("other", "id")


def test_it_comes_back_with_another_table_of_its_name(steps: Steps) -> None:
    exact = newest(steps).epoch
    steps.everywhere("DROP TABLE t", *PROOF)
    steps.run()
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9))", "INSERT INTO t VALUES (7, 'new')")
    steps.must_be_equal("t", "id", "w")
    assert newest(steps).outside == ()
    assert rows_of(steps, "id", "n", epoch=exact) == FIRST
    settled(steps.feed)
    assert plain(steps, "id", "w") == [[(7, "new")]] * 2
    steps.everywhere("DROP TABLE t", *PROOF)
    steps.run()
    assert [one.table.name for one in newest(steps).outside] == ["t"]


def test_one_shard_before_the_other(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    exact = newest(steps).epoch
    steps.sql("-80", "DROP TABLE t", *PROOF)
    steps.run()
    assert [one.table.name for one in newest(steps).stale] == ["t"]
    assert rows_of(steps, "id", "n") == FIRST  # as of then
    steps.sql("80-", "INSERT INTO t VALUES (3, 3)", "DROP TABLE t", *PROOF)
    steps.sql("-80", *PROOF)
    steps.renew(*PROOF)
    assert [one.table.name for one in newest(steps).outside] == ["t"]
    assert (
        f"{steps.schema}.t was dropped on every shard: its lake table stays as of epoch {epoch_text(exact)}"
        in (caplog.messages)
    )


def test_made_again_on_one_shard_it_waits_for_the_other(steps: Steps) -> None:
    steps.everywhere("DROP TABLE t", *PROOF)
    steps.run()
    steps.sql("80-", "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (5, 5)")
    steps.run()
    assert [one.table.name for one in newest(steps).outside] == ["t"]
    steps.sql("-80", "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    steps.must_be_equal("t", "id", "n")


def test_it_comes_back_also_where_new_tables_do_not_enter(steps: Steps) -> None:
    steps.set(new_tables="skip")
    steps.everywhere("DROP TABLE t", *PROOF)
    steps.run()
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (6, 6)")
    steps.everywhere("CREATE TABLE never (id INT PRIMARY KEY)")
    steps.must_be_equal("t", "id", "n")
    assert {shape.table.name for shape in newest(steps).shapes} == {"t", "other"}


def test_a_schema_that_is_dropped_and_a_table_that_is_renamed_away(steps: Steps) -> None:
    steps.everywhere("RENAME TABLE t TO away", *PROOF)
    steps.run()
    steps.everywhere(*PROOF)
    steps.must_be_equal("away", "id", "n")
    assert [one.table.name for one in newest(steps).outside] == ["t"]
    steps.everywhere("RENAME TABLE away TO t", "UPDATE t SET n = 9", *PROOF)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")
    assert [one.table.name for one in newest(steps).outside] == ["away"]


def test_every_table_may_go_and_come_back(steps: Steps) -> None:
    steps.everywhere("DROP TABLE t, other")
    steps.run()
    assert newest(steps).tables == set()
    steps.run()
    assert not catchment.tables(steps.file)
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (8, 8)")
    steps.must_be_equal("t", "id", "n")


@pytest.mark.parametrize("fault", [Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW])
def test_a_run_that_dies_meanwhile_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    steps.everywhere("DROP TABLE t", *PROOF)
    steps.die_again_and_again(fault, 5)
    steps.run()
    assert [one.table.name for one in newest(steps).outside] == ["t"]
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (8, 8)")
    steps.die_again_and_again(fault, 5)
    # A run that dies between manifest and commit forgets the CREATE. Then others have to prove it visible.
    steps.enter("t", *PROOF)
    steps.must_be_equal("t", "id", "n")
