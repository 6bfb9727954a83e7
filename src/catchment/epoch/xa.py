"""XA transactions: their rows stand where they were prepared and count where they are committed (DESIGN 3, 4).

The XID of an open transaction is unique, and free again once it has ended. So an XA COMMIT or XA ROLLBACK ends the
newest PREPARE of its XID that stands before it. For the same reason a list of known PREPAREs may also hold some that
have ended.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from catchment.model.errors import Unsupported
from catchment.model.position import GroupKind, LogOffset, Order, Prepared, XaGroup, Xid, reaches, relation


def preparation(known: Iterable[Prepared], end: XaGroup) -> Prepared | None:
    """The PREPARE that `end` is the end of; None when it is not among those known, which stand in the order of the log.

    One in a file of another base name stands before `end`: a log is read name by name (source/log_names.py).
    """
    found: Prepared | None = None
    for one in known:
        if one.xid.parts != end.xid.parts or relation(end.start, one.end) is Order.BEFORE:
            continue
        if found is None or relation(one.start, found.start) is not Order.BEFORE:
            found = one
    return found


def prepared_after(
    shard: str, known: Sequence[Prepared], groups: Sequence[XaGroup], sealed: LogOffset | None
) -> tuple[Prepared, ...]:
    """What is known of PREPAREs behind `groups`, which follow on where `known` held: those that are open, and
    those committed beyond `sealed`. Raises Unsupported for an XA COMMIT whose PREPARE is not known.
    """
    table = list(known)
    for group in groups:
        if group.kind is GroupKind.XA_PREPARE:
            table.append(group.prepared)
            continue
        found = preparation(table, group)
        if found is not None:
            table.remove(found)
        if group.committed:
            if found is None:
                raise unknown(shard, group)
            table.append(msgspec.structs.replace(found, committed=group.start))
    return tuple(p for p in table if p.committed is None or sealed is None or reaches(p.committed, sealed))


@dataclass(frozen=True)
class Commits:
    """Which images of a stretch count where. `moves` as `rewind.states.in_commit_order` takes it;
    `earlier`: PREPAREs before the stretch whose rows count in the group of that ordinal.
    """

    moves: dict[int, int | None]
    earlier: tuple[tuple[Prepared, int], ...]


def commits(shard: str, known: Sequence[Prepared], groups: Sequence[XaGroup]) -> Commits:
    """How the XA transactions of a stretch end. Raises Unsupported for a commit of what is not known."""
    table = list(known)
    ordinals: dict[Prepared, int] = {}
    moves: dict[int, int | None] = {}
    earlier = []
    for group in groups:
        if group.kind is GroupKind.XA_PREPARE:
            table.append(group.prepared)
            ordinals[group.prepared] = group.ordinal
            moves[group.ordinal] = None
            continue
        if not group.committed:
            continue
        found = preparation(table, group)
        if found is None:
            raise unknown(shard, group)
        if found in ordinals:
            moves[ordinals[found]] = group.ordinal
        else:
            earlier.append((found, group.ordinal))
            moves[group.ordinal] = group.ordinal
    return Commits(moves, tuple(earlier))


def hidden_from(prepared: Iterable[Prepared], recovered: Collection[Xid]) -> LogOffset | None:
    """Where the first XA COMMIT begins that may not be visible yet; None when all are.

    `recovered` is what XA RECOVER listed after these commits were read in the log. It lists an XID until its commit is
    visible. A commit becomes visible outside of the order of the log (DESIGN 3).
    """
    listed = {xid.parts for xid in recovered}
    found: LogOffset | None = None
    for one in prepared:
        at = one.committed
        if at is not None and one.xid.parts in listed and (found is None or reaches(found, at)):
            found = at
    return found


def unknown(shard: str, end: XaGroup) -> Unsupported:
    """The error for an XA COMMIT whose rows are nowhere in the log that was read."""
    error = Unsupported(
        f"shard {shard} at {end.start}: XA COMMIT {end.xid} commits rows whose XA PREPARE is not in the log that "
        "this feed has read (prepared before the feed began, or with sql_log_bin=0): copy its tables again"
    )
    error.place = str(end.start)
    return error
