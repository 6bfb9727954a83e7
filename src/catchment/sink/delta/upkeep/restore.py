"""Lake tables compared with a committed epoch, and put back to it when parts of a later one were applied whose
manifest is lost.
"""

from pathlib import Path

from deltalake import DeltaTable, Transaction

from catchment import world
from catchment.model.epoch import EpochRow, Manifest, epoch_text
from catchment.model.errors import SinkError, SinkRestored
from catchment.model.table import TableId
from catchment.sink.delta.commit import (
    LakeTable,
    check_fence,
    commit_properties,
    gone,
    open_table,
    sync_version,
)
from catchment.sink.delta.layout import epoch_app, settled_app, table_dir, tail_dir
from catchment.sink.delta.older import must_not_be_older
from catchment.sink.delta.plain.log import DeltaLog
from catchment.sink.delta.plain.take_back import take_back

_THREADS = 8


def must_hold(root: str | Path, row: EpochRow) -> None:
    """Raise SinkRestored when a table is older than `row` says: a copy of its directory was put back.

    What was applied between that copy and the epoch would be missing for good. Raises SinkError for one that is gone,
    or has to be upgraded.
    """

    def check(name: TableId) -> None:
        must_not_be_older(root, name)
        directory = tail_dir(root, name)
        table = open_table(directory)
        if table is None:
            gone(str(name), directory)
        version = row.commit.versions[str(name)]
        if table.version() < version:
            raise SinkRestored(
                f"{name}: the lake table at {directory} stands at version {table.version()}, but epoch "
                f"{epoch_text(row.commit.epoch)} is its version {version}: an older copy of it was put back, and what "
                "was applied since is missing; put back the newest one, or restore the whole lake and remove the "
                "state store"
            )
        app = epoch_app(row.manifest.feed, name)
        plain = DeltaLog(table_dir(root, name)).newest()
        settled = 0 if plain is None else plain.transactions.get(app, 0)
        trimmed = table.transaction_version(settled_app(row.manifest.feed, name)) or 0
        if settled < trimmed:
            raise SinkRestored(
                f"{name}: the table at {table_dir(root, name)} is epoch {epoch_text(settled)}, but it had epoch "
                f"{epoch_text(trimmed)} before: an older copy of it was put back, and what was settled since is "
                "missing; put back the newest one, or restore the whole lake and remove the state store"
            )

    with world.pool(_THREADS) as pool:
        list(pool.map(check, (shape.table for shape in row.manifest.shapes)))


def restore(root: str | Path, feed: str, row: EpochRow, fence: int, applies: int | None = None) -> int:
    """Bring every table that carries a later epoch than `row` back to the row's version; the highest epoch
    number met. `applies`: the epoch that is applied next, parts of which stay.

    A table that is brought back carries the row's epoch again. Else an epoch that was taken back would count as
    applied, should a state store that is put back have its manifest. Its rows would be missing.
    """
    highest = row.manifest.epoch
    for shape in row.manifest.shapes:
        directory = tail_dir(root, shape.table)
        table = open_table(directory)
        if table is None:
            gone(str(shape.table), directory)
        carried = table.transaction_version(epoch_app(feed, shape.table)) or 0
        if carried > row.manifest.epoch and carried != applies:
            highest = max(highest, carried)
            _restore(directory, feed, shape.table, row, fence)
        plain = DeltaLog(table_dir(root, shape.table))
        highest = max(highest, take_back(plain, epoch_app(feed, shape.table), row.manifest.epoch))
    return highest


def _restore(directory: Path, feed: str, name: TableId, row: EpochRow, fence: int) -> None:
    def attempt(table: DeltaTable) -> bool:
        check_fence(table, feed, fence, name=str(name))
        carries = Transaction(epoch_app(feed, name), row.manifest.epoch)
        version = row.commit.versions[str(name)]
        table.restore(version, commit_properties=commit_properties(feed, fence, carries))
        sync_version(directory, table.version())
        return True

    LakeTable(str(name), directory).commit(attempt, lambda: gone(str(name), directory))


def must_have_files(root: str | Path, feed: str, manifest: Manifest) -> None:
    """Raise SinkError when a file of an epoch that is to be applied is gone: the cleaner removes what no epoch names.

    So it can be with the manifest of a state store that was put back.
    """
    for delta in manifest.deltas:
        name = delta.shape.table
        directory = tail_dir(root, name)
        table = open_table(directory)
        if table is not None and table.transaction_version(epoch_app(feed, name)) == manifest.epoch:
            continue
        lost = next((file.path for file in delta.files if not (directory / file.path).is_file()), None)
        if lost is not None:
            raise SinkError(
                f"{name}: {directory / lost} is gone, and the state store asks to apply its epoch "
                f"{epoch_text(manifest.epoch)}: the store is older than the lake; remove the store, and the feed goes "
                "on from the lake's epoch"
            )
