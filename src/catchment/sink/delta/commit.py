"""Delta tables of a lake: open, create, and the one way in which everything here commits."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from catchment import world
from catchment.model.epoch import Part, TableShape
from catchment.model.errors import NEW_FEED, LeaseLost, SinkConflict, SinkError
from catchment.model.version import LAKE_LAYOUT, __version__
from catchment.sink.delta.files import make_directory, sync_directory
from catchment.sink.delta.layout import PART, delta_schema, fence_app

_Result = TypeVar("_Result")
_ATTEMPTS = 50
CONFIGURATION = {
    "delta.checkpointInterval": "100",
    # Longer than the longest readers' window (config.feed.KEEP_SECONDS_MAX).
    "delta.logRetentionDuration": "interval 2 days",
}

# Table properties: the feed whose rows stand in the table, and its layout. In each commit: the program's version.
_OWNER, _LAYOUT, _VERSION = "catchment.feed", "catchment.layout", "catchment.version"


def open_table(directory: Path, version: int | None = None) -> DeltaTable | None:
    """A fresh handle at the newest version or at `version`; None when there is no table.

    Raises SinkError, also for a table of a layout that a later Catchment has given it.
    """
    try:
        if not (directory / "_delta_log").is_dir():
            return None
        table = DeltaTable(directory, version=version)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        at = "" if version is None else f" at version {version}"
        raise SinkError(f"cannot open the Delta table {directory}{at}: {_in_a_line(error)}") from error
    must_be_known(table.metadata().configuration, directory)
    return table


def create_table(
    directory: Path, schema: pa.Schema, partition_by: list[str], feed: str | None = None
) -> DeltaTable:
    """Create the Delta table, `feed`'s if given, if it does not exist; a fresh handle. Raises SinkError."""
    try:
        make_directory(directory)
        DeltaTable.create(
            directory,
            schema,
            "ignore",
            partition_by=partition_by,
            configuration=CONFIGURATION | marks(feed),
            raise_if_key_not_exists=False,
        )
        sync_version(directory, 0)
        sync_directory(directory)
    except (DeltaError, OSError) as error:
        if open_table(directory) is None:  # not merely lost a race of two creators
            raise SinkError(f"cannot create the Delta table {directory}: {_in_a_line(error)}") from error
    table = open_table(directory)
    if table is None:
        raise SinkError(f"the Delta table {directory} vanished after it was created")
    return table


def marks(feed: str | None) -> dict[str, str]:
    """What the properties of each table say: its layout, and whose rows it has unless all feeds share it."""
    return {_LAYOUT: str(LAKE_LAYOUT)} if feed is None else {_LAYOUT: str(LAKE_LAYOUT), _OWNER: feed}


def mark_layout(table: DeltaTable, directory: Path, feed: str, fence: int) -> bool:
    """Mark a table of an earlier layout, in a commit of its own; whether it was one. All have the same rows of data."""
    if table.metadata().configuration.get(_LAYOUT) == str(LAKE_LAYOUT):
        return False
    version: int = table.version() + 1
    table.alter.set_table_properties(
        {_LAYOUT: str(LAKE_LAYOUT)},
        raise_if_not_exists=False,
        commit_properties=commit_properties(feed, fence),
    )
    sync_version(directory, version)
    return True


def must_be_known(configuration: Mapping[str, str], directory: Path) -> None:
    """Raise SinkError for a table, of these properties, of a layout that a later Catchment has given it."""
    layout = configuration.get(_LAYOUT, "0")
    if not layout.isdecimal() or int(layout) > LAKE_LAYOUT:
        raise SinkError(
            f"the lake table {directory} has layout {layout}, of a later Catchment; this one ({__version__}) knows "
            f"layouts up to {LAKE_LAYOUT}: upgrade it, see docs/upgrade.md"
        )


def _in_a_line(error: Exception) -> str:
    """What delta-rs says over several lines, with a rail beside them."""
    return " ".join(str(error).replace("\u2502", " ").split())


