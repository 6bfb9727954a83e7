"""Reading as of a time, a duration back or another epoch: the newest epoch at or before it, or a clear error."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from catchment.api.epochs import epochs
from catchment.api.read import read, tables_at
from catchment.api.views import views
from catchment.model.epoch import Part
from catchment.model.epoch_number import epoch_number, epoch_text
from catchment.model.errors import ConfigError, SinkError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.endurance import passing
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, ORDERS, delta, shape, write
from tests.world.settled import carry_out, clean_feed

FOUR = 1795320000  # 2026-11-22 04:00:00 UTC
ITEMS = shape("items", {"id": INT}, ("id",))


@pytest.fixture
def timed(tmp_path: Path) -> Feeder:
    """Epochs cut at 03:59:58.2, 04:00:00.2, 04:00:00.8 and 04:10:00.5, each with a row more."""
    feeder = Feeder(tmp_path)
    for number, (seconds, tick) in enumerate(((-1.8, 2), (0.2, 2), (0.8, 8), (600.5, 5)), 1):
        feeder.put_at(FOUR + seconds, tick, ORDERS, (number, "x"))
    return feeder


def rows_at(feeder: Feeder, at: Any) -> int:
    rows: int = read(feeder.root, "shop.orders", at=at).arrow().num_rows
    return rows


@pytest.mark.parametrize(
    ("at", "rows"),
    [
        ("2026-11-22 04:00", 1),
        ("2026-11-22T04:00:00.200Z", 2),
        ("2026-11-22 04:00:00.7", 2),
        ("2026-11-22 05:00:01+01:00", 3),
        ("2026-11-22 04:10:00.4", 3),
        ("2026-11-22 04:10:00.5", 4),
        (datetime(2026, 11, 22, 4, 0, 0, 800_000, tzinfo=UTC), 3),
        (datetime(2026, 11, 21, 23, 0, 0, 799_999, tzinfo=timezone(timedelta(hours=-5))), 2),
        ("2026-11-22T04:00:00Z.0002", 2),
        ("2026-11-22T04:00:00Z.0007", 2),
        ("2026-11-22T04:09:59Z.0000", 3),
        (epoch_number(FOUR, 8), 3),
        (str(epoch_number(FOUR, 8)), 3),
        (epoch_number(FOUR + 600, 5), 4),
    ],
)
def test_the_newest_at_or_before(timed: Feeder, at: Any, rows: int) -> None:
    assert rows_at(timed, at) == rows


def test_a_duration_back(tmp_path: Path) -> None:
    feeder, now = Feeder(tmp_path), time.time()
    for row, back in enumerate((7200, 1200, 30), 1):
        feeder.put_at(now - back, 0, ORDERS, (row, "x"))
    assert [rows_at(feeder, at) for at in ("-90min", "-10min", "-0s")] == [1, 2, 3]
    with pytest.raises(
        ConfigError, match=r"shop has no epoch at or before -1d \(.*; epochs from .* can be read"
    ):
        rows_at(feeder, "-1d")


def test_a_clock_that_was_ahead(tmp_path: Path) -> None:
    """An hour ahead, and then set back: numbers go on from the highest, and times are those of the cuts."""
    feeder, now = Feeder(tmp_path), time.time()
    for row, (back, ahead) in enumerate(((1800, 0), (1200, 3600), (1190, 3600)), 1):
        feeder.put_at(now - back + ahead, 0, ORDERS, (row, "x"))
    for row, back in enumerate((1180, 600, 30), 4):
        feeder.time_us = round((now - back) * 1e6)
        feeder.put(ORDERS, (row, "x"))  # the number after the last
    assert [rows_at(feeder, at) for at in ("-25min", "-11min", "-5min", "-1s")] == [1, 4, 5, 6]
    assert rows_at(feeder, epoch_number(int(now - 1190 + 3600))) == 3
    with pytest.raises(ConfigError, match="lies in the future"):
        rows_at(feeder, datetime.fromtimestamp(now + 60, UTC))


def test_epochs_that_are_not_known_any_more(tmp_path: Path) -> None:
    """Between two epochs that stayed nobody is given the first of them without a word."""
    feeder, table = Feeder(tmp_path), EpochsTable(tmp_path, FEED)
    with passing(4 * 86_400.0) as clock:
        numbers = [feeder.put_at(clock.seconds + row, 0, ORDERS, (row, "x")) for row in range(6)]
        clock.seconds += 4 * 86_400.0
        assert table.drop(1, numbers[5], 86_400.0, [numbers[0], numbers[3]]) == 2
    assert [row_id + 1 for row_id in (0, 3, 4, 5)] == [rows_at(feeder, numbers[n]) for n in (0, 3, 4, 5)]
    for at in (numbers[1], numbers[2], datetime.fromtimestamp((numbers[2] >> 32) + 0.9, UTC)):
        with pytest.raises(SinkError, match=r"is not known any more: .* before it and .* after it"):
            rows_at(feeder, at)


def test_a_cut_counts_and_not_its_commit(timed: Feeder) -> None:
    """Between a cut and its commit, and before the first commit of all."""
    assert rows_at(timed, datetime.fromtimestamp(FOUR - 1.8, UTC)) == 1
    assert rows_at(timed, datetime.fromtimestamp(FOUR + 600.5, UTC)) == 4
    assert rows_at(timed, datetime.fromtimestamp(FOUR + 600.499, UTC)) == 3


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("soon", r"^at: 'soon' is not understood: give a time such as .* \(UTC, if it names no offset\)"),
        ("-10", r"^at: '-10' is not understood"),
        ("2026-11-22 25:00", r"^at: .* is not understood"),
        (datetime(2026, 11, 22, 4), r"^at: .* has no time zone; give one"),
        (
            1795320012.8,
            r"^at: 1795320012\.8 is a float, which cannot hold all digits of an epoch; give its text",
        ),
        (True, r"^at: True is a bool"),
        (None, None),
        (2**64, r"^at: not an epoch's number"),
        (
            "2080-01-01",
            r"^at: .* lies in the future; the newest epoch of shop is 2026-11-22T04:10:00Z\.0005$",
        ),
        ("2080-01-01T00:00:00Z.0000", r"^at: 2080-01-01T00:00:00Z\.0000 lies in the future; the newest"),
        ("1969-01-01", r"shop has no epoch at or before"),
        (
            "2026-11-22 03:59",
            r"shop has no epoch at or before 2026-11-22 03:59 \(2026-11-22 03:59:00\+00:00\); epochs from "
            r"2026-11-22T03:59:58Z\.0002 to 2026-11-22T04:10:00Z\.0005 can be read$",
        ),
    ],
)
def test_what_is_no_moment(timed: Feeder, at: Any, said: str | None) -> None:
    if said is None:
        assert rows_at(timed, at) == 4
        return
    with pytest.raises(ConfigError, match=said):
        rows_at(timed, at)


@pytest.mark.parametrize(
    ("epoch", "said"),
    [
        (
            "x",
            r"^epoch: not an epoch: 'x'; epochs are written 2026-11-22T04:00:12Z\.0007, or as their number$",
        ),
        (1795320012.8, r"^epoch: 1795320012\.8 is a float"),
        (False, r"^epoch: False is a bool"),
        (-1, r"^epoch: not an epoch's number: -1$"),
        (2**70, r"^epoch: not an epoch's number"),
        (
            epoch_number(FOUR, 3),
            r"shop has not committed epoch 2026-11-22T04:00:00Z\.0003; its newest is 2026-11-22T04:10:00Z\.0005\. at= "
            r"takes the newest epoch at or before another one; of epochs that are older than two days a lake knows "
            r"those that it keeps$",
        ),
    ],
)
def test_an_epoch_that_is_not_one_of_the_feed(timed: Feeder, epoch: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(timed.root, "shop.orders", epoch)
    with pytest.raises(ConfigError, match="not both"):
        read(timed.root, "shop.orders", epoch, at="-1s")


def test_an_epoch_is_taken_back_as_it_is_shown(timed: Feeder) -> None:
    shown = [epoch.epoch_text for epoch in epochs(timed.root)]
    states = [read(timed.root, "shop.orders", epoch) for epoch in reversed(shown)]
    assert [state.arrow().num_rows for state in states] == [1, 2, 3, 4]
    assert [read(timed.root, "shop.orders", state.epoch) for state in states] == states
    assert repr(states[1]) == "TableState(shop.orders, epoch 2026-11-22T04:00:00Z.0002, 2 columns)"
    assert tables_at(timed.root, shown[0]) == tables_at(timed.root, at="2026-11-22 05:00")
    assert shown[1] in views(timed.root, at="2026-11-22 04:01")


def test_tables_read_together_are_of_one_epoch(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    for second in range(3):
        feeder.epoch, feeder.time_us = epoch_number(FOUR + second), (FOUR + second) * 1_000_000
        files = (
            write(tmp_path, t, Part.CHANGES, f"{feeder.epoch}-a-0", [("s/0", feeder.epoch, False, row)])
            for t, row in ((ORDERS, (second, "x")), (ITEMS, (second,)))
        )
        feeder.commit((ORDERS, ITEMS), *map(delta, (ORDERS, ITEMS), files))
    orders, items = read(tmp_path, ["shop.orders", ITEMS.table], at="2026-11-22 04:00:01")
    assert orders.epoch == items.epoch == epoch_number(FOUR + 1)
    assert (orders.arrow().num_rows, items.arrow().num_rows) == (2, 2)
    assert read(tmp_path, []) == ()
    with pytest.raises(ConfigError, match=r"no table shop\.none as of epoch"):
        read(tmp_path, ["shop.orders", "shop.none"])


def test_epochs_that_feeds_of_one_lake_share_a_file_with(timed: Feeder) -> None:
    """The newest of one feed is found, though a file that ends with the other's later epoch holds older ones of it."""
    other = Feeder(timed.root, "other")
    for second in range(40):
        other.put_at(FOUR + 3600 + second, 0, ITEMS, (second,))
    timed.put_at(FOUR + 700, 0, ORDERS, (5, "x"))
    table = EpochsTable(timed.root, FEED)
    assert table.compact(1) > 0
    last = timed.put_at(FOUR + 800, 0, ORDERS, (6, "x"))
    newest = table.newest()
    assert newest is not None
    assert newest.commit.epoch == last
    assert [row.commit.epoch for row in table.last(3)] == table.numbers()[:-4:-1]
    assert [row.commit.epoch for row in table.last(2, last - 1)] == table.numbers()[-2:-4:-1]
    assert len(EpochsTable(timed.root, "other").last(100)) == 40


