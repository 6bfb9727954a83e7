"""Lakes as sinks, for tests without a feed file."""

from collections.abc import Callable
from pathlib import Path

from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.lake import DeltaLake
from catchment.sink.reading import TableState
from tests.layers.sink.model import FEED


def lake_of(root: Path, after_table: Callable[[], None] = lambda: None) -> DeltaLake:
    """The lake at `root` as the sink of the tests' feed; `after_table` as `DeltaLake` takes it."""
    return DeltaLake(UpkeepOrder(str(root), FEED, 0, 3600.0), 10.0, after_table)


def files_of(state: TableState) -> DeltaState:
    """What `read` gives, with the files of its Delta table."""
    assert isinstance(state, DeltaState)
    return state
