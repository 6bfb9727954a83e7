"""The cleaner: removes files that no reader and no commit can need any more, of the logs, too.

It deletes by itself and commits nothing. Delta's full vacuum is never used: it knows neither attempts nor epochs. All
tables are cleaned by one rule (DESIGN 10): list the directory, read what the log has got since the last turn, and
delete what no version of the window needs.
"""

import math
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import chain

import msgspec

from catchment import world
from catchment.model.epoch import EpochRow, TableShape
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.erasure.places import data_files
from catchment.sink.delta.files import delete, lake_file
from catchment.sink.delta.kept.hold import hold
from catchment.sink.delta.layout import Tail, epoch_app, epochs_dir, kept_dir, versions_dir
from catchment.sink.delta.log.condemned import condemn
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.thinning import checkpoints_of, floor_of, needless
from catchment.sink.delta.plain.foreign import foreign_change
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.shape import tells_changes
from catchment.sink.delta.plain.unneeded import Present, is_old, old_changes, old_drafts, present, unneeded
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS, OPEN_SECONDS, Followed, Window
from catchment.sink.delta.tail.generations import tails_of
from catchment.sink.delta.tail.stage import staged_before
from catchment.sink.delta.upkeep.logs import Logs
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused

# So long a plain table's log tells each version, for others that follow it.
LOG_SECONDS = 2 * 86_400.0


class Keeping(msgspec.Struct, frozen=True):
    """What stays. `window_seconds`: the readers' window (see `window_hours`). `attempt_seconds`: files of attempts
    that are younger; give the lease's length or more. `epochs`: those that are kept beyond the window, in order."""

    window_seconds: float
    attempt_seconds: float
    epochs: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """The readers' window, in whole hours."""
        return 3600.0 * window_hours(self.window_seconds)


