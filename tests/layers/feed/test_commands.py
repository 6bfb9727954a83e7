"""Orders are answered when the manifest stands that carries them out, and not before."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catchment.feed.commands import NOBODY, Commands
from catchment.model.order import Action, Order
from catchment.model.table_state import TableState
from catchment.state import orders
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.epoch.test_obey import NOW, T, manifest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/state.db", "shop")) as opened:
        yield opened


def test_an_order_is_answered_when_its_epoch_stands(store: Store) -> None:
    standing = manifest(TableState.COPYING)
    with hold(store) as lease:
        number = orders.give(store, Order(Action.PAUSE, "ada", NOW, T))
        commands = Commands(store, lease.fence, threading.Event(), NOBODY)
        carried_out = commands.next(standing)
        assert carried_out is not None
        assert [one.number for one in orders.open_orders(store)] == [number]
        commands.answer(carried_out)
        kept = orders.find(store, number)
        assert kept is not None
        assert kept.answer is not None
        assert kept.answer.done


def test_an_order_whose_epoch_was_never_written_stays_open(store: Store) -> None:
    """The run was told to stop while the epoch before was being applied."""
    standing = manifest(TableState.COPYING)
    with hold(store) as lease:
        number = orders.give(store, Order(Action.RESTART, "ada", NOW, T))
        commands = Commands(store, lease.fence, threading.Event(), NOBODY)
        assert commands.next(standing) is not None
        commands.answer(standing)
        assert [one.number for one in orders.open_orders(store)] == [number]
        again = Commands(store, lease.fence, threading.Event(), NOBODY).next(standing)
        assert again is not None
        assert [one.table for one in again.stale] == [T]


def test_a_run_is_told_to_end(store: Store) -> None:
    stop = threading.Event()
    with hold(store) as lease:
        commands = Commands(store, lease.fence, stop, NOBODY)
        orders.give(store, Order(Action.STOP, "ada", NOW, fence=lease.fence))
        assert commands.next(manifest(TableState.FOLLOWING)) is None
        assert stop.is_set()
        assert commands.ended_it
        assert not orders.open_orders(store)


def test_a_run_that_begins_is_told_to_end(store: Store) -> None:
    """It holds the lease, and has not come to look for orders. The clock of who asks is behind."""
    stop = threading.Event()
    with hold(store) as lease:
        orders.give(store, Order(Action.STOP, "ada", 1, fence=lease.fence))
        Commands(store, lease.fence, stop, NOBODY).next(manifest(TableState.FOLLOWING))
        assert stop.is_set()


def test_the_run_before_was_told_to_end(store: Store) -> None:
    stop = threading.Event()
    with hold(store) as lease:
        orders.give(store, Order(Action.STOP, "ada", NOW, fence=lease.fence))
    with hold(store) as lease:
        Commands(store, lease.fence, stop, NOBODY).next(manifest(TableState.FOLLOWING))
        assert not stop.is_set()
        assert not orders.open_orders(store)
