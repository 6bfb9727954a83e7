"""Changes of rows that other programs made to a plain table. They are taken back: the table is the source's copy.

An OPTIMIZE, a vacuum or a property of theirs changes no row, and stays. An OPTIMIZE of files that were replaced
meanwhile brings dead rows back: delta-rs 1.6 commits it all the same.
"""

import logging
from collections.abc import Mapping, Sequence

import msgspec

from catchment.model.errors import NEW_FEED, SinkError
from catchment.sink.delta.log.actions import Line, Vector, is_ours
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.complete import is_complete
from catchment.sink.delta.plain.take_back import restore_info, restored

_log = logging.getLogger(__name__)


class ForeignChange(msgspec.Struct, frozen=True):
    """The first commit of others that changed rows since ours: its version, and what was done by whom."""

    version: int
    operation: str
    program: str

    def __str__(self) -> str:
        return f"version {self.version} ({self.operation} by {self.program})"


def foreign_change(log: DeltaLog, on: Snapshot) -> ForeignChange | None:
    """What others changed behind the last commit of ours; None where it changed no row. Raises SinkError."""
    found: ForeignChange | None = None
    for version in range(on.version, -1, -1):
        lines = log.lines_of(version)
        if lines is None:
            break  # nothing tells which commit was ours
        info = next((line.commit_info for line in lines if line.commit_info is not None), {})
        if is_ours(info):
            return found
        if _changes_rows(lines) or not _keeps_rows(log, version, lines):
            program = str(info.get("engineInfo", "another program"))
            found = ForeignChange(version, str(info.get("operation", "a commit")), program)
    return None


def take_back_foreign(table: str, log: DeltaLog, on: Snapshot) -> bool:
    """Make the newest version what it was before others changed rows; whether they did, so that a settle starts over.

    Raises SinkError where files of then are gone.
    """
    change = foreign_change(log, on)
    if change is None:
        return False
    then = log.at(change.version - 1)
    if then is None or not is_complete(log.directory, then):
        raise SinkError(
            f"{table}: {change} changed rows of the lake table {log.directory}, and files of the version before are "
            f"gone, so that it cannot be taken back; put back a copy of the lake, or start {NEW_FEED} to copy again"
        )
    if _rows_of(on) == _rows_of(then):
        return False  # they have restored it by themselves
    if log.put(on, restore_info(then), restored(on, then)) is not None:
        _log.warning(
            "%s: %s changed rows of the lake table %s; that is taken back, since its rows are those of the source: "
            "write to another table",
            table,
            change,
            log.directory,
        )
    return True


def _rows_of(of: Snapshot) -> Mapping[str, Vector | None]:
    """What its rows depend on: each file, and which of its rows are dead."""
    return {path: file.dead for path, file in of.files.items()}


def _changes_rows(lines: Sequence[Line]) -> bool:
    return any(
        action.data_change for line in lines for action in (line.add, line.remove) if action is not None
    )


def _keeps_rows(log: DeltaLog, version: int, lines: Sequence[Line]) -> bool:
    """Whether what a commit takes out stands in the version before, as it is, and as many rows live as then."""
    removed = [line.remove for line in lines if line.remove is not None]
    if not removed and all(line.add is None for line in lines):
        return True
    before, after = log.told_at(version - 1), log.told_at(version)
    if before is None or after is None:
        return False
    stands = _rows_of(before)
    if any(one.file not in stands or one.deletion_vector != stands[one.file] for one in removed):
        return False
    files = [*before.files.values(), *after.files.values()]
    return not all(file.counted for file in files) or _living(before) == _living(after)


def _living(of: Snapshot) -> int:
    return sum(file.live for file in of.files.values())
