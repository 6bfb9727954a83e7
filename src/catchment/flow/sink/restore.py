"""Putting lake tables back to a committed epoch, when parts of a later one were applied and its manifest is
lost.
"""

from pathlib import Path

from deltalake import DeltaTable

from catchment.flow.sink.epochs import EpochRow
from catchment.flow.sink.layout import epoch_app, table_dir
from catchment.flow.sink.tables import (
    LakeTable,
    check_fence,
    commit_properties,
    gone,
    open_table,
    sync_version,
)
from catchment.model.table import TableId


def restore(root: str | Path, feed: str, row: EpochRow, fence: int) -> int:
    """Bring every table that carries a later epoch than `row` back to the row's version; the highest epoch
    number met.

    New epochs must be numbered above the result: a table takes no epoch at or below one that it has carried.
    """
    highest = row.manifest.epoch
    for shape in row.manifest.shapes:
        directory = table_dir(root, shape.table)
        table = open_table(directory)
        if table is None:
            gone(str(shape.table), directory)
        carried = table.transaction_version(epoch_app(feed, shape.table)) or 0
        if carried > row.manifest.epoch:
            highest = max(highest, carried)
            _restore(directory, feed, shape.table, row.commit.versions[str(shape.table)], fence)
    return highest


def _restore(directory: Path, feed: str, name: TableId, version: int, fence: int) -> None:
    def attempt(table: DeltaTable) -> bool:
        check_fence(table, feed, fence, name=str(name))
        table.restore(version, commit_properties=commit_properties(feed, fence))
        sync_version(directory, table.version())
        return True

    LakeTable(str(name), directory).commit(attempt, lambda: gone(str(name), directory))
