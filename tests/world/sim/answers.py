"""What the simulator's servers answer to the statements that Catchment sends."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.world.sim import binlog
from tests.world.sim.server import SCHEMA, START_SECONDS, Server, Table

_BOUND = re.compile(r"`id` (<=|>) (\?|%s)")
_FROM = re.compile(r"FROM `shop`\.`(\w+)`")


def table_of(server: Server, sql: str) -> Table:
    """The table that a SELECT names."""
    found = _FROM.search(sql)
    assert found is not None, sql
    return server.tables[found[1]]


def range_of(server: Server, sql: str, values: Sequence[int]) -> list[tuple[int | None, ...]]:
    """The visible rows between the bounds that a statement has, by key."""
    rows = table_of(server, sql).visible
    bounds = list(zip(_BOUND.findall(sql), values, strict=False))
    return [
        rows[key]
        for key in sorted(rows)
        if all(key <= value if operator == "<=" else key > value for (operator, _), value in bounds)
    ]


def _ordered(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    keys = [row[0] for row in range_of(server, sql, args)]
    if " DESC" in sql:
        keys.reverse()
    offset = re.search(r"OFFSET (\d+)", sql)
    return [(key,) for key in keys[int(offset[1]) if offset else 0 :][:1]]


def _snapshot(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    number, offset = server.snapshot
    return [("binlog_snapshot_file", server.file_name(number)), ("binlog_snapshot_position", str(offset))]


def _recover(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(1, len(xid), 0, xid) for xid in server.prepared]


def _status(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    value = server.resets if args[0] == "Com_reset" else int(server._now() - server.started)
    return [(args[0], str(value))]


def _clock(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(f"{START_SECONDS + server._now() + server.ahead:.6f}",)]


def _tables(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(SCHEMA, name, "BASE TABLE", "InnoDB", len(t.visible)) for name, t in server.tables.items()]


def _described(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (table, "utf8mb4_bin", "") for table in sorted(server.tables) if table in args[1:] or not args[1:]
    ]


def _catalog(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    table = server.tables[args[1]]
    return [(name, "bigint", "bigint(20)", None, "NO" if name == "id" else "YES") for name in table.columns]


def _schema(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (table, *column, None, "")
        for table in sorted(server.tables)
        if table in args[1:] or not args[1:]
        for column in _catalog(server, sql, (SCHEMA, table))
    ]


def _primary(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(table, "id") for table in sorted(server.tables)]


def _files(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [(file.name, len(file.data)) for file in server.files]


def _events(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    """SHOW BINLOG EVENTS: what kind stands there, and where each ends."""
    file = next(file for file in server.files if file.name == args[0])
    kinds = {binlog.GTID: "Gtid", binlog.QUERY: "Query"}
    found = []
    for at in [start for start in file.starts if start >= args[1]][:2]:
        size = int.from_bytes(file.data[at + 9 : at + 13], "little")
        found.append((file.name, at, kinds.get(file.data[at + 4], "other"), server.server_id, at + size, ""))
    return found


def _index(server: Server, sql: str, args: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [("t", 0, "PRIMARY", 1, "id", "A", 0, None, None, "", "BTREE", "", "")]


Answer = Callable[[Server, str, Sequence[Any]], list[tuple[Any, ...]]]
ANSWERS: tuple[tuple[re.Pattern[str], Answer], ...] = tuple(
    (re.compile(pattern), answer)
    for pattern, answer in (
        ("^SHOW STATUS LIKE 'binlog_snapshot", _snapshot),
        ("^(START TRANSACTION|ROLLBACK|SET )", lambda server, sql, args: []),
        ("^SELECT @source_binlog_checksum", lambda server, sql, args: [("CRC32",)]),
        ("^XA RECOVER", _recover),
        ("^SHOW GLOBAL STATUS LIKE", _status),
        (r"^SELECT UNIX_TIMESTAMP\(\)", lambda server, sql, args: [(server.seconds(),)]),
        (r"^SELECT UNIX_TIMESTAMP\(SYSDATE\(6\)\)", _clock),
        ("^SHOW BINARY LOGS", _files),
        ("^SHOW BINLOG EVENTS", _events),
        ("^SHOW INDEX FROM", _index),
        ("^SHOW CREATE TABLE", lambda server, sql, args: []),
        (
            "LIKE 'binlog_row_metadata'",
            lambda server, sql, args: [("binlog_row_metadata", "FULL")],
        ),
        ("^SELECT @@GLOBAL.gtid_strict_mode", lambda server, sql, args: [(int(server.strict),)]),
        ("^SHOW GLOBAL VARIABLES WHERE", lambda server, sql, args: []),
        (
            "SELECT TABLE_ROWS, AVG_ROW_LENGTH",
            lambda server, sql, args: [(len(server.tables[args[1]].visible), 20)],
        ),
        ("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE", _tables),
        ("SELECT TABLE_NAME, TABLE_COLLATION", _described),
        ("SELECT TABLE_NAME, (TABLE_COMMENT|COLUMN_NAME, COLUMN_COMMENT)", lambda server, sql, args: []),
        ("SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE", _catalog),
        ("SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE", _schema),
        ("SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS", _primary),
        ("^\\s*SELECT COLUMN_NAME, COLLATION_NAME", lambda server, sql, args: []),
        ("^SELECT `id` FROM", _ordered),
    )
)
