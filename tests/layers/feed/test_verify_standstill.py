"""What a comparison says that does not get on."""

from catchment.feed.verdict import Verdict
from catchment.feed.verify_standstill import standstill
from catchment.model.chunk import Chunk
from catchment.model.errors import SourceError
from catchment.model.table import ShardTable, TableId
from catchment.readers.verify import VerifyReceipt
from catchment.rewind.compare import Differences

LINES, ORDERS = TableId("shop", "order_lines"), TableId("shop", "orders")
REFUSED = VerifyReceipt("-80", {}, {}, {}, ((Chunk("-80", LINES, None, None), "the key changed rows"),))


def test_it_says_what_was_compared_until_then() -> None:
    verdict = Verdict(rows={ORDERS: 1200, LINES: 300}, found={ORDERS: Differences(), LINES: Differences()})
    said = str(standstill("f", [REFUSED], {}, verdict))
    assert said == (
        "verification of feed f does not get on: the key changed rows. So far 1,500 rows of 2 tables were compared, "
        "with no difference; the same command goes on from there"
    )
    verdict.found[LINES] = Differences(changed=2)
    assert "with 2 differences in shop.order_lines" in str(standstill("f", [REFUSED], {}, verdict))
    assert "No row was compared" in str(standstill("f", [REFUSED], {}, Verdict()))


def test_what_was_not_planned_is_the_reason_where_nothing_was_refused() -> None:
    unplanned = {ShardTable("-80", LINES): SourceError("Lock wait timeout")}
    assert "shop.order_lines: Lock wait timeout" in str(standstill("f", [], unplanned, Verdict()))
    assert "is not sealed; run the feed" in str(standstill("f", [], {}, Verdict()))
