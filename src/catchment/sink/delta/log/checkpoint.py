"""Checkpoints of a table's log, and the end of entries that are too old. deltalake writes them, vectors included.

Without them whoever opens the table reads every commit since its beginning.
"""

from deltalake.exceptions import DeltaError

from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.opened import delta_table
from catchment.sink.storage.refused import refused

# Commits between two checkpoints: reading so many takes some 20 ms.
INTERVAL = 50


def checkpoint(log: DeltaLog) -> None:
    """Write a checkpoint where one is due. Raises SinkError."""
    on = log.newest()
    if on is None or on.version - log.checkpointed() < INTERVAL:
        return
    try:
        table = delta_table(log.directory)
        table.create_checkpoint()
        table.cleanup_metadata()
    except (DeltaError, OSError) as error:
        raise refused(
            error, f"cannot write a checkpoint of {log.directory}: {error}; check space and rights there"
        ) from error
