"""What keeps a comparison from getting on."""

from collections.abc import Mapping, Sequence

from catchment.epoch.work import Failed
from catchment.model.errors import CatchmentError, SourceError
from catchment.model.table import ShardTable
from catchment.readers.verify import VerifyReceipt

# So many waves in a row may bring nothing.
FRUITLESS_WAVES_MAX = 10


def standstill(
    feed: str,
    receipts: Sequence[VerifyReceipt | Failed],
    unplanned: Mapping[ShardTable, SourceError],
) -> CatchmentError:
    """The error with which it ends."""
    for receipt in receipts:
        if isinstance(receipt, Failed):
            return receipt.error
        if receipt.refused:
            return SourceError(f"verification of feed {feed} does not get on: {receipt.refused[0][1]}")
    for (shard, table), error in unplanned.items():
        return SourceError(
            f"verification of feed {feed} does not get on: shard {shard}, {table}: {error} (does a session lock the "
            "table?)"
        )
    return SourceError(
        f"verification of feed {feed} does not get on: the log behind its newest epoch is not sealed; run the feed"
    )
