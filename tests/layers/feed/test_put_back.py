"""A state store that is lost, or put back from an older copy, beside a lake: no row is lost and no start is refused.

Settle, decide, store and sink are the product's; what an epoch reads is made up. docs/model has the searches.
"""

import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from catchment.feed.applier import Applier
from catchment.feed.settle import settle, take_over
from catchment.model import records
from catchment.model.epoch import Manifest, Part
from catchment.model.errors import LeaseHeld, LeaseLost, SinkError
from catchment.model.records import SHARE_MAX
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.tail import apply as apply_module
from catchment.state.lease import hold
from catchment.state.resume import Continue, decide
from catchment.state.store import Store
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, delta, manifest, shape, write

ITEMS = shape("items", {"id": INT, "sig": TEXT}, ("id",))
TABLES = (ORDERS, ITEMS)


class Crash(BaseException):
    """What ends a run as a kill would."""


class World:
    """A lake, and a state store that may be taken away."""

    def __init__(self, directory: Path) -> None:
        self.lake = directory / "lake"
        self.state = directory / "state.db"
        self.kept = directory / "kept.db"

    def epoch(self, number: int, previous: int) -> Manifest:
        """An epoch that brings a row to each table; the first one makes the tables."""
        rows = [("s/0", number, False, (number, f"v{number}"))]
        deltas = [
            delta(table, write(self.lake, table, Part.CHANGES, f"{number}-a-0", rows))
            if previous
            else delta(table)
            for table in TABLES
        ]
        return replace(manifest(number, TABLES, *deltas), previous=previous)

    def run(self, work: Callable[[Applier], None] = lambda applier: None, crash_after: int = 0) -> None:
        """A run up to its first turn, then `work`; it crashes when so many tables were committed."""
        left = [crash_after]

        def after() -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

        epochs = EpochsTable(self.lake, FEED)
        with (
            closing(Store.open(f"sqlite:///{self.state}", FEED)) as store,
            hold(store, fence_above=epochs.fence()) as lease,
        ):
            applier = Applier(store, lease, lake_of(self.lake, after), threading.Event())
            _, stored, committed = store.newest()
            row = epochs.newest()
            digests = store.digests(stored.epoch) if stored is not None else ()
            decision = decide(FEED, stored, committed, row, digests)
            if isinstance(decision, Continue):
                take_over(applier, list(TABLES) if row else [], row)
                settle(applier, decision, committed, row)
            work(applier)

    def commit(self, number: int, previous: int, crash_after: int = 0) -> None:
        """A run that commits an epoch, or crashes when so many of its tables have it."""
        made = self.epoch(number, previous)

        def work(applier: Applier) -> None:
            applier.store.put_manifest(made, applier.lease.fence)
            applier.apply(made)

        if crash_after:
            with pytest.raises(Crash):
                self.run(work, crash_after)
        else:
            self.run(work)

    def files(self) -> dict[str, list[str]]:
        """The files of each table as of the newest epoch."""
        row = EpochsTable(self.lake, FEED).newest()
        assert row is not None
        return {
            table.table.name: sorted(
                uri.rsplit("/", 1)[1].partition("-")[0]
                for uri in DeltaTable(
                    tail_dir(self.lake, table.table), version=row.commit.versions[str(table.table)]
                ).file_uris()
            )
            for table in TABLES
        }


@pytest.fixture(autouse=True, params=[0, pytest.param(SHARE_MAX, marks=pytest.mark.wide)])
def share(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a share of 0 every record that can be says what has changed; these small ones would be whole."""
    monkeypatch.setattr(records, "SHARE_MAX", request.param)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(apply_module, "_THREADS", 1)  # one table after the other
    world = World(tmp_path)
    world.commit(1, 0)
    return world


@pytest.mark.parametrize("tables", [1, 2])
def test_an_epoch_that_was_taken_back_is_applied_when_its_store_is_put_back(
    world: World, tables: int
) -> None:
    """It was taken for applied, since its tables had carried it, and its rows were missing from then on."""
    world.commit(3, 1, crash_after=tables)
    shutil.move(world.state, world.kept)
    world.run()  # without the store: takes epoch 3 back, and ends before an epoch of its own
    shutil.move(world.kept, world.state)
    world.commit(4, 3)
    assert world.files() == {"orders": ["3", "4"], "items": ["3", "4"]}


def test_files_of_such_an_epoch_that_the_cleaner_has_removed(world: World) -> None:
    world.commit(3, 1, crash_after=1)
    shutil.move(world.state, world.kept)
    world.run()
    shutil.move(world.kept, world.state)
    (lost,) = tail_dir(world.lake, ORDERS.table).rglob("3-a-0*")
    lost.unlink()
    with pytest.raises(SinkError, match=r"3-a-0.* is gone.*remove the store"):
        world.run()
    world.state.unlink()
    world.commit(4, 1)
    assert world.files() == {"orders": ["4"], "items": ["4"]}


def test_a_store_put_back_from_before_the_first_commit(world: World, tmp_path: Path) -> None:
    """The row of the epochs table is the proof that the epoch stands: every start was refused."""
    fresh = World(tmp_path / "fresh")
    fresh.lake.parent.mkdir()
    first = fresh.epoch(1, 0)

    def work(applier: Applier) -> None:
        applier.store.put_manifest(first, applier.lease.fence)
        shutil.copy(fresh.state, fresh.kept)
        applier.apply(first)

    fresh.run(work)
    fresh.commit(2, 1, crash_after=1)
    shutil.move(fresh.kept, fresh.state)
    fresh.run()
    fresh.commit(3, 1)
    assert fresh.files() == {"orders": ["3"], "items": ["3"]}


def test_two_runners_to_whom_a_lost_store_gave_one_fence(world: World) -> None:
    first, second = EpochsTable(world.lake, FEED), EpochsTable(world.lake, FEED)
    first.take_over(7)
    first.take_over(8)
    with pytest.raises(LeaseLost, match="under this one's fence 8"):
        second.take_over(8)


def test_an_epoch_of_an_older_runner_that_comes_while_a_run_begins(world: World) -> None:
    epochs = EpochsTable(world.lake, FEED)
    before = epochs.newest()
    world.commit(2, 1)
    with (
        closing(Store.open(f"sqlite:///{world.state}", FEED)) as store,
        hold(store, fence_above=epochs.fence()) as lease,
    ):
        applier = Applier(store, lease, lake_of(world.lake), threading.Event())
        with pytest.raises(LeaseHeld, match="committed an epoch while this one began"):
            take_over(applier, [], before)
