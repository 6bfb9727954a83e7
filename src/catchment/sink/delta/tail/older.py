"""Lakes of layouts before 3: a table's own directory holds what is its tail today, and there is no plain table yet.

All of them lie in directories: object stores came later.
"""

import os
from pathlib import Path

import msgspec

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.files import make_directory
from catchment.sink.delta.layout import PART, table_dir, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.log.properties import must_own
from catchment.sink.storage.local import sync_directory

_PROCESSES = Path("/proc")
_FOLD = b"catchment.sink.delta.fold.process"


class Places(msgspec.Struct, frozen=True):
    """The directories of a table's plain table and of its tail, as readers find them."""

    plain: Location
    tail: Location


def places(root: Location, table: TableId, generation: int = 0) -> Places:
    """Where a table lies. In a lake of an earlier layout nothing stands at the place of the plain table."""
    plain, tail = table_dir(root, table), tail_dir(root, table, generation)
    return Places(tail, plain) if not generation and is_older(root, table) else Places(plain, tail)


def is_older(root: Location, table: TableId) -> bool:
    """Whether a table lies as an earlier layout had it. Raises SinkError where it cannot be opened."""
    tail = tail_dir(root, table)
    if not isinstance(tail, Path) or (tail / "_delta_log").is_dir():
        return False
    found = DeltaLog(table_dir(root, table)).newest()
    return found is not None and PART in found.metadata.partition_columns


def must_not_be_older(root: Location, table: TableId) -> None:
    """Raise SinkError for a table that has to be upgraded before it is written."""
    if is_older(root, table):
        raise SinkError(
            f"{table}: the lake table at {table_dir(root, table)} is of an earlier layout; run catchment upgrade with "
            "the feed's file: it copies nothing, and takes a moment for each table (docs/upgrade.md)"
        )


def upgrade(root: Location, table: TableId, feed: str) -> None:
    """Move a table of an earlier layout to where tails lie: one rename, so it is done or it is not.

    Raises SinkError where the table is another feed's, where a fold of the version before still runs, and where the
    directory cannot be moved.
    """
    old, tail = table_dir(root, table), tail_dir(root, table)
    if not isinstance(old, Path) or not isinstance(tail, Path):
        return  # no earlier layout was ever in an object store
    found = DeltaLog(old).newest()
    if found is not None:
        must_own(found.metadata.configuration, feed, str(table), old)
    _must_not_fold(root)
    make_directory(tail.parent)
    try:
        os.rename(old, tail)
        sync_directory(tail.parent)
        sync_directory(old.parent)
    except OSError as error:
        raise SinkError(
            f"{table}: cannot move {old} to {tail}: {error.strerror}; both have to lie in one file system, and nothing "
            "may stand at the second"
        ) from error


def _must_not_fold(root: Location) -> None:
    """Raise SinkError while a fold of an earlier version works on the lake. It outlives its run, and would commit to
    the plain table, which comes to the same place."""
    asked = str(Path(str(root)).absolute()).encode()
    for entry in _PROCESSES.glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        if _FOLD in command and asked in command:
            raise SinkError(
                f"a fold of an earlier version still works on the lake {root} (process {entry.name}); upgrade again "
                "when it has ended"
            )
