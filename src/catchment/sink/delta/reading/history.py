"""From which version on a lake table can be read: the cleaner removes replaced files, Delta its oldest log entries."""

import re

from catchment.model.location import Location
from catchment.sink.delta.files import exists, lake_file, lake_files
from catchment.sink.delta.log.actions import lines
from catchment.sink.delta.plain.vectors import files_of
from catchment.sink.storage.choice import storage_of

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:.*\.)?parquet")


def oldest_version(directory: Location, newest: int, asked: int = 0) -> int:
    """A version from which on every one up to `newest` can be read; `asked` if that is one.

    Versions before it lack files or log entries; one or another of them may be readable still.
    """
    log = directory / "_delta_log"
    for version in range(newest, asked, -1):
        entry = log / f"{version:020d}.json"
        if not exists(entry):
            return min((c for c in _checkpoints(log) if c >= version), default=newest)
        with lake_file(entry):
            found = lines(storage_of(log).read(entry))
        removed = (name for line in found if line.remove is not None for name in files_of(line.remove))
        if not all(exists(directory / name) for name in removed):
            return version
    return asked if _has_log(log, asked) else min(_checkpoints(log), default=newest)


def _has_log(log: Location, version: int) -> bool:
    """Whether Delta's log reaches back to a version, of which all later entries are there."""
    begins = [c for c in _checkpoints(log) if c <= version]
    first = max(begins) + 1 if begins else 0
    return all(exists(log / f"{v:020d}.json") for v in range(first, version + 1))


def _checkpoints(log: Location) -> list[int]:
    names = (one.place.name for one in lake_files(log, ".parquet"))
    return [int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
