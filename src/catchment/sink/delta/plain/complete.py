"""Versions of a lake table of which all files are there: the cleaner and erasures delete those of older ones."""

from catchment.model.location import Location
from catchment.sink.delta.files import exists
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.vectors import files_of


def is_complete(directory: Location, then: Snapshot) -> bool:
    """Whether every file of a version is there, vectors too."""
    names = {name for file in then.files.values() for name in files_of(file.add)}
    return all(exists(directory / name) for name in names)


def last_complete(log: DeltaLog, app: str, epoch: int, version: int) -> Snapshot | None:
    """A tail as of an epoch: at the version that the epoch names, or else at the last one that carries no later epoch.
    What that has less, the plain table had then. None where neither is there any more. Raises SinkError."""
    then = log.at(version)
    if then is None or not is_complete(log.directory, then):
        then = log.carrying(app, epoch)
    return then if then is not None and is_complete(log.directory, then) else None
