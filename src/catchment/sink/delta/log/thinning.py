"""Entries of a plain table's log that nobody needs any more: which they are, and their end.

What stays: all entries behind a checkpoint that is older than the readers' window, and of each kept version its entry
and a checkpoint. Delta's readers open such a version by its checkpoint; Spark looks for the entry, too.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator

from catchment.model.location import Location
from catchment.sink.delta.files import delete, lake_files
from catchment.sink.delta.log.actions import Line
from catchment.sink.delta.log.delta_log import DeltaLog

# What a version may have in a log, of any writer that is known.
_OF_VERSION = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet|checkpoint\.[0-9.a-f-]+\.(parquet|json))")


def seconds_of(found: list[Line]) -> float | None:
    """When a commit was made, in seconds since 1970; None where it does not tell."""
    told = (line.commit_info.get("timestamp") for line in found if line.commit_info is not None)
    return next((stamp / 1000 for stamp in told if isinstance(stamp, int)), None)


def floor_of(log: DeltaLog, seconds: float, window: int) -> int:
    """The newest checkpoint that is older than a time, and not behind version `window`: entries before it are needed by
    kept versions alone. 0 where there is none."""
    begins = [version for version in log.checkpoints() if version <= window]
    place = bisect_right(begins, seconds, key=lambda version: _made(log, version))
    return begins[place - 1] if place else 0


def _made(log: DeltaLog, version: int) -> float:
    """When a version was made; 0, long ago, where its entry is gone or does not tell."""
    return seconds_of(log.lines_of(version) or []) or 0.0


def thin_out(log: DeltaLog, floor: int, kept: Collection[int]) -> int:
    """Delete what the log has of versions before `floor` that are not kept; how many files. Raises SinkError."""
    gone = [
        path
        for version, path in _files(log.directory / "_delta_log")
        if version < floor and version not in kept
    ]
    for path in gone:
        delete(path)
    return len(gone)


def _files(directory: Location) -> Iterator[tuple[int, Location]]:
    for one in lake_files(directory, ""):
        if (found := _OF_VERSION.fullmatch(one.place.name)) is not None:
            yield int(found[1]), one.place
