"""The cleaner: removes files that no reader and no commit can need any more.

It deletes by itself and commits nothing. Delta's full vacuum is never used: it knows neither attempts nor
epochs.
"""

import math
import time
from collections.abc import Collection, Sequence

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from catchment import world
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.erasure.places import data_files
from catchment.sink.delta.files import delete, exists, lake_file, lake_files, name_within
from catchment.sink.delta.kept.hold import hold
from catchment.sink.delta.layout import Tail, epochs_dir, kept_dir, table_dir, tail_of, versions_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.opened import open_table
from catchment.sink.delta.log.thinning import floor_of, thin_out
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.unneeded import old_change_data, present_files, unneeded
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS, window_of
from catchment.sink.delta.tail.generations import tails_of
from catchment.sink.delta.tail.stage import staged_before
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.port import Stored
from catchment.sink.storage.refused import refused

# So long a plain table's log tells each version, for others that follow it.
LOG_SECONDS = 2 * 86_400.0


class CleanReport(msgspec.Struct, frozen=True):
    """Files deleted: of attempts that were never committed, and replaced ones past the readers' window."""

    attempts: int
    replaced: int


class Keeping(msgspec.Struct, frozen=True):
    """What stays. `window_seconds`: the readers' window (see `window_hours`). `attempt_seconds`: files of attempts
    that are younger; give the lease's length or more. `epochs`: those that are kept beyond the window, in order."""

    window_seconds: float
    attempt_seconds: float
    epochs: tuple[int, ...] = ()


def clean_feed(root: Location, feed: str, keeping: Keeping) -> CleanReport:
    """Clean all tables of a feed, as of its newest committed epoch, whose files stay in any case.

    A table that cannot be cleaned keeps no other from its turn; then the first SinkError is raised.
    """
    keep_s = keeping.window_seconds
    row = EpochsTable(root, feed).newest()
    if row is None:
        return CleanReport(0, 0)
    reports = [_clean_unnamed_epochs(epochs_dir(root)), _clean_replaced(epochs_dir(root), keep_s, [])]
    reports.append(_clean_staged(root, keeping.attempt_seconds))
    for derived in (versions_dir(root), kept_dir(root)):
        reports.append(_clean_derived(derived, 3600.0 * window_hours(keep_s)))
    failures: list[SinkError] = []
    kept_tails = {Tail.of(shape) for shape in row.manifest.followed}
    for shape in row.manifest.followed:
        directory = tail_of(root, shape)
        version = row.commit.versions.get(str(shape.table))
        if version is None:
            continue
        try:
            reports.append(clean_attempts(directory, row.manifest.epoch, version, keeping.attempt_seconds))
            reports.append(_clean_replaced(directory, keep_s, [version]))
            if shape.place_of is None:
                reports.append(_clean_table(root, feed, shape, keeping))
                reports.append(_clean_given_up(root, shape, row.manifest.epoch, kept_tails))
        except SinkError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    try:
        sign = _sign(root, feed)
        storage_of(sign).mark(sign)
    except OSError as error:
        raise refused(error, f"cannot write {sign}: {error}; check the lake's rights and mount") from error
    return CleanReport(sum(r.attempts for r in reports), sum(r.replaced for r in reports))


def cleaned_seconds_ago(root: Location, feed: str) -> float:
    """Since a feed's lake was cleaned, by any run; 0 where it never was, and is young."""
    sign = _sign(root, feed)
    with lake_file(sign):
        found = storage_of(sign).stored(sign)
    return 0.0 if found is None else max(0.0, time.time() - found.since)


def _sign(root: Location, feed: str) -> Location:
    """A file whose time tells when the cleaner came last."""
    return epochs_dir(root).parent / f"cleaned-{feed}"


def window_hours(keep_s: float) -> int:
    """The readers' window in the hours that Delta counts in, rounded up."""
    return math.ceil(keep_s / 3600)


def clean_attempts(directory: Location, epoch: int, version: int, age_s: float) -> CleanReport:
    """Delete files of attempts that lost.

    No version of the table names such a file, it is older than `age_s`, and its epoch is at most the committed one
    `epoch`. (A later one may have a manifest that names it.) `version` is the table's as of that epoch.
    """
    now = time.time()
    # The directory before the log: what is committed in between is named.
    candidates = [
        one.place
        for part in Part
        for one in lake_files(directory / f"_part={part.value}", ".parquet")
        if _abandoned(one, epoch, now, age_s)
    ]
    return _delete_unnamed(directory, candidates, version)


def _clean_unnamed_epochs(directory: Location) -> CleanReport:
    """Delete files of the epochs table that never came to their commit and are older than six hours."""
    now = time.time()
    files = lake_files(directory, ".parquet")
    return _delete_unnamed(directory, [one.place for one in files if now - one.since > ATTEMPT_SECONDS])


