"""Hold what kept epochs need of a plain table, before the window's end is taken away.

Each kept version gets a checkpoint while the log still tells it, and its files are noted. Both may be repeated.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.kept.held import Held, read_held, write_held
from catchment.sink.delta.kept.retained import Carried, retained
from catchment.sink.delta.layout import epoch_app
from catchment.sink.delta.log.checkpoint import write_checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.vectors import files_of


def hold(root: Location, feed: str, table: TableId, log: DeltaLog, kept: Sequence[int], since: int) -> Held:
    """What a table's kept versions before `since` need, as of these kept epochs; `log`: that of the plain table. Raises
    SinkError."""
    app = epoch_app(feed, table)
    before = held = read_held(root, table)
    for epoch in kept:
        if epoch <= held.until:
            continue
        found = retained(log, app, epoch)
        if found is not None and found.version >= since:
            break
        held = _with(held, log, epoch, found)
    held = held.thinned(kept)
    if held != before:
        write_held(root, table, held)
    return held


def _with(held: Held, log: DeltaLog, epoch: int, found: Carried | None) -> Held:
    """Together with a kept epoch; None: the table had no version then."""
    if found is None or found in held.versions[-1:]:
        return replace(held, until=epoch)
    snapshot = log.at(found.version)
    if snapshot is None:
        raise SinkError(
            f"{log.directory}: the log does not tell version {found.version} any more, which a kept epoch needs; put "
            "back a copy of the lake"
        )
    write_checkpoint(log, snapshot)
    names = (name for file in snapshot.files.values() for name in files_of(file.add))
    return held.with_version(found, epoch, names)
