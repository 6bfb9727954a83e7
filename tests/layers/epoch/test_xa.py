"""XA transactions of a stretch, against a model that replays the groups one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.epoch.seal import newest_sealed
from catchment.epoch.xa import commits, hidden_from, prepared_after
from catchment.model.errors import Unsupported
from catchment.model.position import GroupKind, LogOffset, Prepared, XaGroup, Xid

NAMES = [Xid(1, b"a", b""), Xid(1, b"a", b"b"), Xid(7, b"ab", b"")]
SIZE = 100
PER_FILE = 5


def place(number: int) -> tuple[LogOffset, LogOffset]:
    """Start and end of the n-th group of a log that rotates every few groups."""
    file, at = divmod(number, PER_FILE)
    name = f"binlog.{file + 1:06}"
    return LogOffset(name, 4 + at * SIZE), LogOffset(name, 4 + (at + 1) * SIZE)


@st.composite
def logs(draw: st.DrawFn) -> list[XaGroup]:
    """A log in which XIDs are prepared, ended and prepared again."""
    groups: list[XaGroup] = []
    still: set[int] = set()
    for number in range(draw(st.integers(0, 25))):
        which = draw(st.integers(0, len(NAMES) - 1))
        start, end = place(number)
        prepares = which not in still
        committed = not prepares and draw(st.booleans())
        kind = GroupKind.XA_PREPARE if prepares else GroupKind.XA_END
        groups.append(XaGroup(kind, committed, NAMES[which], start, end, number, number))
        still ^= {which}
    return groups


def shifted(groups: list[XaGroup], by: int) -> list[XaGroup]:
    """The groups as a stretch that begins behind the first `by` ones counts them."""
    return [XaGroup(g.kind, g.committed, g.xid, g.start, g.end, g.ordinal - by, g.time) for g in groups]


@given(logs(), st.data())
def test_rows_count_at_their_commit_wherever_the_log_is_cut(
    groups: list[XaGroup], data: st.DataObject
) -> None:
    sealed_at = data.draw(st.integers(0, len(groups)))
    cut_at = data.draw(st.integers(sealed_at, len(groups)))
    begin_at = data.draw(st.integers(sealed_at, cut_at))
    sealed = place(sealed_at)[0]
    known = prepared_after(
        "s", prepared_after("s", (), groups[:sealed_at], sealed), groups[sealed_at:cut_at], sealed
    )
    assert {p.start for p in known if p.committed is None} == _open(groups[:cut_at])
    # What is known at the cut serves a reader that begins anywhere from the sealed position on.
    for first in (begin_at, cut_at):
        mine = groups[first:]
        found = commits("s", known, shifted(mine, first))
        moved = {groups[n + first].start: to for n, to in found.moves.items() if n != to and to is not None}
        moved |= {prepared.start: to for prepared, to in found.earlier}
        assert moved == {start: at - first for start, at in _committed(groups).items() if at >= first}
        nowhere = {groups[n + first].start for n, to in found.moves.items() if to is None}
        assert nowhere == {g.start for g in mine if g.kind is GroupKind.XA_PREPARE} - moved.keys()


def _open(groups: list[XaGroup]) -> set[LogOffset]:
    still: dict[Xid, LogOffset] = {}
    for group in groups:
        if group.kind is GroupKind.XA_PREPARE:
            still[group.xid] = group.start
        else:
            del still[group.xid]
    return set(still.values())


def _committed(groups: list[XaGroup]) -> dict[LogOffset, int]:
    """Where each committed transaction was prepared, and the number of the group that commits it."""
    found: dict[LogOffset, int] = {}
    last: dict[Xid, LogOffset] = {}
    for number, group in enumerate(groups):
        if group.kind is GroupKind.XA_PREPARE:
            last[group.xid] = group.start
        elif group.committed:
            found[last[group.xid]] = number
    return found


def test_a_commit_of_what_is_not_known_is_an_error_and_a_rollback_is_not() -> None:
    start, end = place(3)
    commit = XaGroup(GroupKind.XA_END, True, NAMES[0], start, end, 0, 0)
    with pytest.raises(Unsupported, match=r"shard s at binlog.000001:304: XA COMMIT X'61',X'',1"):
        commits("s", (), [commit])
    with pytest.raises(Unsupported, match="XA COMMIT"):
        prepared_after("s", (), [commit], None)
    rollback = XaGroup(GroupKind.XA_END, False, NAMES[0], start, end, 0, 0)
    assert prepared_after("s", (), [rollback], None) == ()
    assert commits("s", (), [rollback]).moves == {}


def test_a_position_behind_a_commit_that_is_still_listed_is_not_sealed() -> None:
    prepared = [Prepared(NAMES[n], *place(n), n, place(n + 10)[0]) for n in range(2)]
    open_one = Prepared(NAMES[2], *place(2), 2)
    assert hidden_from([*prepared, open_one], []) is None
    assert hidden_from([*prepared, open_one], [NAMES[2]]) is None
    assert hidden_from([*prepared, open_one], [NAMES[0], NAMES[1]]) == place(10)[0]
    hidden, known = place(10)[0], place(9)[0]
    assert newest_sealed(known, known, place(14)[1], None, ["binlog.000004"], hidden=hidden) == known
    assert newest_sealed(known, known, place(14)[1], None, ["binlog.000003"], hidden=hidden) == LogOffset(
        "binlog.000003", 4
    )
    assert newest_sealed(None, None, place(14)[1], None, ["binlog.000004"], hidden=hidden) is None
