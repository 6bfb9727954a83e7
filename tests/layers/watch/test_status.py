"""Status, from the state store alone."""

import time
from pathlib import Path

import msgspec
import pytest

from catchment import world
from catchment.cli.status import _lines
from catchment.model.epoch_number import gci_of
from catchment.model.progress import Basis, Forecast
from catchment.model.refusal import Refusal
from catchment.model.table_state import TableState
from catchment.state.lease import hold
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import NOBODY_RUNS, NOT_YET, PartStatus
from tests.world import records


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path}/state.db", "shop")


def test_before_the_first_epoch(store: Store) -> None:
    found = read_status(store)
    assert (found.epoch, found.lag_seconds, found.runner, found.pending, found.tables) == (
        0,
        None,
        "",
        "",
        (),
    )


def test_a_number_ahead_of_the_clock(store: Store) -> None:
    with hold(store) as lease:
        store.put_plan(records.plan(1), lease.fence)
        store.put_manifest(records.manifest(1), lease.fence)
        store.put_commit(records.commit(1), lease.fence)
    assert read_status(store).ahead_seconds == 0
    with pytest.MonkeyPatch.context() as patch:
        epoch = records.commit(1).epoch
        patch.setattr(world, "now_us", lambda: gci_of(epoch) * 1_000_000 - 3_600_000_000)
        status = read_status(store)
    assert status.ahead_seconds == 3600
    assert any("60 min ahead of this machine's clock" in line for line in _lines(status))
    assert not any("ahead of" in line for line in _lines(read_status(store)))


def test_epochs_and_what_is_pending(store: Store) -> None:
    with hold(store) as lease:
        store.put_plan(records.plan(1), lease.fence)
        assert read_status(store).pending == ""  # a source at rest has a plan in every turn
        store.put_manifest(records.manifest(1), lease.fence)
        assert read_status(store).pending == "manifest"
        store.put_commit(records.commit(1), lease.fence)
        found = read_status(store)
        assert "process" in found.runner
        store.put_plan(records.plan(2), lease.fence)
        store.put_manifest(records.manifest(2), lease.fence)
    later = read_status(store)
    assert found.pending == ""
    assert (later.pending, later.epoch, later.runner) == ("manifest", records.commit(1).epoch, "")
    assert found.lag_seconds == pytest.approx(time.time() - 1_700_000_001, abs=5)
    assert found.cut == {"-80": "binlog.000001:1000 [0-1-1]"}
    (table,) = found.tables
    assert (table.table, table.state, table.rows, table.expected) == (
        "shop.orders",
        TableState.COPYING,
        10,
        100,
    )
    assert table.parts == (PartStatus("-80", 10, 100, Basis.CATALOG, None, Forecast(why=NOT_YET)),)
    assert later.tables[0].left == later.whole == Forecast(why=NOBODY_RUNS)


def test_a_table_is_copied_when_all_its_shards_are(store: Store) -> None:
    for turn, phase in ((1, TableState.COPYING), (2, TableState.FOLLOWING)):
        manifest = records.manifest(turn)
        state = manifest.cut.shards["-80"]
        first, second = (
            msgspec.structs.replace(
                state, copies=(msgspec.structs.replace(state.copies[0], done=done, rows=rows),)
            )
            for done, rows in ((phase is TableState.FOLLOWING, 10), (True, 50))
        )
        manifest = records.with_shards(manifest, {"-80": first, "80-": second})
        commit = msgspec.structs.replace(records.commit(turn), digest=records.name_of(manifest))
        with hold(store) as lease:
            store.put_manifest(manifest, lease.fence)
            store.put_commit(commit, lease.fence)
        (table,) = read_status(store).tables
        assert (table.state, table.rows_expected) == (phase, 200)


def test_a_source_at_rest_does_not_lag(store: Store) -> None:
    """A plan whose positions are those of the newest epoch says that nothing had happened when it was made."""
    later = records.plan(9)
    at_rest = msgspec.structs.replace(
        later.tick, offsets={"-80": records.offset(1)}, time_us=time.time_ns() // 1000
    )
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        store.put_commit(records.commit(1), lease.fence)
        store.put_plan(msgspec.structs.replace(later, tick=at_rest), lease.fence)
        assert read_status(store).lag_seconds == pytest.approx(0, abs=5)
        store.put_plan(later, lease.fence)
    assert read_status(store).lag_seconds == pytest.approx(time.time() - 1_700_000_001, abs=5)


def test_why_a_copy_stands_still(store: Store) -> None:
    refusal = Refusal("-80", records.ORDERS, "locked", 7)
    state = records.manifest(1).cut.shards["-80"]
    for turn, done in ((1, False), (2, True)):
        copies = (msgspec.structs.replace(state.copies[0], done=done),)
        shards = {"-80": msgspec.structs.replace(state, copies=copies)}
        manifest = records.with_shards(records.manifest(turn), shards)
        with hold(store) as lease:
            store.put_plan(msgspec.structs.replace(records.plan(turn), refused=(refusal,)), lease.fence)
            store.put_manifest(manifest, lease.fence)
            store.put_commit(
                msgspec.structs.replace(records.commit(turn), digest=records.name_of(manifest)), lease.fence
            )
        (table,) = read_status(store).tables
        assert table.refused == (() if done else (str(refusal),))
    assert str(refusal) == "shop.orders is not copied yet on shard -80 (try 7): locked"
