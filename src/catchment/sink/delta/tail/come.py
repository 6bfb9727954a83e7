"""What has come to a table, as the log of its tail tells it."""

from collections.abc import Mapping

from catchment.model.table import TableId
from catchment.sink.delta.log.delta_log import DeltaLog


def come(log: DeltaLog, table: TableId, app: str, epoch: int, versions: Mapping[str, int]) -> int | None:
    """The newest epoch, up to `epoch`, that has come to a table; `versions`: those of that epoch's row. None where the
    log does not tell any more. Raises SinkError.

    A row may have a version of long ago, of a table that was not touched since: the log tells the last one that carries
    no later epoch even so.
    """
    newest, version = log.newest(), versions.get(str(table))
    if newest is None or version is None:
        return None
    carried = newest.transactions.get(app, 0)
    if carried <= epoch:
        return carried
    then = log.at(version) or log.carrying(app, epoch)
    return None if then is None else then.transactions.get(app, 0)
