"""The stage on which foreign statements run: chosen tables, and what else reaches them.

Chosen are `shop.orders`, `shop.t1` and `shop.t2`, tables of InnoDB with a key of their own. In the schema `test` there
are, in widths of 1, 2, 3 and 5 columns: tables whose triggers write chosen ones in several ways, views over chosen
tables and over such views, tables and views that reach nothing; besides functions and procedures that write.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pymysql

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from tests.world.patience import until

CHOSEN = (TableId("shop", "orders"), TableId("shop", "t1"), TableId("shop", "t2"))
COLUMNS = ("a", "b", "c", "d", "e")
WIDTHS = (5, 3, 2, 1)
# What a name of a statement may be taken to mean; the width is put behind it.
KINDS = ("fires", "calls", "chained", "over", "above", "joined", "functional", "silent")
_GROWN = 12  # rows
GUEST = "guest"
_LOCKED = 1205

_SCHEMA = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'test'"
_LOOK = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COLLATION, CREATE_OPTIONS"
    " FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('test', 'shop')",
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, COLUMN_KEY, EXTRA"
    " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ('test', 'shop') ORDER BY ORDINAL_POSITION",
    "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS"
    " WHERE EVENT_OBJECT_SCHEMA IN ('test', 'shop') ORDER BY TRIGGER_NAME",
    "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION FROM information_schema.ROUTINES"
    " WHERE ROUTINE_SCHEMA IN ('test', 'shop')",
    "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS"
    " WHERE TABLE_SCHEMA IN ('test', 'shop')",
)


@dataclass(frozen=True)
class Thing:
    """A table, view or routine of the stage, and how it is made with its triggers; `kind` is the word behind DROP."""

    kind: str
    schema: str
    name: str
    made: tuple[str, ...]


def _chosen(name: str) -> Thing:
    columns = ", ".join(f"{column} VARCHAR(64)" for column in COLUMNS)
    return Thing(
        "TABLE",
        "shop",
        name,
        (
            f"CREATE TABLE shop.{name} (id INT AUTO_INCREMENT PRIMARY KEY, {columns}, n INT NOT NULL DEFAULT 0)"
            " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
            f"INSERT INTO shop.{name} (a, b, c) VALUES ('1', '1', '1'), ('2', '2', '2'), ('3', '3', '3')",
        ),
    )


def _routines() -> Iterator[Thing]:
    write = "UPDATE shop.t2 SET n = n + 1 WHERE id > 0 LIMIT 2"
    for count in range(4):
        arguments = ", ".join(f"x{i} VARCHAR(64)" for i in range(count))
        yield Thing(
            "FUNCTION",
            "test",
            f"f{count}",
            (
                f"CREATE FUNCTION test.f{count}({arguments}) RETURNS INT MODIFIES SQL DATA BEGIN {write};"
                " RETURN 1; END",
            ),
        )
        body = "INSERT INTO shop.orders (a) VALUES ('called')" if count % 2 else "CALL test.inner_one()"
        yield Thing(
            "PROCEDURE",
            "test",
            f"p{count}",
            (f"CREATE PROCEDURE test.p{count}({arguments}) MODIFIES SQL DATA BEGIN {body}; END",),
        )
    body = "UPDATE test.over5 SET d = CONCAT(IFNULL(LEFT(d, 9), ''), 'x') WHERE a > '' LIMIT 1; SET @x = test.f0()"
    yield Thing("PROCEDURE", "test", "inner_one", (f"CREATE PROCEDURE test.inner_one() BEGIN {body}; END",))


def _triggers(table: str, time: str, body: str) -> tuple[str, ...]:
    return tuple(
        f"CREATE TRIGGER test.{table}_{event} {time} {event} ON test.{table} FOR EACH ROW {body}"
        for event in ("INSERT", "UPDATE", "DELETE")
    )


def _wide(width: int) -> Iterator[Thing]:
    names = COLUMNS[:width]
    columns = ", ".join(f"{column} VARCHAR(64)" for column in names)
    rows = ", ".join("(" + ", ".join(f"'{row}'" for _ in names) + ")" for row in range(3))
    fill = f"INSERT INTO {{}} ({', '.join(names)}) VALUES {rows}"

    def table(name: str, engine: str, *triggers: str) -> Thing:
        made = f"CREATE TABLE test.{name} ({columns}) ENGINE={engine} DEFAULT CHARSET=utf8mb4"
        return Thing("TABLE", "test", name, (made, fill.format(f"test.{name}"), *triggers))

    def view(name: str, text: str) -> Thing:
        return Thing("VIEW", "test", name, (f"CREATE VIEW test.{name} AS {text}",))

    chosen = ", ".join(names)
    # The names stand in KINDS; what they reach is told by their triggers and views alone.
    direct = "UPDATE shop.t1 SET n = n + 1 WHERE id > 0 LIMIT 2"
    fires, calls, chained = f"fires{width}", f"calls{width}", f"chained{width}"
    yield table(fires, "InnoDB", *_triggers(fires, "AFTER", direct))
    yield table(calls, "MyISAM", *_triggers(calls, "BEFORE", "CALL test.p1('t')"))
    yield table(
        chained,
        "InnoDB",
        *_triggers(chained, "AFTER", "UPDATE test.fires1 SET a = CONCAT(LEFT(a, 9), 'x') LIMIT 1"),
    )
    yield view(f"over{width}", f"SELECT {chosen} FROM shop.t1")
    yield view(f"above{width}", f"SELECT {chosen} FROM test.over5 WHERE 1 = 1")
    yield view(
        f"joined{width}",
        "SELECT " + ", ".join(f"o.{n}" for n in names) + " FROM shop.orders o JOIN shop.t2 USING (id)",
    )
    yield view(f"functional{width}", f"SELECT {chosen} FROM shop.t2 WHERE test.f0() = 1")
    yield table(f"silent{width}", "InnoDB")


THINGS = (
    *(_chosen(table.name) for table in CHOSEN),
    *_routines(),
    *sorted((thing for width in WIDTHS for thing in _wide(width)), key=lambda t: t.kind == "VIEW"),
)

Row = tuple[object, ...]
Content = dict[TableId, dict[int, dict[str, object]] | None]


class Stage:
    """The schemas `shop` and `test` of one server, in a session that logs what it does as rows."""

    def __init__(self, server: PrivateServer) -> None:
        self._session = server.connect(charset="utf8mb4")
        self.run("SET SESSION binlog_format = ROW", "SET SESSION lock_wait_timeout = 2")
        self.run("SET SESSION foreign_key_checks = 0")
        self._position = "SHOW MASTER STATUS"
        if not self.run("SELECT @@version LIKE '%MariaDB%' OR @@version < '8.2' AND @@version NOT LIKE '9%'")[
            0
        ][0]:
            self._position = "SHOW BINARY LOG STATUS"
        self.run("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4")
        self.run("DROP DATABASE IF EXISTS test", "CREATE DATABASE test DEFAULT CHARACTER SET utf8mb4")
        for thing in THINGS:
            self.run(*thing.made)
        self._whole = self._look()

    def run(self, *statements: str) -> list[Row]:
        """Run statements; the rows of the last."""
        with self._session.cursor() as cursor:
            for statement in statements:
                try:
                    cursor.execute(statement)
                except pymysql.err.OperationalError as error:
                    if error.args[0] != _LOCKED:
                        raise
                    self._free()
                    try:
                        cursor.execute(statement)
                    except pymysql.err.OperationalError as again:
                        raise AssertionError(f"{statement}: {again}; {self._held()}") from again
            return list(cursor.fetchall())

    def _held(self) -> str:
        """Who is there, and what InnoDB says of transactions."""
        sessions = self.run("SHOW FULL PROCESSLIST")
        ((*_, status),) = self.run("SHOW ENGINE INNODB STATUS")
        parts = str(status).partition("TRANSACTIONS")[2].partition("FILE I/O")[0]
        return f"{sessions} {parts}"

    def _free(self) -> None:
        """End what holds locks: sessions that the guest gave up while they were busy, and XA that it prepared."""
        guests = f"FROM information_schema.PROCESSLIST WHERE USER = '{GUEST}'"
        for (thread,) in self.run(f"SELECT ID {guests}"):
            with suppress(pymysql.err.MySQLError):  # it has just ended
                self.run(f"KILL {thread}")
        until("the guest's sessions have ended", lambda: not self.run(f"SELECT ID {guests}"))
        for number, gtrid, bqual, data in self.run("XA RECOVER"):
            name = data if isinstance(data, bytes) else str(data).encode()
            ends, length = int(str(gtrid)), int(str(bqual))
            self.run(f"XA ROLLBACK X'{name[:ends].hex()}',X'{name[ends : ends + length].hex()}',{number}")

    def end(self) -> tuple[str, int]:
        """Where the log ends."""
        file, offset = self.run(self._position)[0][:2]
        return str(file), int(str(offset))

    def content(self) -> Content:
        """The rows of the chosen tables by key; None for a table that is not there."""
        found: Content = {}
        with self._session.cursor(pymysql.cursors.DictCursor) as cursor:
            for table in CHOSEN:
                try:
                    cursor.execute(f"SELECT * FROM {table.schema}.{table.name}")
                    found[table] = {row["id"]: row for row in cursor.fetchall()}
                except (pymysql.err.MySQLError, KeyError):
                    found[table] = None
        return found

    def shrink(self, content: Content) -> bool:
        """Take rows of tables that have grown; whether any were."""
        grown = [t for t, rows in content.items() if rows is not None and not 3 <= len(rows) <= _GROWN]
        for table in grown:
            self.run(
                f"DELETE FROM shop.{table.name}",
                next(t for t in THINGS if (t.schema, t.name) == (table.schema, table.name)).made[1],
            )
        return bool(grown)

    def repair(self) -> bool:
        """Make again what is gone or another; whether anything was."""
        if not self.run(_SCHEMA):
            self.run("CREATE DATABASE test")
        now = self._look()
        if now == self._whole:
            return False
        for (schema, name), facts in now.items():
            if self._whole.get((schema, name)) != facts:
                self._drop(schema, name, facts)
        for thing in THINGS:
            if now.get((thing.schema, thing.name)) != self._whole[thing.schema, thing.name]:
                self.run(*thing.made)
        return True

    def hook(self) -> None:
        """Give triggers that write a chosen table to those tables of `test` that have none."""
        have = {row[0] for row in self.run(
            "SELECT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'test'"
            " AND TRIGGER_NAME LIKE 'hook%'"
        )}  # fmt: skip
        tables = self.run(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test'"
            " AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        )
        for (name,) in tables:
            if name in have or (known := ("test", str(name))) in self._whole:
                continue
            for event in ("INSERT", "UPDATE", "DELETE"):
                body = "UPDATE shop.t1 SET n = n + 1 WHERE id > 0 LIMIT 2"
                quoted = f"`test`.`{known[1]}`"
                try:
                    self.run(
                        f"CREATE TRIGGER test.`hook_{known[1][:40]}_{event}` AFTER {event} ON {quoted}"
                        f" FOR EACH ROW {body}"
                    )
                except pymysql.err.MySQLError:
                    break

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _look(self) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = {}
        for number, query in enumerate(_LOOK):
            for schema, name, *rest in self.run(query):
                found.setdefault((str(schema), str(name)), []).append((number, *rest))
        return found

    def _drop(self, schema: str, name: str, facts: list[Row]) -> None:
        """All objects of this name."""
        quoted = f"`{schema}`.`{name.replace('`', '``')}`"
        for fact in facts:
            if fact[0] == 0:
                kind = {"VIEW": "VIEW", "SEQUENCE": "SEQUENCE"}.get(str(fact[1]), "TABLE")
                self.run(f"DROP {kind} IF EXISTS {quoted}")
            elif fact[0] == 3:
                self.run(f"DROP {fact[1]} IF EXISTS {quoted}")