def _clean_staged(root: Location, age_s: float) -> CleanReport:
    """Delete rows that waited for a cut when their run ended: no epoch ever names them."""
    left = staged_before(root, time.time() - age_s)
    for path in left:
        delete(path)
    return CleanReport(len(left), 0)


def _delete_unnamed(
    directory: Location, candidates: Sequence[Location], version: int | None = None
) -> CleanReport:
    """Delete those of `candidates` that neither the newest version nor `version` names, nor ever a log entry."""
    if not candidates:
        return CleanReport(0, 0)
    table = _opened(directory, None)
    named = _paths(table) | set(_tombstones(table, 0, []))
    if version is not None:
        named |= _paths(_opened(directory, version))
    lost = [path for path in candidates if name_within(directory, path) not in named]
    for path in lost:
        delete(path)
    return CleanReport(len(lost), 0)


def _clean_replaced(directory: Location, keep_s: float, versions: list[int]) -> CleanReport:
    """Delete files that were replaced before the readers' window, except those of `versions`."""
    table = open_table(directory)
    if table is None:
        return CleanReport(0, 0)
    replaced = [directory / path for path in _tombstones(table, window_hours(keep_s), versions)]
    present = [path for path in replaced if exists(path)]
    for path in present:
        delete(path)
    return CleanReport(0, len(present))


def _clean_table(root: Location, feed: str, shape: TableShape, keeping: Keeping) -> CleanReport:
    """Clean a plain table. What kept epochs need is held first, and the log forgets one before its files go. When the
    window has this copy of the table alone, the tails of copies before it lose their files."""
    table, seconds = shape.table, 3600.0 * window_hours(keeping.window_seconds)
    log = DeltaLog(table_dir(root, table))
    present, window = present_files(log.directory), window_of(log, seconds)
    if window is None:
        return CleanReport(0, 0)
    held = hold(root, feed, table, keeping.epochs, window.since)
    before = world.now_us() / 1e6 - max(LOG_SECONDS, seconds + ATTEMPT_SECONDS)
    kept = {one.version for one in held.versions}
    thin_out(log, floor_of(log, before, window.since), kept)
    lost = unneeded(present, window, held.files)
    begin = log.told_at(window.since) if shape.generation and window.whole else None
    if begin is not None and generation(begin, feed, table) >= shape.generation:
        for before, directory in tails_of(root, table).items():
            if before < shape.generation:
                _delete_all(directory, [name_within(directory, path) for path in data_files(directory)])
    return _delete_all(log.directory, [*lost, *old_change_data(log.directory, seconds)])


def _clean_given_up(root: Location, shape: TableShape, epoch: int, kept: Collection[Tail]) -> CleanReport:
    """Clean the tails of shadow tables that never took the place of a table. `epoch`: the committed one, which keeps
    others."""
    report = CleanReport(0, 0)
    for began, directory in tails_of(root, shape.table).items():
        if shape.generation < began <= epoch and Tail(shape.table, began) not in kept:
            names = [name_within(directory, path) for path in data_files(directory)]
            report = CleanReport(0, report.replaced + _delete_all(directory, names).replaced)
    return report


def _clean_derived(directory: Location, seconds: float) -> CleanReport:
    """Clean a table that tells of others. deltalake thins out its log."""
    present, window = present_files(directory), window_of(DeltaLog(directory), seconds)
    return CleanReport(0, 0) if window is None else _delete_all(directory, unneeded(present, window, ()))


def _delete_all(directory: Location, names: list[str]) -> CleanReport:
    for name in names:
        delete(directory / name)
    return CleanReport(0, len(names))


def _abandoned(file: Stored[Location], epoch: int, now: float, age_s: float) -> bool:
    """Whether a file, were it named nowhere, is of an attempt that cannot be committed any more."""
    first = file.place.name.partition("-")[0]
    return first.isdigit() and int(first) <= epoch and now - file.since > age_s


def _opened(directory: Location, version: int | None) -> DeltaTable:
    table = open_table(directory, version)
    if table is None:
        raise SinkError(f"the Delta table {directory} vanished while it was cleaned")
    return table


def _paths(table: DeltaTable) -> set[str]:
    return set(pa.table(table.get_add_actions())["path"].to_pylist())


def _tombstones(table: DeltaTable, hours: int, versions: list[int]) -> list[str]:
    """Files that the log has removed at least `hours` ago and that none of `versions` names."""
    try:
        return list(
            table.vacuum(
                retention_hours=hours,
                dry_run=True,
                enforce_retention_duration=False,
                keep_versions=versions or None,
            )
        )
    except DeltaError as error:
        raise SinkError(f"{table.table_uri}: cannot list replaced files: {error}") from error
