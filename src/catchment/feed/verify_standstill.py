"""What keeps a comparison from getting on."""

from collections.abc import Mapping, Sequence

from catchment.epoch.work import Failed
from catchment.feed.verdict import Verdict
from catchment.model.errors import CatchmentError, SourceError
from catchment.model.table import ShardTable
from catchment.readers.verify import VerifyReceipt

# So many waves in a row may bring nothing.
FRUITLESS_WAVES_MAX = 10


def standstill(
    feed: str,
    receipts: Sequence[VerifyReceipt | Failed],
    unplanned: Mapping[ShardTable, SourceError],
    verdict: Verdict,
) -> CatchmentError:
    """The error with which it ends. `verdict`: what was found until then."""
    for receipt in receipts:
        if isinstance(receipt, Failed):
            return receipt.error
    refused = (
        receipt.refused for receipt in receipts if isinstance(receipt, VerifyReceipt) and receipt.refused
    )
    why = next((chunks[0][1] for chunks in refused), "")
    if not why and unplanned:
        (shard, table), error = next(iter(unplanned.items()))
        why = f"shard {shard}, {table}: {error} (does a session lock the table?)"
    why = why or "the log behind its newest epoch is not sealed; run the feed"
    return SourceError(f"verification of feed {feed} does not get on: {why}. {_compared(verdict)}")


def _compared(verdict: Verdict) -> str:
    rows, tables = sum(verdict.rows.values()), len([rows for rows in verdict.rows.values() if rows])
    if not rows:
        return "No row was compared so far"
    differing = sorted(str(table) for table, found in verdict.found.items() if found.total)
    found = f"{verdict.differences:,} differences in {', '.join(differing)}" if differing else "no difference"
    # What changed since an epoch grows, so such a comparison begins from the start.
    on = "" if verdict.keys else "; the same command goes on from there"
    return f"So far {rows:,} rows of {tables} tables were compared, with {found}{on}"
