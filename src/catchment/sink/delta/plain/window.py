"""The readers' window of a table: its versions of the last hours, which all stay, and their files."""

import msgspec

from catchment import world
from catchment.sink.delta.log.actions import Line
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.thinning import seconds_of
from catchment.sink.delta.plain.vectors import files_of

# A file that no entry of the log names is of an attempt that has lost when it is older.
ATTEMPT_SECONDS = 6 * 3600.0
# Whoever has begun to open a table has opened it by then, however slow the storage is.
OPEN_SECONDS = 3600.0
_TOGETHER, _THREADS = 32, 8


class Window(msgspec.Struct, frozen=True):
    """The versions from `since` on. `files`: what they need; `replaced`: what others before have had. `whole`: version
    `since` was there when the window began. Else readers may have had what stands in tails alone. `opened`: the newest
    version that was there OPEN_SECONDS ago, -1 where none is known.

    Versions count, not times of single files: a clock that is set back cannot take a file from the middle.
    """

    since: int
    files: frozenset[str]
    replaced: frozenset[str]
    whole: bool
    opened: int


class _Entry(msgspec.Struct, frozen=True):
    """What a window asks of a commit: when it was made, in seconds since 1970, which files it removed, and the epoch
    that it brings the table to, 0 where it brings none."""

    made: float | None
    removed: tuple[str, ...]
    epoch: int


class Followed:
    """A log whose entries are read once: an entry never changes, so a later window reads those alone that have come
    since. In memory are the entries of the last window and of ATTEMPT_SECONDS before it. `app`: the application whose
    version is the table's epoch."""

    def __init__(self, log: DeltaLog, app: str = "") -> None:
        self.log, self._app = log, app
        self._entries: dict[int, _Entry] = {}
        self._made: dict[int, float] = {}
        self._first = -1, 0  # the oldest of these versions, and the epoch that it is
        self._gone = -1  # the newest version whose entry was found to be gone

    def window(self, on: Snapshot, keep_seconds: float, needed: int | None = None) -> Window:
        """The window of so many seconds, as of now, which ends with version `on`, the newest. It begins with version
        `needed` at the latest. Raises SinkError."""
        now = world.now_us() / 1e6
        begin = now - keep_seconds
        before, self._entries = self._entries, {}
        if before and max(before) > on.version:
            before, self._gone = {}, -1  # a copy of the table was put back
        files = {name for file in on.files.values() for name in files_of(file.add)}
        replaced: set[str] = set()
        since: int | None = None
        opened = -1
        version = on.version
        while version >= 0 and (entry := self._entry(version, before)) is not None:
            made = entry.made
            if made is not None and made <= now - OPEN_SECONDS:
                opened = max(opened, version)
            if made is not None and made <= begin and (needed is None or version <= needed):
                since = version if since is None else since
            self._entries[version] = entry
            # Older entries are of files that an earlier turn has seen.
            if (
                made is not None
                and made <= begin - ATTEMPT_SECONDS
                and since is not None
                and since != version
            ):
                break
            (files if since is None else replaced).update(entry.removed)
            version -= 1
        first, whole = (version + 1, False) if since is None else (since, True)
        return Window(first, frozenset(files), frozenset(replaced - files), whole, opened)

    @property
    def remembered(self) -> int:
        """How many entries are in memory."""
        return len(self._entries)

    def epochs(self) -> set[int]:
        """The epochs that the table was in the last window, and in ATTEMPT_SECONDS before it. Raises SinkError."""
        found = {entry.epoch for entry in self._entries.values()} - {0}
        first = min(self._entries, default=None)
        if first is not None and not self._entries[first].epoch:
            if self._first[0] != first:
                then = self.log.told_at(first)
                self._first = first, 0 if then is None else then.transactions.get(self._app, 0)
            found.add(self._first[1])
        return found

    def made(self, version: int) -> float:
        """When a version was made, in seconds since 1970; 0, long ago, where its entry is gone or does not tell. Raises
        SinkError."""
        if (known := self._entries.get(version)) is not None:
            return known.made or 0.0
        if version not in self._made:
            self._made[version] = seconds_of(self.log.lines_of(version) or []) or 0.0
        return self._made[version]

    def forget(self, floor: int) -> None:
        """Forget when versions before `floor` were made: their entries are gone, but for kept ones."""
        self._made = {version: made for version, made in self._made.items() if version >= floor}

    def _entry(self, version: int, known: dict[int, _Entry]) -> _Entry | None:
        """An entry; None where it is gone. Together with one that is not `known` the older ones are read: one after the
        other they would take a round trip to the storage each."""
        if version <= self._gone:
            return None
        if version not in known:
            unknown = [v for v in range(version, max(version - _TOGETHER, self._gone), -1) if v not in known]
            with world.pool(min(len(unknown), _THREADS)) as pool:
                for number, found in zip(unknown, pool.map(self.log.lines_of, unknown), strict=True):
                    if found is None:
                        self._gone = max(self._gone, number)
                    else:
                        known[number] = _entry_of(found, self._app)
        return known.get(version)


def _entry_of(found: list[Line], app: str) -> _Entry:
    removed = (name for line in found if line.remove is not None for name in files_of(line.remove))
    epoch = next((line.txn.version for line in found if line.txn and line.txn.app_id == app), 0)
    return _Entry(seconds_of(found), tuple(removed), epoch)
