"""A shard's log that is purged beyond our position, or reset: its tables stand still, and an order copies them again.

Nothing of the gap is taken as read. Other tables go on, and no new feed is needed.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.model.epoch import Manifest
from catchment.model.table_state import TableState
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from catchment.state.store import Store
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_stale import plain, status_of
from tests.world.purged import begin_anew
from tests.world.servers.chosen import chosen_server
from tests.world.settled import settled

FIRST = [(shard, key, key * 10) for shard in ("-80", "80-") for key in (1, 2, 3)]
GAP = ("UPDATE t SET n = n + 1 WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (4, 40)")


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """Two shards whose logs these tests take away."""
    with chosen_server(server_id=171) as first, chosen_server(server_id=172) as second:
        yield {"-80": first, "80-": second}


@pytest.fixture
def steps(
    own: dict[str, PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed that has caught up and is settled: `t` on both shards, `alone` on the second one."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, own, fresh_schema(*own.values()))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"
    )
    begun.sql("80-", "CREATE TABLE alone (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO alone VALUES (1)")
    begun.run()
    settled(begun.feed)
    return begun


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def purged(server: PrivateServer, steps: Steps) -> None:
    """Have the log of the gap go, and the file in which the feed stands."""
    steps.sql("-80", *GAP)
    begin_anew(server)


def reset(server: PrivateServer, steps: Steps) -> None:
    """Begin the log again, and come beyond the offset of before."""
    steps.sql("-80", *GAP)
    server.sql("RESET MASTER")
    steps.sql("-80", *(f"UPDATE t SET n = {number} WHERE id = 3" for number in range(40)))


WAYS = {"purged": purged, "reset": reset}


def told(steps: Steps) -> str:
    """Why the table is stale, as the status has it."""
    found = status_of(steps)
    assert found.state is TableState.STALE
    return found.reason


def ordered(steps: Steps, action: str = "start", table: str | None = None) -> None:
    """Order a copy; the next run obeys."""
    given = catchment.dump(steps.file, action, None if table is None else f"{steps.schema}.{table}", wait=0)
    assert given


def renewed(steps: Steps) -> None:
    """Run until nothing is stale; a server at rest needs a transaction to show what is visible."""
    steps.renew("CREATE TABLE IF NOT EXISTS proof (id INT) ENGINE=MEMORY", "DROP TABLE proof")
    steps.must_be_equal("t", "id", "n")


@pytest.mark.parametrize("way", WAYS)
def test_the_tables_of_the_shard_stand_still_until_an_order_copies_them_again(
    own: dict[str, PrivateServer], steps: Steps, way: str
) -> None:
    exact = newest(steps).epoch
    WAYS[way](own["-80"], steps)
    steps.sql("80-", "UPDATE t SET n = 0", "INSERT INTO alone VALUES (2)")
    for _ in range(2):
        steps.run()
        (stale,) = newest(steps).stale
        assert (stale.table.name, stale.epoch, stale.waits) == ("t", exact, True)
        assert steps.lake("t", "id", "n") == FIRST
        assert steps.lake("alone", "id") == steps.source("alone", "id")
        assert "shard -80" in told(steps)
        assert "catchment dump start" in told(steps)
        settled(steps.feed)
        assert plain(steps, "id", "n") == [sorted({row[1:] for row in FIRST})] * 2
    steps.sql("-80", "UPDATE t SET n = 7 WHERE id = 4")
    ordered(steps)
    renewed(steps)
    assert ("-80", 4, 7) in steps.lake("t", "id", "n")
    settled(steps.feed)
    assert steps.lake("t", "id", "n") == steps.source("t", "id", "n")
    rows = catchment.read(steps.file, f"{steps.schema}.t", exact).arrow().to_pylist()
    assert sorted((row["_shard"], row["id"], row["n"]) for row in rows) == FIRST


@pytest.mark.parametrize("writes", [True, False], ids=["busy", "idle"])
def test_a_reset_under_a_running_feed(own: dict[str, PrivateServer], steps: Steps, writes: bool) -> None:
    """The run goes on, in the same process."""
    with FeedRun(steps.feed) as run:
        steps.everywhere("UPDATE t SET n = n + 1")
        run.wait_for_log(own)
        steps.sql("-80", *GAP)
        own["-80"].sql("RESET MASTER")
        if writes:
            steps.sql("-80", *(f"UPDATE t SET n = {number} WHERE id = 3" for number in range(40)))
        run.wait("a stale table", lambda epochs: any(one.waits for one in epochs[-1].stale))
        steps.sql("80-", "INSERT INTO alone VALUES (7)")
        ordered(steps, "restart", "t")
        steps.everywhere("UPDATE t SET n = n + 1", "UPDATE t SET n = n + 2")
        run.wait("a new copy", lambda epochs: not epochs[-1].stale and epochs[-1].cut.copied)
        steps.everywhere("UPDATE t SET n = n + 4")
        run.wait_for_log(own)
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("alone", "id")


FAULTS = [
    pytest.param(Fault.AFTER_PLAN, marks=pytest.mark.wide),
    Fault.AFTER_MANIFEST,
    pytest.param(Fault.BETWEEN_APPLIES, marks=pytest.mark.wide),
    pytest.param(Fault.AFTER_APPLY, marks=pytest.mark.wide),
    pytest.param(Fault.AFTER_EPOCH_ROW, marks=pytest.mark.wide),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_dies_anywhere_is_gone_on_with(
    own: dict[str, PrivateServer], steps: Steps, fault: Fault
) -> None:
    exact = newest(steps).epoch
    purged(own["-80"], steps)
    steps.everywhere("UPDATE t SET n = n + 1")
    steps.die_again_and_again(fault, 8)
    steps.run()
    assert [(one.table.name, one.epoch) for one in newest(steps).stale] == [("t", exact)]
    assert steps.lake("t", "id", "n") == FIRST
    ordered(steps)
    steps.everywhere("UPDATE t SET n = n + 1")
    steps.die_again_and_again(fault, 12)
    renewed(steps)


def test_a_second_loss_while_the_copy_is_waited_for(own: dict[str, PrivateServer], steps: Steps) -> None:
    exact = newest(steps).epoch
    purged(own["-80"], steps)
    steps.run()
    steps.sql("-80", "UPDATE t SET n = 1")
    begin_anew(own["-80"])
    own["80-"].sql("RESET MASTER")
    steps.run()
    assert {(one.table.name, one.epoch >= exact, one.waits) for one in newest(steps).stale} == {
        ("t", True, True),
        ("alone", True, True),
    }
    assert next(one.epoch for one in newest(steps).stale if one.table.name == "t") == exact
    ordered(steps)
    renewed(steps)
    steps.must_be_equal("alone", "id")


def test_a_loss_behind_an_order_waits_for_another_order(own: dict[str, PrivateServer], steps: Steps) -> None:
    exact = newest(steps).epoch
    purged(own["-80"], steps)
    steps.run()
    ordered(steps)
    steps.everywhere("UPDATE t SET n = 2")
    for _ in range(2):  # the order is obeyed and answered, and the table has entered
        steps.die_again_and_again(Fault.AFTER_MANIFEST, 1)
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name)) as store:
        standing = store.newest()[1]
    assert standing is not None
    assert standing.stale[0].asked
    assert not standing.cut.copied
    steps.sql("-80", "UPDATE t SET n = 2")
    begin_anew(own["-80"])
    steps.run()
    (stale,) = newest(steps).stale
    assert (stale.epoch, stale.waits, stale.asked) == (exact, True, False)
    ordered(steps)
    renewed(steps)


def test_an_xa_transaction_that_was_prepared_in_the_lost_log(
    own: dict[str, PrivateServer], steps: Steps
) -> None:
    steps.sql("-80", "XA START 'lost'", "INSERT INTO t VALUES (9, 90)", "XA END 'lost'", "XA PREPARE 'lost'")
    steps.sql("-80", "UPDATE t SET n = n + 1 WHERE id = 1")
    steps.run()
    assert newest(steps).cut.positions["-80"].prepared
    begin_anew(own["-80"])
    steps.sql("-80", "XA COMMIT 'lost'", "UPDATE t SET n = n + 1 WHERE id = 1")
    steps.run()
    assert not newest(steps).cut.positions["-80"].prepared
    assert "purged" in told(steps)
    ordered(steps)
    renewed(steps)
    assert ("-80", 9, 90) in steps.lake("t", "id", "n")