class LakeTable:
    """A Delta table that is written: keeps its handle, so that no commit replays the whole log."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self._handle: DeltaTable | None = None

    def refreshed(self) -> DeltaTable | None:
        """A handle at the newest version; None when the table does not exist."""
        try:
            if self._handle is None or not (self.directory / "_delta_log").is_dir():
                self._handle = open_table(self.directory)
                return self._handle
            self._handle.update_incremental()
        except (DeltaError, OSError) as error:
            raise SinkError(
                f"{self.name}: cannot read the log of the lake table: {_in_a_line(error)}"
            ) from error
        return self._handle

    def commit(
        self, attempt: Callable[[DeltaTable], _Result | None], create: Callable[[], DeltaTable]
    ) -> _Result:
        """Let `attempt` check, list and commit from one handle at the newest version until it returns a
        result.

        After a conflict, or None, all of it starts over. Raises SinkError for a commit that failed although
        nobody else committed, SinkConflict when others won every attempt.
        """
        for number in range(_ATTEMPTS):
            table = self.refreshed() or create()
            before = table.version()
            try:
                result = attempt(table)
            except (DeltaError, OSError) as error:
                self._handle = None
                now = open_table(self.directory)
                if now is None or now.version() == before:
                    raise SinkError(
                        f"{self.name}: {self.directory} refused a commit: {_in_a_line(error)}"
                    ) from error
                # It may have been ours, with a checkpoint that failed: what is found done must be durable.
                for version in range(before + 1, now.version() + 1):
                    sync_version(self.directory, version)
                world.sleep(0.002 * number)
                continue
            self._handle = table
            if result is not None:
                return result
        raise SinkConflict(f"{self.name}: others won all {_ATTEMPTS} attempts to commit; try again")


def check_fence(table: DeltaTable, feed: str, fence: int, name: str) -> None:
    """Raise LeaseLost when the table carries the fence of a later runner."""
    carried = table.transaction_version(fence_app(feed))
    if carried is not None and carried > fence:
        raise LeaseLost(
            f"{name}: written under fence {carried}, this runner of feed {feed} has fence {fence}; "
            "another runner took over, stop this one"
        )


def check_owner(table: DeltaTable, feed: str, name: str) -> None:
    """Raise SinkError when the table is another feed's: rows would stand in it twice."""
    owner = table.metadata().configuration.get(_OWNER, feed)
    if owner != feed:
        raise SinkError(
            f"{name}: the lake table at {table.table_uri} is feed {owner}'s, and this feed is {feed}; give the feed "
            f"another sink.path, or its old name {owner} if it was renamed, or remove that directory"
        )


def gone(name: str, directory: Path) -> NoReturn:
    """Raises SinkError for a table that was there before."""
    raise SinkError(f"{name}: the lake table at {directory} is gone; put it back, or start {NEW_FEED}")


def commit_properties(feed: str, fence: int, *transactions: Transaction, **notes: str) -> CommitProperties:
    """Properties of every commit of ours.

    No retries inside delta-rs: after checks of its own it would commit what was prepared from an older version. But
    check, list of files and commit have to come from one handle (DESIGN 5).
    """
    return CommitProperties(
        custom_metadata={_VERSION: __version__, **notes},
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
    """Make a commit durable: delta-rs renames the log entry into place and leaves the flush to the system.

    Raises SinkError: a flush that failed does not succeed by being asked for again.
    """
    log = directory / "_delta_log"
    entry = log / f"{version:020d}.json"
    try:
        handle = os.open(entry, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(log)
    except OSError as error:
        raise SinkError(
            f"cannot flush {entry} to the disk: {error}; check the disk, then start again"
        ) from error


def file_lists(table: DeltaTable) -> dict[Part, list[dict[str, Any]]]:
    """Files of a handle's version by partition: relative `path`, `size_bytes`, `num_records`, statistics."""
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return {part: [f for f in files if f[f"partition.{PART}"] == part.value] for part in Part}
