"""Which files of a plain table nobody can need any more: replaced ones past the readers' window, and lost attempts."""

import time
from collections.abc import Iterator
from pathlib import Path

from catchment.sink.delta.files import lake_file
from catchment.sink.delta.log.actions import Remove, lines
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain import change_data
from catchment.sink.delta.plain.vectors import DIRECTORY, files_of

# A file that no entry of the log names is of an attempt that has lost when it is older.
ATTEMPT_SECONDS = 6 * 3600.0


def unneeded(directory: Path, keep_seconds: float) -> list[Path]:
    """Files that neither the newest version needs nor one of the last `keep_seconds`. Raises SinkError."""
    now = time.time()
    # The directory before the log: what is committed in between is named.
    present = {path: _age(path, now) for path in (*directory.glob("*.parquet"), *_vectors(directory))}
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
    names = {path: str(path.relative_to(directory)) for path in present}
    lost = [
        path
        for path, age in present.items()
        if names[path] not in needed and (names[path] in replaced or age > ATTEMPT_SECONDS)
    ]
    # Change data belongs to one commit, which is about as old as the file.
    told = (directory / change_data.DIRECTORY).glob("*.parquet")
    return [*lost, *(path for path in told if _age(path, now) > keep_seconds + ATTEMPT_SECONDS)]


def _vectors(directory: Path) -> Iterator[Path]:
    return (directory / DIRECTORY).glob("*.bin")


def _age(path: Path, now: float) -> float:
    """Seconds since the file got its name: a chunk that was linked is older than that."""
    try:
        return now - path.stat().st_ctime
    except FileNotFoundError:
        return 0.0


def _removes(directory: Path, since: float) -> Iterator[Remove]:
    """What entries of the log have removed that were written since then."""
    for entry in (directory / "_delta_log").glob("*.json"):
        with lake_file(entry):
            if entry.stat().st_mtime < since:
                continue
            found = lines(entry.read_bytes())
        yield from (line.remove for line in found if line.remove is not None)
