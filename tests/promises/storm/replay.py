"""Judge one under any DDL: a shard's tables by its log, renamed, dropped and made again as the log says.

What other DDL makes of rows no log says. So it is SELECTed: whoever runs such a statement holds the table by LOCK
TABLES until the rows behind it are read. The statement has a mark in it, by which the log says where they belong.

On MariaDB a lock keeps no prepared XA transaction out whose session has ended: its COMMIT may come between DDL and
SELECT, and one that the log has before DDL may become visible behind the SELECT. So their ends are waited for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pymysql

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session
from tests.world.canonical import Key, Row, canonical_row, key_of
from tests.world.log_groups import text_of
from tests.world.oracle import Oracle
from tests.world.prepared import await_prepared

_MARK = re.compile(r"/\* mark (\d+) \*/")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RENAME = re.compile(r"\s*RENAME\s+TABLE\s+(.*)", re.IGNORECASE | re.DOTALL)
_RENAMED = re.compile(r"(?:`?(\w+)`?\.)?`?(\w+)`?\s+TO\s+(?:`?(\w+)`?\.)?`?(\w+)`?", re.IGNORECASE)

Rows = dict[Key, Row]


class Marked:
    """What statements with marks left in their tables."""

    def __init__(self, keys: Mapping[str, Sequence[str]]) -> None:
        self._keys = {table: tuple(key) for table, key in keys.items()}
        self._left: list[tuple[str, Rows]] = []

    def run(self, server: PrivateServer, table: str, statement: str, beside: Sequence[str] = ()) -> None:
        """Run DDL on `table` (`schema.name`) while nobody else can change it, and remember its rows. `beside`: tables
        of the schema that the statement names, too."""
        schema, name = table.split(".")
        held = ", ".join(f"`{one}` WRITE" for one in (name, *beside))
        verb, rest = statement.split(" ", 1)
        session = server.connect(database=schema)
        with session, session.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {held}")
            await_prepared(server)
            cursor.execute(f"{verb} /* mark {len(self._left)} */ {rest}")
            cursor.fetchall()  # of OPTIMIZE and ANALYZE
            cursor.execute("SET time_zone = '+00:00'")
            self._left.append((table, self._rows(session, table)))
            cursor.execute("UNLOCK TABLES")

    def behind(self, query: str) -> tuple[str, Rows] | None:
        """The table and rows that a statement of the log left; None for one without a mark."""
        found = _MARK.search(query)
        return None if found is None else self._left[int(found[1])]

    def _rows(self, session: Session, table: str) -> Rows:
        with session.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table.split('.')[1]}")
            rows = map(canonical_row, cursor.fetchall())
            return {key_of(row, self._keys[table]): row for row in rows}


class Replay(Oracle):
    """An oracle of all tables of `keys`, also of such as a tool makes to swap them in."""

    def follow(self, keys: Mapping[str, Sequence[str]], marked: Marked) -> None:
        """Take in tables that are not there yet, and what statements left."""
        self._keys.update({table: tuple(key) for table, key in keys.items()})
        self.state.update({table: {} for table in keys if table not in self.state})
        self._marked = marked

    def _define(self, event: Any) -> None:
        query, schema = (text_of(part) for part in (event.query, event.schema))
        if (behind := self._marked.behind(query)) is not None:
            table, rows = behind
            self.state[table] = {key: dict(row) for key, row in rows.items()}
            return
        event.query = _COMMENT.sub(" ", query)
        if (renames := _RENAME.match(event.query)) is None:
            super()._define(event)
            return
        for old_schema, old, new_schema, new in _RENAMED.findall(renames[1]):
            before, after = f"{old_schema or schema}.{old}", f"{new_schema or schema}.{new}"
            rows = self.state.get(before, {})
            if before in self.state:
                self.state[before] = {}
            if after in self.state:
                self.state[after] = rows
