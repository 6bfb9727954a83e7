"""A copy that gets nowhere is counted, told, and ends the run."""

import logging

import pytest
from msgspec.structs import replace

from catchment.epoch import standstill
from catchment.epoch.standstill import Standstill
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.errors import SourceError
from catchment.model.refusal import Refusal
from catchment.model.shard import Copy
from catchment.model.table import ShardTable, TableId
from tests.world.records import ORDERS, manifest

ITEMS = TableId("shop", "items")


def at(*copies: Copy) -> Cut:
    """A cut of one shard with these copies."""
    known = manifest(1).cut
    return replace(known, shards={"-80": replace(known.shards["-80"], copies=copies)})


BEFORE = at(Copy(ORDERS), Copy(ITEMS))
MOVED = at(Copy(ORDERS, copied=(7,)), Copy(ITEMS))
REFUSED = [(Chunk("-80", ORDERS, None, (7,)), "altered"), (Chunk("-80", ORDERS, (7,), (9,)), "one before it")]


def test_epochs_in_a_row_are_counted_until_a_chunk_is_copied() -> None:
    counted = Standstill()
    counted.count(BEFORE, BEFORE, REFUSED, {ShardTable("-80", ITEMS): "locked"}, {})
    counted.count(BEFORE, BEFORE, [], {}, {})  # nothing was planned: other tables came first
    counted.count(BEFORE, BEFORE, REFUSED, {}, {})
    assert list(counted.refusals) == [
        Refusal("-80", ITEMS, "locked", 1),
        Refusal("-80", ORDERS, "altered", 2),
    ]
    counted.count(BEFORE, MOVED, REFUSED[1:], {}, {})
    assert list(counted.refusals) == [Refusal("-80", ITEMS, "locked", 1)]
    counted.count(MOVED, MOVED, REFUSED, {}, {})
    assert [refusal.epochs for refusal in counted.refusals] == [1, 1]


def test_it_is_logged_once_it_has_lasted(caplog: pytest.LogCaptureFixture) -> None:
    counted = Standstill()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            counted.count(BEFORE, BEFORE, REFUSED, {}, {})
        assert caplog.text == ""
        for _ in range(5):
            counted.count(BEFORE, BEFORE, REFUSED, {}, {})
        assert [record.message for record in caplog.records] == [
            "shop.orders on -80 is not copied: its chunks were refused in 3 epochs in a row (altered)"
        ]
        counted.count(BEFORE, BEFORE, [], {ShardTable("-80", ORDERS): "locked"}, {})
    assert "8 epochs in a row (locked)" in caplog.text


def test_it_ends_the_run() -> None:
    counted = Standstill()
    for _ in range(standstill.EPOCHS_MAX):
        counted.count(BEFORE, BEFORE, REFUSED, {}, {})
    with pytest.raises(SourceError, match=r"shard -80, shop.orders: the copy stands still: .*\(altered\)"):
        counted.count(BEFORE, BEFORE, REFUSED, {}, {})


def test_a_shard_that_is_held_is_told_once_and_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    counted = Standstill()
    for _ in range(standstill._HELD_FROM - 1):
        counted.count(BEFORE, BEFORE, [], {}, {"-80": "too far behind"})
    assert (counted.refusals, caplog.text) == ((), "")
    for _ in range(standstill.EPOCHS_MAX):
        counted.count(BEFORE, BEFORE, [], {}, {"-80": "too far behind"})
    epochs = standstill._HELD_FROM - 1 + standstill.EPOCHS_MAX
    assert list(counted.refusals) == [
        Refusal("-80", ORDERS, "too far behind", epochs),
        Refusal("-80", ITEMS, "too far behind", epochs),
    ]
    assert [record.message for record in caplog.records] == [
        "shard -80: no rows were copied in 10 epochs in a row: too far behind"
    ]
    counted.count(BEFORE, BEFORE, REFUSED, {}, {})  # held no longer: what is refused is counted from one
    assert list(counted.refusals) == [Refusal("-80", ORDERS, "altered", 1)]
