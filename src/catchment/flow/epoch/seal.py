"""Which positions are sealed: every group up to them is visible to a new SELECT (DESIGN 3).

The server commits to its engine in the order of the log. So when a snapshot stands at the end of a transaction, all that
was logged before that transaction is visible; and a checkpoint event that names a file says that everything in
earlier files is.
"""

from collections.abc import Sequence

from catchment.model.position import GroupKind, LastGroup, LogOffset, reaches

_FILE_START = 4


def newest_sealed(
    known: LogOffset | None, snapshot: LogOffset, last: LastGroup | None, checkpoints: Sequence[str]
) -> LogOffset | None:
    """The newest position proven sealed, never older than `known`.

    `snapshot`: an offset that a consistent snapshot showed. `last`: the last group that a reader met on its way to
    exactly there. `checkpoints`: files that Binlog_checkpoint events up to there have named.
    """
    found = [known] if known is not None else []
    if last is not None and last.end == snapshot and last.kind is GroupKind.TRANSACTION:
        found.append(last.start)
    found.extend(LogOffset(file, _FILE_START) for file in checkpoints)
    if not found:
        return None
    newest = found[0]
    for offset in found[1:]:
        if reaches(offset, newest):
            newest = offset
    return newest
