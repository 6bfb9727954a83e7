"""What is said of a plain table that is older than its tail allows: a copy of its directory was put back."""

from catchment.model.epoch_number import epoch_text
from catchment.model.location import Location
from catchment.model.table import TableId


def older_copy(table: TableId, directory: Location, settled: int, trimmed: int) -> str:
    """`settled`: the epoch that the plain table is; `trimmed`: the one up to which the tail has no rows any more."""
    return (
        f"{table}: the table at {directory} is epoch {epoch_text(settled)}, but it had epoch {epoch_text(trimmed)} "
        "before: an older copy of it was put back, and what was settled since is missing; put back the newest one, or "
        "restore the whole lake and remove the state store"
    )
