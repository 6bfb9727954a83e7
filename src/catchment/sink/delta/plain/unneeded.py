"""Which files of a plain table nobody can need any more: replaced ones past the readers' window, and lost attempts."""

import time
from collections.abc import Iterator

from catchment.model.location import Location
from catchment.sink.delta.files import lake_file, lake_files, name_within
from catchment.sink.delta.log.actions import Remove, lines
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain import change_data
from catchment.sink.delta.plain.vectors import DIRECTORY, files_of
from catchment.sink.storage.choice import storage_of

# A file that no entry of the log names is of an attempt that has lost when it is older.
ATTEMPT_SECONDS = 6 * 3600.0


def unneeded(directory: Location, keep_seconds: float) -> list[Location]:
    """Files that neither the newest version needs nor one of the last `keep_seconds`. Raises SinkError."""
    now = time.time()
    # The directory before the log: what is committed in between is named.
    present = [*lake_files(directory, ".parquet"), *lake_files(directory / DIRECTORY, ".bin")]
    log = DeltaLog(directory)
    newest = log.newest()
    if newest is None:
        return []
    needed = {name for file in newest.files.values() for name in files_of(file.add)}
    replaced: set[str] = set()
    for remove in _removes(directory, now - keep_seconds - ATTEMPT_SECONDS):
        # Other writers may leave the time out (Delta protocol: Add File and Remove File).
        removed_at = now if remove.deletion_timestamp is None else remove.deletion_timestamp / 1000
        late = removed_at > now - keep_seconds
        (needed if late else replaced).update(files_of(remove))
    lost = []
    for one in present:
        name = name_within(directory, one.place)
        if name not in needed and (name in replaced or now - one.since > ATTEMPT_SECONDS):
            lost.append(one.place)
    # Change data belongs to one commit, which is about as old as the file.
    told = lake_files(directory / change_data.DIRECTORY, ".parquet")
    return [*lost, *(one.place for one in told if now - one.since > keep_seconds + ATTEMPT_SECONDS)]


def _removes(directory: Location, since: float) -> Iterator[Remove]:
    """What entries of the log have removed that were written since then."""
    log = directory / "_delta_log"
    for entry in lake_files(log, ".json"):
        if entry.since < since:
            continue
        with lake_file(entry.place):
            found = lines(storage_of(log).read(entry.place))
        yield from (line.remove for line in found if line.remove is not None)
