"""A table of odd rows on a real server, which judges what a filter gives of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pymysql

from catchment.model.errors import ConfigError, Unsupported
from catchment.model.table import Kind, Table, TableId
from catchment.serve.rules.rule import Rule
from catchment.serve.rules.selection import Selection, compiled
from tests.layers.wire.answers import Session, columns_of, run, select

OUT_OF_RANGE, REFUSED = "out of range", "refused"
_SYNTAX = 1064
# Illegal mixes of collations, and texts that the character set of the result does not have.
_FAULTS = {1690: OUT_OF_RANGE, **dict.fromkeys((1267, 1270, 1271, 3854), REFUSED)}
ROWS = 60
_SESSION = "SET time_zone = '+00:00', div_precision_increment = 4"
_NO_PAD = (
    "SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE COLLATION_NAME IN "
    "('utf8mb4_nopad_bin', 'utf8mb4_0900_bin')"
)

Literal = Callable[[random.Random], str]


def _one_of(*values: str) -> Literal:
    return lambda chance: chance.choice(values)


def _integer(low: int, high: int) -> Literal:
    return lambda chance: str(chance.choice([low, high, 0, chance.randint(low, high), chance.randint(1, 9)]))


def _decimal(digits: int, scale: int) -> Literal:
    def literal(chance: random.Random) -> str:
        value = chance.randrange(10 ** chance.randint(0, digits))
        return f"{chance.choice('-+')}{value // 10**scale}.{value % 10**scale:0{scale}}"

    return literal


_TEXTS = (
    "''", "'a'", "'A'", "'b'", "'a '", "' a'", "'a  b'", "'ab'", "'aB'", "'a_b%'", "'100%'", "'7'", "'zz'",
    "CONCAT('a', CHAR(9))", "CONCAT('a  ', CHAR(9), 'x')", "CONCAT('a', CHAR(10), 'b')", "CONCAT('a', CHAR(0))",
    "'a|b'", "'[a].*(b)'", "'a.b'", "'^$'",
)  # fmt: skip
_WIDE = (*_TEXTS, "'é'", "'É'", "'ß'", "'😀'", "'日本語'", "'aé'", "'\ufffd'", "'ﬀ'")
_MOMENTS = (
    "'1970-01-01 00:00:00'", "'2026-01-31 23:59:59.999999'", "'1969-12-31 23:59:59.5'", "'1000-01-01 00:00:00'",
    "'9999-12-31 23:59:59'", "'2024-02-29 12:30:45.123456'", "'2026-01-31 00:00:00'",
)  # fmt: skip

COLUMNS: dict[str, tuple[str, Literal]] = {
    "ti": ("TINYINT", _integer(-128, 127)),
    "su": ("SMALLINT UNSIGNED", _integer(0, 65535)),
    "i": ("INT", _integer(-(2**31), 2**31 - 1)),
    "iu": ("INT UNSIGNED", _integer(0, 2**32 - 1)),
    "b": ("BIGINT", _integer(-(2**63), 2**63 - 1)),
    "ub": ("BIGINT UNSIGNED", _integer(0, 2**64 - 1)),
    "bt": ("BIT(17)", _integer(0, 2**17 - 1)),
    "d": ("DECIMAL(9,3)", _decimal(9, 3)),
    "dl": ("DECIMAL(22,2)", _decimal(22, 2)),
    "di": ("DECIMAL(12,0)", _decimal(12, 0)),
    "f": ("FLOAT", _one_of("0.1", "-1.5", "1e10", "3", "0", "16777216")),
    "g": ("DOUBLE", _one_of("0.1", "-1.5", "1e300", "3", "0", "-0.0", "9007199254740993", "1e-300", "2.5")),
    "t": ("VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", _one_of(*_WIDE)),
    "tb": ("VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", _one_of(*_WIDE)),
    "tn": ("VARCHAR(40) CHARACTER SET utf8mb4 COLLATE {no_pad}", _one_of(*_WIDE)),
    "a": ("VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin", _one_of(*_TEXTS)),
    "l": ("VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin", _one_of(*_TEXTS, "'é'", "'ß'", "'Ÿ'")),
    "e": ("ENUM('new','paid','Paid ok') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", _one_of("'new'", "'paid'", "3")),
    "s": ("SET('x','y','z') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", _one_of("''", "'x'", "'x,z'", "'y'")),
    "bl": ("VARBINARY(20)", _one_of("''", "'a'", "'a '", "X'ff00'", "X'c3a9'", "'ab'", "'A'")),
    "bi": ("BINARY(3)", _one_of("''", "'a'", "X'ff00ff'", "'abc'")),
    "dy": ("DATE", _one_of("'1970-01-01'", "'2026-01-31'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'")),
    "dt": ("DATETIME(6)", _one_of(*_MOMENTS)),
    "ds": ("DATETIME", _one_of("'1969-12-31 23:59:59'", "'2026-01-31 00:00:00'", "'2024-02-29 12:30:45'")),
    "ts": ("TIMESTAMP(3) NULL", _one_of("'1970-01-01 00:00:01'", "'2026-01-31 23:59:59.999'", "'2024-02-29 12:30:45'")),
    "tm": ("TIME(2)", _one_of("'-838:59:59'", "'00:00:00.25'", "'23:59:59'", "'100:00:00.5'")),
    "y": ("YEAR", _one_of("1901", "2026", "2155", "0")),
}  # fmt: skip


@dataclass(frozen=True)
class Judge:
    """The table with its rows as Catchment reads them, and a session that is asked."""

    session: Session
    table: Table
    rows: pa.Table
    collations: dict[str, str]

    def selection(self, sql: str) -> Selection:
        """A filter compiled; raises ConfigError."""
        return compiled(
            Rule(str(self.table.id), sql.replace("FROM t", f"FROM {self.table.id}")),
            self.table,
            self.collations,
        )

    def taken(self, condition: str) -> list[int]:
        """The ids of the rows that a condition takes, by the filter."""
        rows = self.selection(f"SELECT id FROM t WHERE {condition}").rows(self.rows)
        return sorted(rows["id"].to_pylist())

    def told(self, condition: str) -> list[int]:
        """The same by the server."""
        return [
            row[0]
            for row in run(self.session, f"SELECT id FROM {self.table.id} WHERE {condition} ORDER BY id")
        ]

    def given(self, expression: str) -> list[Any] | str:
        """What an expression is for each row, by the filter; `OUT_OF_RANGE` where its type does not hold it."""
        selection = self.selection(f"SELECT {expression} AS q FROM t")
        kind = selection.table.columns[0].type.kind
        try:
            values = selection.rows(self.rows)["q"].to_pylist()
        except Unsupported:
            return OUT_OF_RANGE
        return [timedelta(microseconds=v) if kind is Kind.TIME and v is not None else v for v in values]

    def asked(self, expression: str) -> list[Any] | str:
        """The same by the server; `REFUSED` where it finds no collation by which texts could be compared."""
        try:
            rows = run(self.session, f"SELECT {expression} AS q FROM {self.table.id} ORDER BY id")
        except UnicodeDecodeError as fault:
            raise AssertionError(expression) from fault
        except pymysql.err.MySQLError as fault:
            if fault.args[0] == _SYNTAX and "AS DOUBLE)" in expression and self._before_double():
                return REFUSED
            if fault.args[0] not in _FAULTS:
                raise AssertionError(f"{expression}: {fault}") from fault
            return _FAULTS[fault.args[0]]
        return [row[0] for row in rows]

    def _before_double(self) -> bool:
        """Whether it is a MySQL that has no CAST AS DOUBLE yet."""
        ((version,),) = run(self.session, "SELECT VERSION()")
        return str(version).startswith("8.0.15")

    def judged(self, expression: str) -> bool:
        """Whether an expression is taken. Then it has for each row what it has on the server, which may refuse it."""
        try:
            given = self.given(expression)
        except ConfigError:
            return False
        asked = self.asked(expression)
        if asked == REFUSED:
            return True
        if OUT_OF_RANGE in (asked, given):
            assert asked == given, expression
            return True
        assert [_plain(a, a) for a in given] == [_plain(b, a) for a, b in zip(given, asked, strict=True)], (
            expression,
            given,
            asked,
        )
        return True


def _plain(value: Any, like: Any) -> Any:
    """A value as the server's text has it, with all its digits. What is a double here is one: the server may show it
    without a point."""
    if isinstance(like, int) and isinstance(value, bytes):  # BIT
        return str(int.from_bytes(value, "big"))
    if isinstance(like, float):
        return float(value)
    if value is None or isinstance(value, bytes):
        return value
    return str(value.replace(tzinfo=None) if isinstance(value, datetime) else value)


def judge_on(schema: str, session: Session) -> Judge:
    """The table filled: a row of NULLs, and others at random from a fixed seed."""
    chance = random.Random(11)
    ((no_pad,), *_) = (*run(session, _NO_PAD), ("utf8mb4_bin",))
    definitions = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items()).format(no_pad=no_pad)
    rows = [_row(chance, number) for number in range(ROWS)]
    run(
        session,
        _SESSION,
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {definitions})",
        f"INSERT INTO {schema}.t VALUES {', '.join(rows)}",
    )
    columns = columns_of(session, schema, "t")
    names = ", ".join(column.name for column in columns)
    read = select(session, f"SELECT {names} FROM {schema}.t ORDER BY id", columns)[0].take_batch()
    sql = (
        "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{0}' AND "
        "COLLATION_NAME IS NOT NULL"
    )
    collations = dict(run(session, sql.format(schema)))
    table = Table(TableId(schema, "t"), columns, ("id",))
    return Judge(session, table, pa.Table.from_batches([read]), collations)


def _row(chance: random.Random, number: int) -> str:
    values = [literal(chance) for _, literal in COLUMNS.values()]
    share = 1.0 if number == 0 else 0.12
    return f"({', '.join([str(number), *('NULL' if chance.random() < share else v for v in values)])})"
