"""Writers of a family of tables with cascading foreign keys, and a judge that knows what the server itself showed.

Each transaction leaves its number in a table, and SELECTs all others before it commits. No other session writes, so
this is the source behind that transaction. An epoch of the lake has the numbers, too.
"""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pymysql

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.model.epoch import EpochRow
from catchment.model.shard import Copy
from catchment.sink.delta.epochs.table import EpochsTable

FOLLOW = "ON DELETE CASCADE ON UPDATE CASCADE"
FORGET = "ON DELETE SET NULL ON UPDATE SET NULL"
JOURNAL = "journal"
TABLES = {
    "p": "CREATE TABLE p (id INT PRIMARY KEY, code INT UNIQUE, v INT)",
    "c": f"CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY fc (p) REFERENCES p (id) {FOLLOW})",
    "n": "CREATE TABLE n (id INT PRIMARY KEY, p INT, code INT,"
    f" FOREIGN KEY fn (p) REFERENCES p (id) {FORGET}, FOREIGN KEY fm (code) REFERENCES p (code) {FOLLOW})",
    "g": f"CREATE TABLE g (id INT PRIMARY KEY, c INT, FOREIGN KEY fg (c) REFERENCES c (id) {FOLLOW})",
    "t": "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY ft (up) REFERENCES t (id) ON DELETE CASCADE)",
    "q": "CREATE TABLE q (id INT PRIMARY KEY, a INT, b BIGINT, UNIQUE (a, b))",
    "k": "CREATE TABLE k (id INT PRIMARY KEY, a INT, b BIGINT,"
    f" FOREIGN KEY fk (a, b) REFERENCES q (a, b) {FOLLOW})",
}
COLUMNS = {
    "p": "id, code, v",
    "c": "id, p, v",
    "n": "id, p, code",
    "g": "id, c",
    "t": "id, up",
    "q": "id, a, b",
    "k": "id, a, b",
}
_STATEMENTS = (
    "DELETE FROM p WHERE id = {old}",
    "UPDATE p SET id = {new} WHERE id = {old}",
    "UPDATE p SET code = {new} + 1000 WHERE id = {old}",
    "UPDATE p SET v = v + 1 WHERE id = {old}",
    "REPLACE INTO p VALUES ({old}, {new} + 1000, 0)",
    "INSERT IGNORE INTO p VALUES ({new}, {new} + 1000, 0)",
    "INSERT IGNORE INTO c SELECT {new}, MAX(id), 1 FROM p",
    "INSERT IGNORE INTO g SELECT {new}, MAX(id) FROM c",
    "INSERT IGNORE INTO n SELECT {new}, MAX(id), MAX(code) FROM p",
    "INSERT IGNORE INTO t SELECT {new}, MAX(id) FROM t",
    "UPDATE c SET p = (SELECT MIN(id) FROM p WHERE id > {old}) WHERE id = {old}",
    "UPDATE n SET p = (SELECT MAX(id) FROM p WHERE id < {old}) WHERE id = {old}",
    "UPDATE g SET c = (SELECT MIN(id) FROM c WHERE id > {old}) WHERE id = {old}",
    "DELETE FROM c WHERE id = {old}",
    "DELETE FROM t WHERE id = {old} + 40",
    "UPDATE c SET v = v + 1 WHERE id = {old}",
    "DELETE FROM q WHERE id = {old}",
    "UPDATE q SET b = {new} WHERE id = {old}",
    "INSERT IGNORE INTO q VALUES ({new}, {old}, {new})",
    "INSERT IGNORE INTO k SELECT {new}, a, b FROM q ORDER BY id DESC LIMIT 1",
)

Table = list[tuple[Any, ...]]


def filled(parents: int) -> list[str]:
    """Statements that fill the tables, in which each parent has a few children."""
    many = range(1, 5 * parents)
    rows = {
        "p": [f"({n}, {n + 1000}, 0)" for n in range(1, parents)],
        "c": [f"({n}, {1 + n % (parents - 1)}, 0)" for n in many],
        "n": [f"({n}, {1 + n % (parents - 1)}, {1001 + n % (parents - 1)})" for n in many],
        "g": [f"({n}, {1 + n % (5 * parents - 1)})" for n in many],
        "t": [f"({n}, {n // 2 or 'NULL'})" for n in many],
        "q": [f"({n}, {n % 7}, {n})" for n in range(1, parents)],
        "k": [f"({n}, {(1 + n % (parents - 1)) % 7}, {1 + n % (parents - 1)})" for n in many],
    }
    return [f"INSERT INTO {table} VALUES {', '.join(values)}" for table, values in rows.items()]


class Family:
    """One shard's writer. `states`: of all tables, by the number of the transaction."""

    def __init__(self, server: PrivateServer, schema: str, keys: int, seed: int) -> None:
        self._connection = server.connect(database=schema)
        self._random = random.Random(seed)
        self._keys = keys
        self._next = 10_000
        self.states: list[dict[str, Table]] = [self._select()]
        self._connection.commit()

    def transact(self) -> None:
        """One transaction of a few statements."""
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN")
            for _ in range(self._random.randint(1, 4)):
                self._next += 1
                one = self._random.choice(_STATEMENTS)
                # A statement that the server refuses changes nothing.
                with suppress(pymysql.err.IntegrityError):
                    cursor.execute(one.format(old=self._random.randint(1, self._keys), new=self._next))
            cursor.execute(f"INSERT INTO {JOURNAL} VALUES ({len(self.states)})")
            shown = self._select()
            cursor.execute("COMMIT")
        self.states.append(shown)

    def _select(self) -> dict[str, Table]:
        found = {}
        with self._connection.cursor() as cursor:
            for table, columns in COLUMNS.items():
                cursor.execute(f"SELECT {columns} FROM {table}")
                found[table] = by_text(cursor.fetchall())
        return found


def by_text(rows: Sequence[tuple[Any, ...]]) -> Table:
    """Rows in an order that NULL has, too."""
    return sorted(map(tuple, rows), key=str)


def judged(feed: Feed, schema: str, families: dict[str, Family]) -> Counter[str]:
    """Compare all epochs with what the servers showed; how many tables were compared while `copying` and when
    `whole`, and how many were `stale`."""
    counts: Counter[str] = Counter()
    for row in EpochsTable(feed.sink.path, feed.name).read_all():
        for shard, family in families.items():
            number = max((n for (n,) in _lake(feed, schema, JOURNAL, "id", row, shard)), default=0)
            for copy in row.manifest.cut.shards[shard].copies:
                table = copy.table.name
                if table not in COLUMNS:
                    continue
                if row.manifest.stale_since(copy.table) is not None:
                    counts["stale"] += 1
                    continue
                there = _lake(feed, schema, table, COLUMNS[table], row, shard)
                expected = [one for one in family.states[number][table] if is_copied(copy, one[0])]
                where = f"epoch {row.manifest.epoch}, {shard}, {table}, transaction {number}, {copy}"
                assert there == expected, f"{where}: {set(there) ^ set(expected)}"
                counts["whole" if copy.done else "copying"] += 1
    return counts


def _lake(feed: Feed, schema: str, table: str, columns: str, row: EpochRow, shard: str) -> Table:
    rows = read(feed, f"{schema}.{table}", row.manifest.epoch).arrow().to_pylist()
    names = columns.split(", ")
    return by_text([tuple(one[name] for name in names) for one in rows if one["_shard"] == shard])


def is_copied(copy: Copy, key: int) -> bool:
    if copy.done:
        return True
    copied, born = copy.copied, copy.born_after
    return (copied is not None and key <= int(copied[0])) or (born is not None and key > int(born[0]))
