"""Which positions are sealed: every group up to them is visible to a new SELECT (DESIGN 3).

The server commits to its engine in the order of the log. So when a snapshot stands at the end of a transaction, all
that was logged before that transaction is visible. When a checkpoint event names a file, everything in earlier files
is. MariaDB logs a DDL statement when it is over, under its exclusive metadata locks: a SELECT or SHOW CREATE TABLE that
is sent later waits for these locks and sees what the statement did. So such a statement is visible, too.

A snapshot can be torn, though. A commit that was logged before FLUSH BINARY LOGS and becomes visible after it sets its
old offset beside the new file's name. (Seen; it lasts until the next commit or checkpoint event.) Groups written into
the new file later may end at just that offset while they are not visible. This happens once per file, before anything
in the new file is visible.
"""

from collections.abc import Sequence

from catchment.model.position import GroupKind, LastGroup, LogOffset, reaches

FILE_START = 4
# XA COMMIT becomes visible outside of this order.
_IN_ORDER = (GroupKind.TRANSACTION, GroupKind.DDL, GroupKind.COMPLETED_DDL)


def newest_sealed(
    known: LogOffset | None,
    start: LogOffset | None,
    snapshot: LogOffset,
    last: LastGroup | None,
    checkpoints: Sequence[str],
    *,
    xa_over: bool = False,
    hidden: LogOffset | None = None,
) -> LogOffset | None:
    """The newest position proven sealed, never older than `known`.

    `start`: an offset that an earlier snapshot showed, and up to which `known` was proven. None when it was proven
    before this snapshot was asked for. `snapshot`: an offset that a consistent snapshot showed. `last`: the last group
    that a reader met on its way to exactly there. `checkpoints`: files that Binlog_checkpoint events up to there have
    named. `xa_over`: XA RECOVER, asked after the snapshot, lists no XID whose XA COMMIT lies before it. `hidden`: where
    an XA COMMIT begins that it does list (epoch/xa.py).

    The snapshot is proof only in the file of `known`, and only when it moved since `start`: then it is not
    torn.
    """
    found = [known] if known is not None else []
    whole = known is not None and known.file == snapshot.file and start != snapshot
    if whole and last is not None and last.end == snapshot and (xa_over or last.kind in _IN_ORDER):
        found.append(last.end if last.kind is GroupKind.COMPLETED_DDL else last.start)
    found.extend(LogOffset(file, FILE_START) for file in checkpoints)
    if not found:
        return None
    newest = found[0]
    if known is None and hidden is not None and not reaches(hidden, newest):
        return None
    for offset in found[1:]:
        if reaches(offset, newest) and (hidden is None or reaches(hidden, offset)):
            newest = offset
    return newest
