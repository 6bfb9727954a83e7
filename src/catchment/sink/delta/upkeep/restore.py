"""Lake tables compared with a committed epoch, and put back to it when parts of a later one were applied whose
manifest is lost.
"""

from collections.abc import Callable
from functools import partial

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
from catchment.sink.delta.plain.older_copy import older_copy
from catchment.sink.delta.plain.take_back import (
    carried_by,
    must_reach_back,
    restore_info,
    restored,
    take_back,
)
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
            raise SinkRestored(older_copy(name, table_dir(root, name), settled, trimmed))

    with world.pool(_THREADS) as pool:
        list(pool.map(check, row.manifest.followed))


def restore(root: Location, feed: str, row: EpochRow, fence: int, applies: int | None = None) -> int:
    """Bring every table that carries a later epoch than `row` back to the row's version; the highest epoch
    number met. `applies`: the epoch that is applied next, parts of which stay.

    A table that is brought back carries the row's epoch again. Else an epoch that was taken back would count as
    applied, should a state store that is put back have its manifest. Its rows would be missing.

    Nothing is written before all tables are known to reach back. Of each table the plain one goes first: a reader takes
    its newest version for that of the epoch until the tail carries a later one (`reading.lake`).
    """
    epoch, highest = row.manifest.epoch, row.manifest.epoch
    steps: list[Callable[[], None]] = []
    for shape in row.manifest.followed:
        name, directory = shape.lake_table, tail_of(root, shape)
        app = epoch_app(feed, name)
        log, plain = DeltaLog(directory), DeltaLog(table_dir(root, name))
        tail = log.newest()
        if tail is None:
            gone(str(name), directory)
        settled = carried_by(plain, app)
        if settled > epoch:
            must_reach_back(plain, app, epoch)
            steps.append(partial(take_back, plain, app, epoch))
        carried, trimmed = tail.transactions.get(app, 0), tail.transactions.get(settled_app(feed, name), 0)
        # Of an epoch that was settled already, the tail may lack the rows.
        if carried > epoch and (carried != applies or trimmed > epoch):
            steps.append(partial(_put_back, log, feed, shape, row, fence, _then(log, feed, shape, row)))
        else:
            carried = epoch
        highest = max(highest, carried, settled)
    for step in steps:
        step()
    return highest


def _then(log: DeltaLog, feed: str, shape: TableShape, row: EpochRow) -> Snapshot:
    """The tail as of a committed epoch. Raises SinkError where its files or its log do not reach back to it."""
    name, version = shape.lake_table, row.commit.versions[str(shape.table)]
    then = last_complete(log, epoch_app(feed, name), row.manifest.epoch, version)
    if then is None:
        raise SinkError(
            f"{name}: the lake table at {log.directory} cannot be brought back to version {version}, which is epoch "
            f"{epoch_text(row.commit.epoch)}: files of it or its log are gone; put back a copy of the lake"
        )
    return then


def _put_back(log: DeltaLog, feed: str, shape: TableShape, row: EpochRow, fence: int, then: Snapshot) -> None:
    """Make a version of old the tail's newest. It says again up to where it was trimmed then, since the files that were
    taken out later are back."""
    name = shape.lake_table
    trimmed = settled_app(feed, name)

    def attempt(on: Snapshot) -> bool | None:
        must_lead(on, feed, fence, str(name))
        carries = [
            Txn(epoch_app(feed, name), row.manifest.epoch),
            Txn(trimmed, then.transactions.get(trimmed, 0)),
        ]
        actions = [fenced(feed, fence), *carries, *restored(on, then)]
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
