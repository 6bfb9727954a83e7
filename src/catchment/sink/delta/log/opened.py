"""A table of a lake as deltalake opens it, for queries over it."""

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from catchment.model.location import Location
from catchment.sink.delta.log.properties import must_be_known
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused


def open_table(directory: Location, version: int | None = None) -> DeltaTable | None:
    """A fresh handle at the newest version or at `version`; None when there is no table.

    Raises SinkError, also for a table of a layout that a later Catchment has given it.
    """
    try:
        table = delta_table(directory, version)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        at = "" if version is None else f" at version {version}"
        raise refused(error, f"cannot open the Delta table {directory}{at}: {_in_a_line(error)}") from error
    must_be_known(table.metadata().configuration, directory)
    return table


def delta_table(directory: Location, version: int | None = None) -> DeltaTable:
    """A table that is there. Raises as deltalake does."""
    return DeltaTable(str(directory), version=version, storage_options=storage_of(directory).options())


def _in_a_line(error: Exception) -> str:
    """What delta-rs says over several lines, with a rail beside them."""
    return " ".join(str(error).replace("\u2502", " ").split())
