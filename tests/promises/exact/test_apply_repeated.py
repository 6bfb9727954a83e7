"""An apply that others hindered is done again from the same manifest, and the feed goes on."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed import retries
from catchment.model.errors import SinkConflict
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here

PLACES = (Fault.BETWEEN_APPLIES, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW)


class Others:
    """Win against every second apply at a place, so often; the feed's first epoch is applied undisturbed."""

    def __init__(self, place: Fault, times: int) -> None:
        self._place = place
        self._left = times
        self._passes = 0

    def __call__(self, at: Fault) -> None:
        self._passes += at is self._place
        if at is self._place and self._left and self._passes % 2:
            self._left -= 1
            raise SinkConflict("others won every attempt")


@pytest.fixture
def steps(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    for name in ("t", "u"):
        steps.sql(
            "a", f"CREATE TABLE {name} (id INT PRIMARY KEY, c INT)", f"INSERT INTO {name} VALUES (1, 1)"
        )
    steps.run()
    return steps


@pytest.mark.parametrize("place", PLACES)
def test_the_feed_goes_on(steps: Steps, place: Fault, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), FeedRun(steps.feed, Others(place, 3)) as run:
        for number in range(2, 8):
            for name in ("t", "u"):
                steps.sql("a", f"INSERT INTO {name} VALUES ({number}, 1)", f"UPDATE {name} SET c = c + 1")
            run.wait_for_log(steps.servers)
    for name in ("t", "u"):
        assert steps.lake(name, "id", "c") == steps.source(name, "id", "c")
    rows = EpochsTable(steps.feed.sink.path, "exact").read_all()
    assert len({row.manifest.epoch for row in rows}) == len(rows)
    assert caplog.text.count("others won every attempt") == 3


def test_it_ends_when_they_always_win(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "SECONDS_MAX", 0.001)

    def always(at: Fault) -> None:
        if at is Fault.AFTER_APPLY:
            raise SinkConflict("others won every attempt")

    def run() -> None:
        with FeedRun(steps.feed, always) as run:
            run.wait_for_epochs(1)

    steps.sql("a", "INSERT INTO t VALUES (9, 9)")
    with pytest.raises(SinkConflict, match="others won"):
        run()
    steps.must_be_equal("t", "id", "c")
