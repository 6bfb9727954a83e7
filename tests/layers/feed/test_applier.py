"""An apply that others hindered is done again from the same manifest, and brings every row once."""

import logging
from pathlib import Path

import pytest

from catchment.feed.applier import Applier
from catchment.model import retries
from catchment.model.errors import SinkConflict
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.layers.feed.test_put_back import World
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED

PLACES = (Fault.BETWEEN_APPLIES, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW)


class Others:
    """Win against an apply at a place, so often."""

    def __init__(self, place: Fault, times: int) -> None:
        self._place = place
        self.left = times

    def __call__(self, at: Fault) -> None:
        if at is self._place and self.left:
            self.left -= 1
            raise SinkConflict("others won every attempt")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A lake with one epoch, whose tries come one right behind the other."""
    monkeypatch.setattr(retries, "SECONDS_MAX", 0.001)
    made = World(tmp_path)
    made.commit(1, 0)
    return made


def hindered(applier: Applier, lake: World, others: Others) -> Applier:
    """The same, with others."""
    sink = lake_of(lake.lake, lambda: others(Fault.BETWEEN_APPLIES))
    return Applier(applier.store, applier.lease, sink, applier.stop, others)


@pytest.mark.parametrize("place", PLACES)
def test_it_is_done_again(lake: World, place: Fault, caplog: pytest.LogCaptureFixture) -> None:
    made, others = lake.epoch(2, 1), Others(place, 2)

    def work(applier: Applier) -> None:
        applier.store.put_manifest(made, applier.lease.fence)
        with caplog.at_level(logging.WARNING):
            hindered(applier, lake, others).apply(made)

    lake.run(work)
    assert others.left == 0
    # Of two tables that others win, one try may have met both.
    assert caplog.text.count("others won every attempt") in (
        (1, 2) if place is Fault.BETWEEN_APPLIES else (2,)
    )
    assert lake.files() == {"orders": ["2"], "items": ["2"]}
    assert [row.manifest.epoch for row in EpochsTable(lake.lake, FEED).read_all()] == [1, 2]
    lake.commit(3, 2)
    assert lake.files() == {"orders": ["2", "3"], "items": ["2", "3"]}


def test_it_ends_when_they_always_win_and_the_next_run_applies_it(lake: World) -> None:
    made, others = lake.epoch(2, 1), Others(Fault.AFTER_APPLY, 1000)

    def work(applier: Applier) -> None:
        applier.store.put_manifest(made, applier.lease.fence)
        hindered(applier, lake, others).apply(made)

    with pytest.raises(SinkConflict, match="others won"):
        lake.run(work)
    assert 1000 - others.left == retries.TIMES_MAX + 1
    lake.commit(3, 2)
    assert lake.files() == {"orders": ["2", "3"], "items": ["2", "3"]}


def test_it_ends_at_once_when_the_run_is_to_stop(lake: World) -> None:
    made, others = lake.epoch(2, 1), Others(Fault.AFTER_APPLY, 1000)

    def work(applier: Applier) -> None:
        applier.store.put_manifest(made, applier.lease.fence)
        applier.stop.set()
        hindered(applier, lake, others).apply(made)

    with pytest.raises(SinkConflict):
        lake.run(work)
    assert others.left == 999
