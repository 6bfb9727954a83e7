"""The readers' window of a plain table: its versions of the last hours, which all stay, and their files."""

import msgspec

from catchment import world
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.thinning import seconds_of
from catchment.sink.delta.plain.vectors import files_of

# A file that no entry of the log names is of an attempt that has lost when it is older.
ATTEMPT_SECONDS = 6 * 3600.0


class Window(msgspec.Struct, frozen=True):
    """The versions from `since` on. `files`: what they need; `replaced`: what others before have had. `whole`: version
    `since` was there when the window began. Else readers may have had what stands in tails alone.

    Versions count, not times of single files: a clock that is set back cannot take a file from the middle.
    """

    since: int
    files: frozenset[str]
    replaced: frozenset[str]
    whole: bool


def window_of(log: DeltaLog, keep_seconds: float) -> Window | None:
    """The window of so many seconds, as of now; None where there is no table. Raises SinkError."""
    begin = world.now_us() / 1e6 - keep_seconds
    newest = log.newest()
    if newest is None:
        return None
    needed = {name for file in newest.files.values() for name in files_of(file.add)}
    replaced: set[str] = set()
    since: int | None = None
    version = newest.version
    while version >= 0 and (found := log.lines_of(version)) is not None:
        made = seconds_of(found)
        if made is not None and made <= begin:
            since = version if since is None else since
        # Older entries are of files that an earlier turn has seen.
        if made is not None and made <= begin - ATTEMPT_SECONDS and since != version:
            break
        removed = (name for line in found if line.remove is not None for name in files_of(line.remove))
        (needed if since is None else replaced).update(removed)
        version -= 1
    first, whole = (version + 1, False) if since is None else (since, True)
    return Window(first, frozenset(needed), frozenset(replaced - needed), whole)
