"""A copy that gets nowhere is counted, told, and tried again after pauses; it ends no run."""

import logging

import pytest
from msgspec.structs import replace

from catchment.epoch import standstill
from catchment.epoch.standstill import Standstill
from catchment.feed.pauses import Pauses
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut
from catchment.model.refusal import Refusal
from catchment.model.shard import Copy
from catchment.model.table import ShardTable, TableId
from tests.world.records import ORDERS, manifest
from tests.world.worlds import SetClocks, put

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
            "shop.orders is not copied yet on shard -80 (try 3): altered"
        ]
        counted.count(BEFORE, BEFORE, [], {ShardTable("-80", ORDERS): "locked"}, {})
    assert "shard -80 (try 8): locked" in caplog.text


def test_it_stands_still_until_a_chunk_is_copied() -> None:
    counted = Standstill()
    for _ in range(standstill.STILL_FROM - 1):
        counted.count(BEFORE, BEFORE, REFUSED, {}, {})
    assert counted.still == frozenset()
    for _ in range(3 * standstill.STILL_FROM):
        counted.count(BEFORE, BEFORE, REFUSED, {}, {})
    assert counted.still == {ShardTable("-80", ORDERS)}
    counted.count(BEFORE, MOVED, [], {}, {})
    assert counted.still == frozenset()


def test_it_is_tried_at_once_and_then_after_pauses_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = put(monkeypatch, SetClocks(steady=0.0))
    pauses, tried = Pauses(), list[float]()
    orders, items = ShardTable("-80", ORDERS), ShardTable("-80", ITEMS)
    assert clocks.steady is not None
    while clocks.steady < 400:
        if not pauses.waits(orders):
            tried.append(clocks.steady)
        # An epoch that does not try it finds it refused as before.
        pauses.take([Refusal("-80", ORDERS, "locked", len(tried))])
        assert not pauses.waits(items)
        clocks.steady += 0.5
    assert tried == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 124.0, 184.0, 244.0, 304.0, 364.0]
    pauses.take([])
    assert not pauses.waits(orders)


def test_a_shard_that_is_held_is_told_once_and_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    counted = Standstill()
    for _ in range(standstill._HELD_FROM - 1):
        counted.count(BEFORE, BEFORE, [], {}, {"-80": "too far behind"})
    assert (counted.refusals, caplog.text) == ((), "")
    for _ in range(100):
        counted.count(BEFORE, BEFORE, [], {}, {"-80": "too far behind"})
    epochs = standstill._HELD_FROM - 1 + 100
    assert list(counted.refusals) == [
        Refusal("-80", ORDERS, "too far behind", epochs),
        Refusal("-80", ITEMS, "too far behind", epochs),
    ]
    assert [record.message for record in caplog.records] == [
        "shard -80: no rows were copied in 10 epochs in a row: too far behind"
    ]
    counted.count(BEFORE, BEFORE, REFUSED, {}, {})  # held no longer: what is refused is counted from one
    assert list(counted.refusals) == [Refusal("-80", ORDERS, "altered", 1)]
