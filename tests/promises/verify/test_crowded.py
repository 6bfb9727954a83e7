"""A table of which more rows changed since the newest epoch than memory may hold is compared in smaller chunks."""

from collections.abc import Callable, Sequence
from typing import Any

from catchment.epoch.work import Failed
from catchment.feed.planner import IMAGE_BUDGETS
from catchment.feed.verify import verify
from catchment.model.errors import TooManyImages
from catchment.readers.verify import VerifyReceipt
from tests.promises.exact.steps import Steps
from tests.promises.verify.damage import counts, plain
from tests.world.engines import Here
from tests.world.planted import without
from tests.world.settled import settled

ROWS, UPDATES, BYTES = 128, 12, 8000
BUDGET = 1_000_000


class Watched(Here):
    """`refused`: the chunks of each table that were too large, alone in their group or beside others."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def each(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        receipts = super().each(work, tasks)
        for receipt in receipts:
            if isinstance(receipt, Failed) and isinstance(receipt.error, TooManyImages):
                self.refused.append("alone")
            elif isinstance(receipt, VerifyReceipt) and receipt.crowded:
                self.refused.append("beside others")
        return receipts


def test_it_is_compared_in_smaller_chunks(steps: Steps) -> None:
    steps.everywhere(
        "CREATE TABLE busy (id INT PRIMARY KEY, v LONGTEXT)",
        f"INSERT INTO busy SELECT seq, '' FROM seq_1_to_{ROWS}",
        "CREATE TABLE once (id INT PRIMARY KEY, v LONGTEXT)",
        "INSERT INTO once VALUES (1, '')",
    )
    steps.set(copy={"chunk_rows_max": ROWS, "group_time": "0s", "log_budget": "1MB"})
    steps.run()
    settled(steps.feed)
    plain(steps, "busy", without("id", 7))
    for number in range(UPDATES):
        steps.everywhere(f"UPDATE busy SET v = REPEAT('{number % 10}', {BYTES})")
    # One row alone has more changes than that, and there is nothing smaller than a row.
    for number in range(IMAGE_BUDGETS * BUDGET // (8 * BYTES) + 1):
        steps.everywhere(f"UPDATE once SET v = REPEAT('{number % 10}', 8 * {BYTES})")
    engine = Watched()
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verify(steps.feed, endpoints, engine)
    assert counts(verdict, "busy") == (len(endpoints), 0, 0)
    assert verdict.differences == len(endpoints)
    assert "alone" in engine.refused
