"""A lake says its layout and which program wrote it; one of a later layout is refused, one without a mark goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from catchment import LAKE_LAYOUT, __version__
from catchment.api.epochs import epochs
from catchment.api.read import read
from catchment.api.views import views
from catchment.model.errors import SinkError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epochs_dir, tail_dir
from catchment.sink.delta.tail.apply import DeltaSink
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS

LAYOUT = "catchment.layout"
TABLES: tuple[Callable[[Path], Path], ...] = (epochs_dir, lambda root: tail_dir(root, ORDERS.table))


def layout(directory: Path) -> str | None:
    found: str | None = DeltaTable(directory).metadata().configuration.get(LAYOUT)
    return found


def set_layout(directory: Path, value: str) -> None:
    DeltaTable(directory).alter.set_table_properties({LAYOUT: value}, raise_if_not_exists=False)


@pytest.fixture
def unmarked(feeder: Feeder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Feeder:
    """A lake as programs before the mark made it."""
    monkeypatch.setattr("catchment.sink.delta.log.properties._LAYOUT", "catchment.other")
    old = Feeder(tmp_path / "old")
    old.put(ORDERS, (1, "a"), (2, "b"))
    monkeypatch.undo()
    assert [layout(of(old.root)) for of in TABLES] == [None, None]
    return old


def test_what_wrote_it(feeder: Feeder) -> None:
    for of in TABLES:
        assert layout(of(feeder.root)) == str(LAKE_LAYOUT)
        assert DeltaTable(of(feeder.root)).history(1)[0]["catchment.version"] == __version__


def test_a_lake_without_the_mark_is_read_and_goes_on(unmarked: Feeder) -> None:
    assert read(unmarked.root, "shop.orders").arrow().num_rows == 2
    DeltaSink(unmarked.root, FEED).take_over([ORDERS], 2)
    EpochsTable(unmarked.root, FEED).take_over(2)
    assert [layout(of(unmarked.root)) for of in TABLES] == [str(LAKE_LAYOUT)] * 2
    assert read(unmarked.root, "shop.orders").arrow().num_rows == 2
    assert (
        DeltaTable(tail_dir(unmarked.root, ORDERS.table)).metadata().configuration["catchment.feed"] == FEED
    )
    with pytest.raises(Exception, match="another runner took over"):
        EpochsTable(unmarked.root, FEED).take_over(1)


USES: tuple[Callable[[Path], Any], ...] = (
    lambda root: read(root, "shop.orders"),
    views,
    lambda root: DeltaSink(root, FEED).take_over([ORDERS], 2),
)
OF_EPOCHS: tuple[Callable[[Path], Any], ...] = (
    epochs,
    lambda root: EpochsTable(root, FEED).newest(),
    lambda root: EpochsTable(root, FEED).take_over(2),
)


@pytest.mark.parametrize("later", [str(LAKE_LAYOUT + 1), "next"])
@pytest.mark.parametrize(("of", "uses"), [(TABLES[0], (*USES[:2], *OF_EPOCHS)), (TABLES[1], USES)])
def test_a_later_layout_is_refused(
    feeder: Feeder, of: Callable[[Path], Path], uses: tuple[Callable[[Path], Any], ...], later: str
) -> None:
    set_layout(of(feeder.root), later)
    before = DeltaTable(of(feeder.root)).version()
    said = rf"has layout {later}, of a later Catchment; this one \({__version__}\) knows layouts up to {LAKE_LAYOUT}"
    for use in uses:
        with pytest.raises(SinkError, match=said):
            use(feeder.root)
    assert DeltaTable(of(feeder.root)).version() == before
