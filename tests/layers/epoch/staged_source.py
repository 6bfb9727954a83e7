"""A source in a few lines: a log, what of it is visible, and rows that were SELECTed in front of a cut.

Commits become visible in the order of the log, each some time after it was logged (semi-sync holds them). XA COMMITs
become visible outside of that order. Keys of what is not visible yet are locked.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from catchment.model.image import GROUP, OP, SEQ, SIDE
from catchment.model.position import GroupKind, LogOffset, XaGroup, Xid
from catchment.rewind.states import AFTER, BEFORE

KEYS = range(6)
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
_IMAGES = pa.schema(
    [
        *SCHEMA,
        pa.field(SIDE, pa.uint8()),
        pa.field(OP, pa.uint8()),
        pa.field(SEQ, pa.int64()),
        pa.field(GROUP, pa.int64()),
    ]
)
_SIZE, _PER_FILE = 100, 5

Rows = dict[int, int]
# Of a key the row before and after; None: absent.
Changes = dict[int, tuple[int | None, int | None]]


def place(number: int) -> LogOffset:
    """Where the n-th group begins, in a log that rotates every few groups."""
    file, at = divmod(number, _PER_FILE)
    return LogOffset(f"binlog.{file + 1:06}", 4 + at * _SIZE)


_NO_XID = Xid(1, b"", b"")


@dataclass
class Group:
    """One of the log. `changes` count where it is; of an XA PREPARE at its COMMIT."""

    changes: Changes = field(default_factory=dict)
    kind: GroupKind = GroupKind.TRANSACTION
    xid: Xid = _NO_XID
    mark: str = ""


class Source:
    """Random transactions of one or two rows."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.log: list[Group] = []
        self.newest: Rows = {key: 0 for key in KEYS if dice.random() < 0.6}
        self.begun = dict(self.newest)
        self.visible: Rows = dict(self.newest)
        self.held: list[Group] = []
        self.prepared: dict[Xid, Group] = {}
        self.hidden: dict[Xid, Group] = {}
        self._value = 0

    def steps(self, most: int) -> None:
        """So many at most."""
        for _ in range(self.dice.randint(0, most)):
            self.dice.choice(
                (self._transact, self._transact, self._show, self._prepare, self._commit, self._reveal)
            )()

    def mark(self, name: str) -> None:
        """A commit of its own: it returns when it is visible, and so all in front of it."""
        self.log.append(Group(mark=name))
        while self.held:
            self._show()

    @property
    def listed(self) -> tuple[Xid, ...]:
        """What XA RECOVER shows."""
        return (*self.prepared, *self.hidden)

    def rows_at(self, cut: int) -> Rows:
        """As the log says it."""
        found, prepared = dict(self.begun), {}
        for group in self.log[:cut]:
            if group.kind is GroupKind.XA_PREPARE:
                prepared[group.xid] = group.changes
            else:
                _change(found, prepared.pop(group.xid, {}) | group.changes)
        return found

    def xa_groups(self, start: int, stop: int) -> list[XaGroup]:
        """Those of a stretch, numbered as in it."""
        return [
            XaGroup(
                one.kind,
                one.kind is GroupKind.XA_END,
                one.xid,
                place(number),
                place(number + 1),
                number - start,
                0,
            )
            for number, one in enumerate(self.log[:stop])
            if number >= start and one.kind in (GroupKind.XA_PREPARE, GroupKind.XA_END)
        ]

    def images(self, start: int, stop: int, earlier: Mapping[int, int]) -> pa.Table:
        """Those of a stretch; `earlier`: the groups in which PREPAREs in front of it count."""
        stretch = [(number - start, self.log[number]) for number in range(start, stop)]
        stretch += [(ordinal, self.log[number]) for number, ordinal in earlier.items()]
        found: list[dict[str, int | None]] = []
        for ordinal, group in sorted(stretch, key=lambda one: one[0]):
            for key, sides in group.changes.items():
                for side, value in zip((BEFORE, AFTER), sides, strict=True):
                    if value is not None:
                        row: dict[str, int | None] = {
                            "id": key,
                            "v": value,
                            SIDE: side,
                            OP: 0,
                            SEQ: len(found),
                            GROUP: ordinal,
                        }
                        found.append(row)
        return pa.Table.from_pylist(found, _IMAGES)

    def _transact(self) -> None:
        if changes := self._changes():
            group = Group(changes)
            self.log.append(group)
            self.held.append(group)
            _change(self.newest, changes)

    def _show(self) -> None:
        if self.held:
            _change(self.visible, self.held.pop(0).changes)

    def _prepare(self) -> None:
        if changes := self._changes():
            group = Group(changes, GroupKind.XA_PREPARE, Xid(1, b"%d" % len(self.log), b""))
            self.log.append(group)
            self.prepared[group.xid] = group

    def _commit(self) -> None:
        if self.prepared:
            xid = self.dice.choice(list(self.prepared))
            self.hidden[xid] = self.prepared.pop(xid)
            self.log.append(Group(kind=GroupKind.XA_END, xid=xid))
            _change(self.newest, self.hidden[xid].changes)

    def _reveal(self) -> None:
        if self.hidden:
            xid = self.dice.choice(list(self.hidden))
            _change(self.visible, self.hidden.pop(xid).changes)

    def _changes(self) -> Changes:
        """Of keys that nobody has locked."""
        locked = {
            key
            for group in (*self.held, *self.prepared.values(), *self.hidden.values())
            for key in group.changes
        }
        free = [key for key in KEYS if key not in locked]
        found: Changes = {}
        for key in self.dice.sample(free, min(len(free), self.dice.randint(1, 2))):
            self._value += 1
            before = self.newest.get(key)
            gone = before is not None and self.dice.random() < 0.3
            found[key] = before, None if gone else self._value
        return found


def _change(rows: Rows, changes: Changes) -> None:
    for key, (_, after) in changes.items():
        rows.pop(key, None)
        if after is not None:
            rows[key] = after
