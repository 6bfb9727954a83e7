"""A shard's log that is purged beyond our position, or reset: its tables stand still, and an order copies them again.

Nothing of the gap is taken as read. Other tables go on, and no new feed is needed.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.feed import runner
from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest
from catchment.model.table_state import TableState
from catchment.state.faults import Fault
from catchment.state.store import Store
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import lake, manifests, must_be_chain, must_be_equal, newest, stale
from tests.promises.exact.steps import Died, Rows, Steps, run_here
from tests.promises.exact.test_stale import plain, status_of
from tests.world.purged import begin_anew
from tests.world.servers.chosen import chosen_server
from tests.world.settled import settled

KEY = ("id", "n")
BOTH = {"t": KEY, "alone": ("id",)}
GAP = ("UPDATE t SET n = n + 1 WHERE id = 1", "DELETE FROM t WHERE id = 2", "REPLACE INTO t VALUES (4, 40)")
# A server at rest needs a transaction to show what is visible.
PROOF = ("CREATE TABLE IF NOT EXISTS proof (id INT) ENGINE=MEMORY", "DROP TABLE proof")
FAULTS = [
    Fault.AFTER_PLAN,
    Fault.AFTER_MANIFEST,
    Fault.BETWEEN_APPLIES,
    Fault.AFTER_APPLY,
    Fault.AFTER_EPOCH_ROW,
]


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
    # A run waits for that long for tables that are stale, which here wait for an order.
    monkeypatch.setattr(runner, "_ENTERS_SECONDS", 0.2)
    begun = Steps(tmp_path, own, fresh_schema(*own.values()))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"
    )
    begun.sql("80-", "CREATE TABLE alone (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO alone VALUES (1)")
    begun.run()
    settled(begun.feed)
    return begun


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


def ordered(steps: Steps, action: str = "start", table: str | None = None) -> None:
    """Order a copy; the next run obeys."""
    given = catchment.dump(steps.file, action, None if table is None else f"{steps.schema}.{table}", wait=0)
    assert given


def renewed(steps: Steps) -> None:
    """Run until nothing is stale."""
    steps.renew(*PROOF)
    must_be_equal(steps, BOTH)


def must_wait(steps: Steps, epoch: int, rows: Rows) -> None:
    """Run the feed: the table of the shard stands still as of an epoch and waits for an order, the other goes on."""
    steps.run()
    assert [(one.table.name, one.epoch, one.waits) for one in newest(steps).stale] == [("t", epoch, True)]
    assert steps.lake("t", *KEY) == rows
    must_be_equal(steps, {"alone": ("id",)})
    found = status_of(steps)
    assert found.state is TableState.STALE
    assert "shard -80" in found.reason
    assert "catchment dump start" in found.reason


@pytest.mark.promise("a shard whose log is lost starts again, and its tables wait for an order")
def test_the_tables_of_the_shard_stand_still_until_an_order_copies_them_again(
    own: dict[str, PrivateServer], steps: Steps
) -> None:
    seen: dict[int, Rows] = {}
    for number, lose in enumerate(WAYS.values()):
        exact, rows = newest(steps).epoch, steps.source("t", *KEY)
        seen[exact] = rows
        lose(own["-80"], steps)
        steps.sql("80-", f"UPDATE t SET n = {number}", f"INSERT INTO alone VALUES ({number + 2})")
        for _ in range(2):
            must_wait(steps, exact, rows)
            settled(steps.feed)
            assert plain(steps, "t", *KEY) == [rows] * 2
        steps.sql("-80", f"UPDATE t SET n = 7{number} WHERE id = 4")
        ordered(steps)
        renewed(steps)
        assert ("-80", 4, 70 + number) in steps.lake("t", *KEY)
        settled(steps.feed)
        must_be_equal(steps, BOTH)
    for epoch, rows in seen.items():
        assert lake(steps, {"t": KEY}, epoch) == {"t": rows}


def test_a_reset_under_a_running_feed(own: dict[str, PrivateServer], steps: Steps) -> None:
    """The run goes on, in the same process, also where nothing is written behind the reset."""

    def is_renewed(epochs: list[Manifest]) -> bool:
        if epochs[-1].stale:
            steps.everywhere(*PROOF)
        return not epochs[-1].stale and epochs[-1].cut.copied

    with FeedRun(steps.feed) as run:
        for writes in (40, 0):
            steps.everywhere("UPDATE t SET n = n + 1")
            run.wait_for_log(own)
            steps.sql("-80", *GAP)
            own["-80"].sql("RESET MASTER")
            if writes:
                steps.sql("-80", *(f"UPDATE t SET n = {number} WHERE id = 3" for number in range(writes)))
            run.wait("a stale table", lambda epochs: any(one.waits for one in epochs[-1].stale))
            steps.sql("80-", "INSERT INTO alone VALUES (NULL)")
            run.wait_for_log({"80-": own["80-"]})
            must_be_equal(steps, {"alone": ("id",)})
            assert stale(newest(steps)) == {"t"}
            ordered(steps, "restart", "t")
            steps.everywhere("UPDATE t SET n = n + 1", "UPDATE t SET n = n + 2")
            run.wait("a new copy", is_renewed)
            steps.everywhere("UPDATE t SET n = n + 4")
            run.wait_for_log(own)
    steps.run()
    must_be_equal(steps, BOTH)


def test_runs_that_die_are_gone_on_with(own: dict[str, PrivateServer], steps: Steps) -> None:
    """Each dies at another place, later and later, until one comes through."""
    exact, rows = newest(steps).epoch, steps.source("t", *KEY)
    purged(own["-80"], steps)
    steps.everywhere("UPDATE t SET n = n + 1")
    deaths = dying(steps)
    must_wait(steps, exact, rows)
    ordered(steps)
    steps.everywhere("UPDATE t SET n = n + 1")
    deaths += dying(steps)
    assert deaths > 5
    renewed(steps)
    must_be_chain(manifests(steps))


def dying(steps: Steps) -> int:
    """How many runs die before one comes through."""
    for deaths, fault in enumerate(cycle(FAULTS)):
        left = [1 + (deaths + 1) // len(FAULTS)]

        def die(at: Fault, fault: Fault = fault, left: list[int] = left) -> None:
            left[0] -= at is fault
            if left[0] == 0:
                raise Died

        with suppress(Died):
            run_feed(steps.feed, until_caught_up=True, stop=threading.Event(), fault=die)
            return deaths
    raise AssertionError


def test_losses_upon_losses(own: dict[str, PrivateServer], steps: Steps) -> None:
    """A second one while the copy is waited for, one behind an order, and one of a log in which a transaction is
    prepared."""
    exact = newest(steps).epoch
    purged(own["-80"], steps)
    steps.run()
    steps.sql("-80", "UPDATE t SET n = 1")
    begin_anew(own["-80"])
    own["80-"].sql("RESET MASTER")
    steps.run()
    found = {one.table.name: one for one in newest(steps).stale}
    assert found.keys() == {"t", "alone"}
    assert all(one.waits for one in found.values())
    assert found["alone"].epoch >= found["t"].epoch == exact
    ordered(steps)
    renewed(steps)

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
    (one,) = newest(steps).stale
    assert (one.epoch, one.waits, one.asked) == (exact, True, False), "it waits for another order"
    ordered(steps)
    renewed(steps)

    steps.sql("-80", "XA START 'lost'", "INSERT INTO t VALUES (9, 90)", "XA END 'lost'", "XA PREPARE 'lost'")
    steps.sql("-80", "UPDATE t SET n = n + 1 WHERE id = 1")
    steps.run()
    assert newest(steps).cut.positions["-80"].prepared
    begin_anew(own["-80"])
    steps.sql("-80", "XA COMMIT 'lost'", "UPDATE t SET n = n + 1 WHERE id = 1")
    steps.run()
    assert not newest(steps).cut.positions["-80"].prepared
    assert "purged" in status_of(steps).reason
    assert stale(newest(steps)) == {"t"}
    ordered(steps)
    renewed(steps)
    assert ("-80", 9, 90) in steps.lake("t", *KEY)
