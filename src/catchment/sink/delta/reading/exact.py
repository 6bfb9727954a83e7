"""The epoch as of which a table stands."""

from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable


def exact(epochs: EpochsTable, row: EpochRow, table: TableId) -> EpochRow:
    """An epoch, or of a table that is stale there the last one at which it was exact. Raises SinkError where the epochs
    table lacks that."""
    stale = row.manifest.stale_since(table)
    if stale is None:
        return row
    then = epochs.at(stale.epoch)
    if then is None:
        raise SinkError(
            f"{table} stands as of epoch {epoch_text(stale.epoch)}, which the epochs table lacks; put back a copy of "
            "the directory _catchment of the lake"
        )
    return then
