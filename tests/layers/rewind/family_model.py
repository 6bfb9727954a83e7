"""A small model of a server whose engine carries out foreign keys and logs nothing of it.

Tables are rows by their integer `id`, or by two of them. Each statement is one transaction or shares it with others;
the model keeps the images that a log has of it, and what each transaction left.
"""

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import pyarrow as pa

from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.image import DELETE, GROUP, INSERT, OP, SEQ, SIDE, UNCHECKED, UPDATE
from catchment.model.table import TableId
from catchment.rewind.states import AFTER, BEFORE

Row = tuple[int | None, ...]
Rows = dict[Row, Row]

COLUMNS = {
    "p": ("id", "code", "v"),
    "q": ("a", "b", "v"),
    "c": ("id", "p", "v"),
    "n": ("id", "p", "code", "v"),
    "g": ("id", "c", "v"),
    "k": ("id", "a", "b"),
    "t": ("id", "up", "v"),
}
ROW_KEYS = {table: ("a", "b") if table == "q" else ("id",) for table in COLUMNS}


def _key(name: str, child: str, columns: str, parent: str, referenced: str, does: Does) -> ForeignKey:
    mine, its = tuple(columns.split()), tuple(referenced.split())
    return ForeignKey(name, TableId("d", child), mine, TableId("d", parent), its, does, does)


KEYS = (
    _key("fc", "c", "p", "p", "id", Does.FOLLOW),
    _key("fn", "n", "p", "p", "id", Does.FORGET),
    _key("fm", "n", "code", "p", "code", Does.FOLLOW),
    _key("fg", "g", "c", "c", "id", Does.FOLLOW),
    _key("fk", "k", "a b", "q", "a b", Does.FOLLOW),
    ForeignKey("ft", TableId("d", "t"), ("up",), TableId("d", "t"), ("id",), Does.FOLLOW),
)