class Cleaner:
    """Cleans the lake of one feed. It remembers what it has read of the logs: a later turn reads on from there."""

    def __init__(self, root: Location, feed: str, epochs: EpochsTable, logs: Logs) -> None:
        self._root, self._feed = root, feed
        self._epochs, self._logs = epochs, logs
        self._followed: dict[Location, Followed] = {}
        self._shared = [epochs.log, DeltaLog(versions_dir(root)), DeltaLog(kept_dir(root))]
        self._replaced: set[tuple[TableId, int]] = set()  # copies of which no reader needs an earlier one
        self.standing: set[int] = (
            set()
        )  # the epochs that plain tables were within the window, as of the last turn

    def clean(self, keeping: Keeping) -> int:
        """Clean all tables of the feed, as of its newest committed epoch, whose files stay in any case; how many files
        were deleted, those of logs apart.

        A table that cannot be cleaned keeps no other from its turn; then the first SinkError is raised.
        """
        row = self._epochs.newest()
        self.standing = set()
        if row is None:
            return 0
        self._keep_only(row.manifest.followed)
        work: list[Callable[[], int]] = [partial(self._clean_staged, keeping)]
        work += [partial(self._clean_shared, log, keeping) for log in self._shared]
        work += [partial(self._clean_copy, row, shape, keeping) for shape in row.manifest.followed]
        deleted, failures = 0, []
        for one in work:
            try:
                deleted += one()
            except SinkError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        sign = _sign(self._root, self._feed)
        try:
            storage_of(sign).mark(sign)
        except OSError as error:
            raise refused(
                error, f"cannot write {sign}: {error}; check the lake's rights and mount"
            ) from error
        return deleted

    @property
    def remembered(self) -> int:
        """How many entries of logs it holds in memory."""
        return sum(one.remembered for one in self._followed.values())

    def _keep_only(self, shapes: Iterable[TableShape]) -> None:
        """Forget what was read of tables, and of copies of them, that are followed no more."""
        copies = {(shape.table, shape.generation): self._logs(shape) for shape in shapes}
        logs = [*self._shared, *chain.from_iterable(copies.values())]
        mine = {log.directory for log in logs}
        self._followed = {place: one for place, one in self._followed.items() if place in mine}
        self._replaced &= copies.keys()

    def _clean_staged(self, keeping: Keeping) -> int:
        """Delete rows that waited for a cut when their run ended: no epoch ever names them."""
        left = staged_before(self._root, self._feed, world.now_us() / 1e6 - keeping.attempt_seconds)
        for path in left:
            delete(path)
        return len(left)

    def _clean_shared(self, log: DeltaLog, keeping: Keeping) -> int:
        """Clean a table of all feeds, of which nobody asks for an older version."""
        there, on = present(log.directory), log.newest()
        if on is None:
            return 0
        followed = self._follow(log)
        window = followed.window(on, keeping.seconds)
        self._thin_out(followed, there, window, keeping.seconds + OPEN_SECONDS)
        return self._delete_unneeded(followed, there, window, keeping)

    def _clean_copy(self, row: EpochRow, shape: TableShape, keeping: Keeping) -> int:
        plain, tail = self._logs(shape)
        on = plain.newest()
        # Readers of changes ask the tail whether an epoch was settled, for as long as there is change data.
        told = ATTEMPT_SECONDS if on is not None and tells_changes(on.metadata) else OPEN_SECONDS
        deleted = self._clean_tail(row, shape, tail, keeping, told)
        if shape.place_of is None:
            deleted += self._clean_plain(shape, plain, keeping)
            deleted += self._clean_given_up(row, shape)
        return deleted

    def _clean_tail(
        self, row: EpochRow, shape: TableShape, log: DeltaLog, keeping: Keeping, told: float
    ) -> int:
        """Clean a tail, whose log tells so many seconds more than the window. A file of an epoch that is not committed
        yet may have a manifest that names it."""
        epoch, there, on = row.manifest.epoch, present(log.directory), log.newest()
        if on is None:
            raise SinkError(
                f"{shape.lake_table}: the lake table at {log.directory} vanished while it was cleaned"
            )
        # Where a later epoch has been applied, readers of the committed one need the version that was its.
        later = on.transactions.get(epoch_app(self._feed, shape.lake_table), 0) > epoch
        followed = self._follow(log)
        window = followed.window(on, keeping.seconds, _version(row, shape) if later else None)
        self._thin_out(followed, there, window, keeping.seconds + told)
        age_s = keeping.attempt_seconds
        lost = unneeded(there, window, lost=lambda name, age: _has_lost(name, age, epoch, age_s))
        return _delete_all(log.directory, lost)

    def _clean_plain(self, shape: TableShape, log: DeltaLog, keeping: Keeping) -> int:
        """Clean a plain table. What kept epochs need is held first, and the log forgets one before its files go. When
        the window has this copy of the table alone, the tails of copies before it lose their files."""
        there, on = present(log.directory), log.newest()
        if on is None:
            return 0
        followed, seconds = self._follow(log, epoch_app(self._feed, shape.table)), keeping.seconds
        window = followed.window(on, seconds)
        self.standing |= followed.epochs()
        held = hold(self._root, self._feed, shape.table, log, keeping.epochs, window.since)
        kept = {one.version for one in held.versions}
        self._thin_out(followed, there, window, max(LOG_SECONDS, seconds + ATTEMPT_SECONDS), kept)
        deleted = self._clean_replaced_copies(shape, log, window)
        deleted += self._delete_unneeded(followed, there, window, keeping, held.files)
        return deleted + _delete_all(log.directory, old_changes(there, seconds))

    def _delete_unneeded(
        self, followed: Followed, there: Present, window: Window, keeping: Keeping, held: Collection[str] = ()
    ) -> int:
        """Delete the data files that nobody needs. Those of attempts that seem to be lost are condemned first; what was
        committed until then stays. They wait while a settle has to take back what others changed: it looks for that
        after the last entry of ours."""
        log, names = followed.log, set(unneeded(there, window, held))
        on = log.newest()
        if on is not None and not names <= window.replaced:
            after = condemn(log, on, lambda version: foreign_change(log, version) is None)
            names = names & window.replaced if after is None else names
            names -= followed.window(after or on, keeping.seconds).files
        return _delete_all(log.directory, names)

    def _clean_replaced_copies(self, shape: TableShape, log: DeltaLog, window: Window) -> int:
        copy = (shape.table, shape.generation)
        if not shape.generation or copy in self._replaced or not window.whole:
            return 0
        begin = log.told_at(window.since)
        if begin is None or generation(begin, self._feed, shape.table) < shape.generation:
            return 0
        before = [at for began, at in tails_of(self._root, shape.table).items() if began < shape.generation]
        deleted = sum(map(_delete_data, before))
        self._replaced.add(copy)
        return deleted

    def _clean_given_up(self, row: EpochRow, shape: TableShape) -> int:
        """Clean the tails of shadow tables that never took the place of a table. The committed epoch keeps others."""
        kept = {Tail.of(one) for one in row.manifest.followed}
        return sum(
            _delete_data(directory)
            for began, directory in tails_of(self._root, shape.table).items()
            if shape.generation < began <= row.manifest.epoch and Tail(shape.table, began) not in kept
        )

    def _follow(self, log: DeltaLog, app: str = "") -> Followed:
        found = self._followed.get(log.directory)
        if found is None or found.log is not log:
            found = self._followed[log.directory] = Followed(log, app)
        return found

    def _thin_out(
        self, followed: Followed, there: Present, window: Window, seconds: float, kept: Collection[int] = ()
    ) -> None:
        """Delete what nobody needs of a log, which tells each version of so many seconds."""
        before = world.now_us() / 1e6 - seconds
        floor = floor_of(checkpoints_of(there.log), followed.made, before, window.since)
        followed.forget(floor)
        log = followed.log.directory / "_delta_log"
        _delete_all(log, [*needless(there.log, floor, window.opened, kept), *old_drafts(there)])


def cleaned_seconds_ago(root: Location, feed: str) -> float:
    """Since a feed's lake was cleaned, by any run; 0 where it never was, and is young."""
    sign = _sign(root, feed)
    with lake_file(sign):
        found = storage_of(sign).stored(sign)
    return 0.0 if found is None else max(0.0, world.now_us() / 1e6 - found.since)


def _sign(root: Location, feed: str) -> Location:
    """A file whose time tells when the cleaner came last."""
    return epochs_dir(root).parent / f"cleaned-{feed}"


def window_hours(keep_s: float) -> int:
    """The readers' window in the hours that Delta counts in, rounded up."""
    return math.ceil(keep_s / 3600)


def _version(row: EpochRow, shape: TableShape) -> int | None:
    return row.commit.versions.get(str(shape.table))


def _has_lost(name: str, age: float, epoch: int, age_s: float) -> bool:
    """Whether a file of a tail, were it named nowhere, is of an attempt that cannot be committed any more. Its name
    begins with its epoch, but for files of earlier layouts."""
    first = name.rpartition("/")[2].partition("-")[0]
    if not first.isdigit():
        return is_old(name, age)
    return int(first) <= epoch and age > age_s


def _delete_data(directory: Location) -> int:
    """Delete all data files of a table."""
    paths = data_files(directory)
    for path in paths:
        delete(path)
    return len(paths)


def _delete_all(directory: Location, names: Iterable[str]) -> int:
    count = 0
    for name in names:
        delete(directory / name)
        count += 1
    return count