def test_a_feed_is_named_only_where_two_have_the_table(timed: Feeder) -> None:
    other = Feeder(timed.root, "other")
    other.put_at(FOUR, 0, ITEMS, (7,))
    assert rows_at(timed, None) == 4
    assert read(timed.root, "shop.items").arrow().num_rows == 1
    with pytest.raises(
        ConfigError, match=r"no feed of the lake has shop\.none; other has shop\.items; shop has shop"
    ):
        read(timed.root, "shop.none")
    with pytest.raises(ConfigError, match=r"has shop\.orders and shop\.items"):
        read(timed.root, ["shop.orders", "shop.items"])
    with pytest.raises(ConfigError, match=r"feeds other, shop; say which with feed="):
        tables_at(timed.root)
    with pytest.raises(ConfigError, match=r"feeds other, shop; say which with feed="):
        epochs(timed.root)
    assert len(epochs(timed.root, feed="other")) == 1


def readable(feeder: Feeder, limit: int = 20) -> Sequence[bool]:
    return [epoch.readable for epoch in epochs(feeder.root, limit)]


def test_epochs_whose_files_are_gone_are_named_so(timed: Feeder) -> None:
    """What `epochs` says is what `read` does, before and after the cleaner."""
    assert readable(timed) == [True] * 4
    carry_out(UpkeepOrder(str(timed.root), FEED, 1, 3600.0))
    for row in (5, 6):
        timed.put_at(FOUR + 600 + row, 0, ORDERS, (row, "x"))
    assert readable(timed) == [True] * 6
    assert clean_feed(timed.root, FEED, Keeping(0, 60)) == 4
    assert readable(timed) == [True, True, True, False, False, False]
    assert readable(timed, 3) == [True, True, True]
    oldest = epochs(timed.root)[2].epoch_text
    for place, found in enumerate(epochs(timed.root)):
        if found.readable:
            assert read(timed.root, "shop.orders", found.epoch).arrow().num_rows == 6 - place
            continue
        said = (
            rf"^shop\.orders cannot be read as of epoch {found.epoch_text} any more: files that others replaced stay "
            rf"for the feed's sink\.keep, and an erasure deletes them; epochs from {oldest} to "
            rf"{epoch_text(epoch_number(FOUR + 606))} can be read$"
        )
        with pytest.raises(SinkError, match=said):
            read(timed.root, "shop.orders", found.epoch)
    with pytest.raises(SinkError, match="any more"):
        rows_at(timed, "2026-11-22 04:05")


def test_epochs_that_only_settles_followed_stay_readable(timed: Feeder) -> None:
    carry_out(UpkeepOrder(str(timed.root), FEED, 1, 3600.0))
    for path in tail_dir(timed.root, ORDERS.table).glob("_part=changes/*"):
        path.unlink()
    assert readable(timed) == [True, False, False, False]
    assert rows_at(timed, None) == 4


def test_epochs_whose_log_is_gone_are_named_so(timed: Feeder) -> None:
    """Delta keeps its log two days, from a checkpoint on."""
    directory = tail_dir(timed.root, ORDERS.table)
    DeltaTable(directory).create_checkpoint()
    timed.put_at(FOUR + 605, 0, ORDERS, (5, "x"))
    for version in range(4):
        (directory / "_delta_log" / f"{version:020d}.json").unlink()
    assert readable(timed) == [True, True, False, False, False]
    assert [rows_at(timed, at) for at in ("2026-11-22 04:10:01", "2026-11-22 04:11")] == [4, 5]
    with pytest.raises(
        SinkError, match=r"any more.* epochs from 2026-11-22T04:10:00Z\.0005 to .* can be read$"
    ):
        rows_at(timed, "2026-11-22 04:05")
