"""Handles of lake tables: open, create, add columns. A handle sees one version until it is refreshed."""

import os
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from catchment.flow.sink.files import sync_directory
from catchment.flow.sink.layout import PART, delta_schema, fence_app, table_dir
from catchment.model.epoch import TableShape
from catchment.model.errors import LeaseLost, SinkError
from catchment.model.table import TableId

CONFIGURATION = {
    "delta.checkpointInterval": "100",
    # Time travel ends with the readers' window (cleaner), so a day of log is ample.
    "delta.logRetentionDuration": "interval 1 days",
}


def open_table(directory: Path, version: int | None = None) -> DeltaTable | None:
    """A fresh handle at the newest version or at `version`; None when there is no table."""
    if not (directory / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(directory, version=version)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise SinkError(f"cannot open the Delta table {directory} at version {version}: {error}") from error


def create_table(root: str | Path, shape: TableShape) -> DeltaTable:
    """Create the lake table of `shape` if it does not exist; a fresh handle."""
    directory = table_dir(root, shape.table)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            directory, delta_schema(shape), "ignore", partition_by=[PART], configuration=CONFIGURATION
        )
    except (DeltaError, OSError) as error:
        if open_table(directory) is None:  # not merely lost a race of two creators
            raise SinkError(f"cannot create the Delta table {directory}: {error}") from error
    table = open_table(directory)
    if table is None:
        raise SinkError(f"the Delta table {directory} vanished after it was created")
    return table


def check_fence(table: DeltaTable, feed: str, fence: int, name: TableId | str) -> None:
    """Raise LeaseLost when the table carries the fence of a later runner."""
    carried = table.transaction_version(fence_app(feed))
    if carried is not None and carried > fence:
        raise LeaseLost(
            f"{name}: written under fence {carried}, this runner of feed {feed} has fence {fence}; "
            "another runner took over, stop this one"
        )


def commit_properties(feed: str, fence: int, *transactions: Transaction, **notes: str) -> CommitProperties:
    """Properties of every commit of ours.

    No retries inside delta-rs: it would commit what was prepared from an older version after checks of its
    own, while check, list of files and commit have to come from one handle (DESIGN 5).
    """
    return CommitProperties(
        custom_metadata=notes,
        max_commit_retries=0,
        app_transactions=[Transaction(fence_app(feed), fence), *transactions],
    )


def missing_columns(table: DeltaTable, shape: TableShape) -> Schema | None:
    """Columns that the shape has and the table lacks; None when none. Raises SinkError on another type."""
    wanted = Schema.from_arrow(delta_schema(shape))
    present = {field.name: field for field in table.schema().fields}
    for field in wanted.fields:
        if field.name in present and present[field.name].type != field.type:
            raise SinkError(
                f"{shape.table}: column {field.name} is {present[field.name].type} in the lake and "
                f"{field.type} at the source; a changed type needs a new physical column"
            )
    added = [field for field in wanted.fields if field.name not in present]
    return Schema(added) if added else None


def sync_version(directory: Path, version: int) -> None:
    """Make a commit durable: delta-rs renames the log entry into place and leaves the flush to the system."""
    log = directory / "_delta_log"
    handle = os.open(log / f"{version:020d}.json", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_directory(log)
