"""What a server's logs held, as the server itself knows it: the checker believes this, and reads no byte of a log."""

from dataclasses import dataclass, field

Row = tuple[int | None, ...]
Change = tuple[str, int, Row | None]  # table, key, the row behind it
Rows = dict[int, Row]
Place = tuple[int, int]  # number of the file, offset in it


@dataclass
class Group:
    """What the log holds between two places: `changes` count where they stand, unless an XA PREPARE made them.

    `late`: of an XA COMMIT, for how long its rows stay hidden when the group has passed. `empties`: the table that it
    truncates; `parts`: it says so of all its partitions. `adds`: a table and the column that an ALTER gave it.
    `seconds`: when it was written, in seconds since 1970 by the server's clock; `logged_at`: when it came into this
    log, in simulated seconds.
    """

    start: Place
    end: Place
    changes: tuple[Change, ...]
    visible_at: float
    shown: bool = False
    xid: bytes = b""
    late: float | None = None
    empties: str = ""
    parts: bool = False
    adds: tuple[str, str] | None = None
    seconds: int = 0
    logged_at: float = 0.0


@dataclass(eq=False)
class History:
    """One log, from a RESET to the next. `loaded`: the rows from before it. `born`: seconds of its files' births.

    `kept`: number of the oldest file that was not purged. `end`: where the log ended; None while it goes on.
    """

    loaded: dict[str, Rows]
    groups: list[Group] = field(default_factory=list)
    born: dict[int, int] = field(default_factory=dict)
    kept: int = 1
    end: Place | None = None
    _known: dict[str, tuple[int, Rows]] = field(default_factory=dict)

    def rows_at(self, table: str, place: Place) -> Rows:
        """The rows of a table when all groups up to a place of the log have been committed; not to be changed."""
        count, rows = self._known.get(table, (0, {}))
        if not count or self.groups[count - 1].end > place:
            count, rows = 0, dict(self.loaded.get(table, {}))
        while count < len(self.groups) and self.groups[count].end <= place:
            if self.groups[count].empties == table:
                rows.clear()
            for name, key, row in self.groups[count].changes:
                if name == table:
                    change(rows, key, row)
            count += 1
        self._known[table] = count, rows
        return rows

    def may_hold(self, place: Place, born: int) -> bool:
        """Whether a place of a file that was born then may lie in this log."""
        return self.born.get(place[0]) == born and (self.end is None or place <= self.end)

    def has_lost(self, place: Place) -> bool:
        """Whether a group behind a place stood in a file that was purged."""
        return any(group.start[0] < self.kept and group.end > place for group in self.groups)


def change(rows: Rows, key: int, row: Row | None) -> None:
    """Take a change in."""
    if row is None:
        rows.pop(key, None)
    else:
        rows[key] = row
