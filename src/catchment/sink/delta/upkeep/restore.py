"""Lake tables compared with a committed epoch, and put back to it when parts of a later one were applied whose
manifest is lost.
"""

from catchment import world
from catchment.model.epoch import EpochRow, Manifest, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError, SinkRestored
from catchment.model.location import Location
from catchment.sink.delta.files import exists
from catchment.sink.delta.layout import epoch_app, settled_app, table_dir, tail_of
from catchment.sink.delta.log.actions import Txn
from catchment.sink.delta.log.commit import commit, fenced, gone
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.plain.complete import last_complete
from catchment.sink.delta.plain.take_back import restore_info, restored, take_back
from catchment.sink.delta.tail.older import must_not_be_older

_THREADS = 8


def must_hold(root: Location, row: EpochRow) -> None:
    """Raise SinkRestored when a table is older than `row` says: a copy of its directory was put back.

    What was applied between that copy and the epoch would be missing for good. Raises SinkError for one that is gone,
    or has to be upgraded.
    """

    def check(shape: TableShape) -> None:
        name = shape.lake_table
        if not shape.generation:
            must_not_be_older(root, name)
        directory = tail_of(root, shape)
        tail = DeltaLog(directory).newest()
        if tail is None:
            gone(str(name), directory)
        version = row.commit.versions[str(shape.table)]
        if tail.version < version:
            raise SinkRestored(
                f"{name}: the lake table at {directory} stands at version {tail.version}, but epoch "
                f"{epoch_text(row.commit.epoch)} is its version {version}: an older copy of it was put back, and what "
                "was applied since is missing; put back the newest one, or restore the whole lake and remove the "
                "state store"
            )
        app = epoch_app(row.manifest.feed, name)
        plain = DeltaLog(table_dir(root, name)).newest()
        settled = 0 if plain is None else plain.transactions.get(app, 0)
        trimmed = tail.transactions.get(settled_app(row.manifest.feed, name), 0)
        if settled < trimmed:
            raise SinkRestored(
                f"{name}: the table at {table_dir(root, name)} is epoch {epoch_text(settled)}, but it had epoch "
                f"{epoch_text(trimmed)} before: an older copy of it was put back, and what was settled since is "
                "missing; put back the newest one, or restore the whole lake and remove the state store"
            )

    with world.pool(_THREADS) as pool:
        list(pool.map(check, row.manifest.followed))


def restore(root: Location, feed: str, row: EpochRow, fence: int, applies: int | None = None) -> int:
    """Bring every table that carries a later epoch than `row` back to the row's version; the highest epoch
    number met. `applies`: the epoch that is applied next, parts of which stay.

    A table that is brought back carries the row's epoch again. Else an epoch that was taken back would count as
    applied, should a state store that is put back have its manifest. Its rows would be missing.
    """
    highest = row.manifest.epoch
    for shape in row.manifest.followed:
        name, directory = shape.lake_table, tail_of(root, shape)
        log = DeltaLog(directory)
        tail = log.newest()
        if tail is None:
            gone(str(name), directory)
        carried = tail.transactions.get(epoch_app(feed, name), 0)
        if carried > row.manifest.epoch and carried != applies:
            highest = max(highest, carried)
            _restore(log, feed, shape, row, fence)
        plain = DeltaLog(table_dir(root, name))
        highest = max(highest, take_back(plain, epoch_app(feed, name), row.manifest.epoch))
    return highest


def _restore(log: DeltaLog, feed: str, shape: TableShape, row: EpochRow, fence: int) -> None:
    name, version = shape.lake_table, row.commit.versions[str(shape.table)]
    then = last_complete(log, epoch_app(feed, name), row.manifest.epoch, version)
    if then is None:
        raise SinkError(
            f"{name}: the lake table at {log.directory} cannot be brought back to version {version}, which is epoch "
            f"{epoch_text(row.commit.epoch)}: files of it or its log are gone; put back a copy of the lake"
        )

    def attempt(on: Snapshot) -> bool | None:
        must_lead(on, feed, fence, str(name))
        carries = Txn(epoch_app(feed, name), row.manifest.epoch)
        actions = [fenced(feed, fence), carries, *restored(on, then)]
        return log.put(on, restore_info(then), actions) is not None or None

    commit(log, attempt, lambda: gone(str(name), log.directory))


def must_have_files(root: Location, feed: str, manifest: Manifest) -> None:
    """Raise SinkError when a file of an epoch that is to be applied is gone: the cleaner removes what no epoch names.

    So it can be with the manifest of a state store that was put back.
    """
    for delta in manifest.deltas:
        name, directory = delta.shape.lake_table, tail_of(root, delta.shape)
        tail = DeltaLog(directory).newest()
        if tail is not None and tail.transactions.get(epoch_app(feed, name)) == manifest.epoch:
            continue
        lost = next((file.path for file in delta.files if not exists(directory / file.path)), None)
        if lost is not None:
            raise SinkError(
                f"{name}: {directory / lost} is gone, and the state store asks to apply its epoch "
                f"{epoch_text(manifest.epoch)}: the store is older than the lake; remove the store, and the feed goes "
                "on from the lake's epoch"
            )