@dataclass
class FamilyModel:
    """`states`: what each transaction left, the first of them what was there at the beginning."""

    chance: random.Random
    values: int = 5
    tables: dict[str, Rows] = field(default_factory=lambda: {table: {} for table in COLUMNS})
    states: list[dict[str, Rows]] = field(default_factory=list)
    images: dict[str, list[dict[str, int | None]]] = field(default_factory=lambda: {t: [] for t in COLUMNS})
    _seq: int = 0
    _group: int = -1
    _checked: bool = True

    def begin(self, statements: int, tables: Sequence[str] = tuple(COLUMNS)) -> None:
        """Fill tables; what the log has of that is not kept."""
        for _ in range(statements):
            self._write(self.chance.choice(tables), moves=False, insert=True)
        self.images = {table: [] for table in COLUMNS}
        self.states = [deepcopy(self.tables)]

    def transact(self, *, moves: bool, tables: Sequence[str] = "ppppqqccnngkt") -> None:
        """A transaction of a few statements on `tables`. `moves`: they may change the keys of parents."""
        self._group += 1
        self._checked = self.chance.random() < 0.85
        for _ in range(self.chance.randint(1, 3)):
            self._write(self.chance.choice(tables), moves=moves, insert=False)
        self._checked = True
        self.states.append(deepcopy(self.tables))

    def run(self, table: str, before: Row, after: Row | None) -> None:
        """A transaction that changes one row, or deletes it."""
        self.states = self.states or [deepcopy(self.tables)]
        self._group += 1
        self._image(table, before, after)
        if after is None:
            self._remove(table, before)
        else:
            self._replace(table, before, after)
        self.states.append(deepcopy(self.tables))

    def rows(self, table: str, moment: int) -> pa.Table:
        """A table as the transaction of that number left it."""
        return _table(table, list(self.states[moment][table].values()))

    def log(self, table: str, since: int = 0) -> pa.Table:
        """The images of a table, of the groups from one on."""
        columns = [(name, pa.int32()) for name in COLUMNS[table]]
        internal = [(SIDE, pa.uint8()), (OP, pa.uint8()), (SEQ, pa.int64()), (GROUP, pa.int64())]
        images = [image for image in self.images[table] if (image[GROUP] or 0) >= since]
        return pa.Table.from_pylist(images, pa.schema([*columns, *internal]))

    def _any(self) -> int:
        return self.chance.randrange(self.values)

    def _write(self, table: str, *, moves: bool, insert: bool) -> None:
        rows = self.tables[table]
        columns, keyed = COLUMNS[table], len(ROW_KEYS[table])
        if insert or not rows or self.chance.random() < 0.3:
            row: Row = tuple(self._any() for _ in columns)
            if table in ("n", "t") and self.chance.random() < 0.3:
                row = (row[0], None, *row[2:])
            if row[:keyed] not in rows and self._fits(table, row):
                self._image(table, None, row)
                rows[row[:keyed]] = row
            return
        row = self.chance.choice([*rows.values()])
        if self.chance.random() < 0.5:
            self._image(table, row, None)
            self._remove(table, row)
            return
        at = self.chance.randrange(0 if moves else keyed, len(columns))
        if not moves and (table, columns[at]) == ("p", "code"):
            at = 2
        after = (*row[:at], self._any(), *row[at + 1 :])
        if (
            after != row
            and (after[:keyed] == row[:keyed] or after[:keyed] not in rows)
            and self._fits(table, after, row)
        ):
            self._image(table, row, after)
            self._replace(table, row, after)

    def _fits(self, table: str, row: Row, before: Row | None = None) -> bool:
        """Whether the server takes a row: unique codes, parents that are there, and no row that is its own parent."""
        others = [one for one in self.tables[table].values() if one != before]
        if table == "p" and any(one[1] == row[1] for one in others):
            return False
        if table == "t" and row[1] == row[0]:
            return False
        if not self._checked:
            return True
        for key in KEYS:
            if key.child.name != table:
                continue
            value = _values(row, table, key.columns)
            unchanged = before is not None and value == _values(before, table, key.columns)
            parents = self.tables[key.parent.name].values()
            there = {_values(one, key.parent.name, key.referenced) for one in parents}
            if None not in value and not unchanged and value not in there:
                return False
        # Of t no key is cascaded: the server refuses to change one that has children.
        moved = before is not None and before[0] != row[0]
        return not (table == "t" and moved and any(one[1] == before[0] for one in others if before))

    def _remove(self, table: str, row: Row) -> None:
        del self.tables[table][row[: len(ROW_KEYS[table])]]
        if not self._checked:
            return
        for key in KEYS:
            for child in self._children(key, table, row):
                if key.on_delete is Does.FOLLOW:
                    self._remove(key.child.name, child)
                elif key.on_delete is Does.FORGET:
                    self._replace(key.child.name, child, _with(child, key, (None,) * len(key.columns)))

    def _replace(self, table: str, row: Row, after: Row) -> None:
        keyed = len(ROW_KEYS[table])
        del self.tables[table][row[:keyed]]
        self.tables[table][after[:keyed]] = after
        if not self._checked:
            return
        for key in KEYS:
            value = _values(after, table, key.referenced) if key.parent.name == table else None
            if value is None or value == _values(row, table, key.referenced) or key.on_update is Does.KEEP:
                continue
            new = value if key.on_update is Does.FOLLOW else (None,) * len(key.columns)
            for child in self._children(key, table, row):
                self._replace(key.child.name, child, _with(child, key, new))

    def _children(self, key: ForeignKey, table: str, row: Row) -> list[Row]:
        """The rows that refer to a row by a key."""
        if key.parent.name != table or None in (value := _values(row, table, key.referenced)):
            return []
        rows = self.tables[key.child.name].values()
        return [child for child in rows if _values(child, key.child.name, key.columns) == value]

    def _image(self, table: str, before: Row | None, after: Row | None) -> None:
        op = INSERT if before is None else DELETE if after is None else UPDATE
        op += 0 if self._checked else UNCHECKED
        for side, row in ((BEFORE, before), (AFTER, after)):
            if row is not None:
                self._seq += 1
                values = dict(zip(COLUMNS[table], row, strict=True))
                self.images[table].append({**values, SIDE: side, OP: op, SEQ: self._seq, GROUP: self._group})


def _values(row: Row, table: str, columns: tuple[str, ...]) -> Row:
    return tuple(row[COLUMNS[table].index(name)] for name in columns)


def _with(row: Row, key: ForeignKey, values: Row) -> Row:
    found = list(row)
    for name, value in zip(key.columns, values, strict=True):
        found[COLUMNS[key.child.name].index(name)] = value
    return tuple(found)


def _table(table: str, rows: list[Row]) -> pa.Table:
    schema = pa.schema([(name, pa.int32()) for name in COLUMNS[table]])
    return pa.Table.from_pylist([dict(zip(COLUMNS[table], row, strict=True)) for row in rows], schema)
