"""Writes docs/types.md from the table of type facts, so that the page cannot lag behind it."""

from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from catchment.model.chunk import chunk_key
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.wire.cells import charsets
from catchment.wire.cells.types import arrow_type


class Entry(msgspec.Struct, frozen=True):
    """One line of the page: how the type is written at the source, column types of it, the rule for odd values."""

    source: str
    types: tuple[ColumnType, ...]
    rule: str


_NUMBER: Final = "ZEROFILL and display widths change nothing"
_DATE: Final = "zero dates, and dates that no calendar has (`2023-02-30`, `2023-00-10`), are NULL"


def _whole(name: str, kind: Kind) -> tuple[Entry, Entry]:
    unsigned = (
        "all values exact" if kind is not Kind.BIGINT else "all values exact, up to 18446744073709551615"
    )
    return (
        Entry(name, (ColumnType(kind),), f"all values exact; {_NUMBER}"),
        Entry(f"{name} UNSIGNED", (ColumnType(kind, unsigned=True),), unsigned),
    )


ENTRIES: Final = (
    *_whole("TINYINT, BOOL", Kind.TINYINT),
    *_whole("SMALLINT", Kind.SMALLINT),
    *_whole("MEDIUMINT", Kind.MEDIUMINT),
    *_whole("INT", Kind.INT),
    *_whole("BIGINT", Kind.BIGINT),
    Entry(
        "DECIMAL(p,s) up to 38 digits",
        (ColumnType(Kind.DECIMAL, length=38, scale=10),),
        "exact, with the precision and scale of the column",
    ),
    Entry(
        "DECIMAL(p,s) of 39 to 65 digits",
        (ColumnType(Kind.DECIMAL, length=65, scale=30),),
        "the text that the server gives, all digits after the point, without zeros before the number: Delta has no "
        "wider decimal than 38 digits",
    ),
    Entry(
        "FLOAT, FLOAT(m,d)", (ColumnType(Kind.FLOAT),), "the same 32 bits; -0 is stored as 0 by the server"
    ),
    Entry("DOUBLE, DOUBLE(m,d), REAL", (ColumnType(Kind.DOUBLE),), "the same 64 bits"),
    Entry("BIT(1) to BIT(63)", (ColumnType(Kind.BIT, length=63),), "the number that the bits are"),
    Entry("BIT(64)", (ColumnType(Kind.BIT, length=64),), "the number that the bits are"),
    Entry("YEAR", (ColumnType(Kind.YEAR),), "`0000` is 0"),
    Entry("DATE", (ColumnType(Kind.DATE),), _DATE),
    Entry(
        "TIME(f)",
        (ColumnType(Kind.TIME, scale=6),),
        "signed microseconds, from -838:59:59.999999 to 838:59:59.999999",
    ),
    Entry("DATETIME(f)", (ColumnType(Kind.DATETIME, scale=6),), f"without a time zone; {_DATE}"),
    Entry(
        "TIMESTAMP(f)",
        (ColumnType(Kind.TIMESTAMP, scale=6),),
        "in UTC, whatever the zone of a session; `0000-00-00 00:00:00` is NULL",
    ),
    Entry(
        "CHAR, VARCHAR, TINYTEXT to LONGTEXT, JSON of MariaDB",
        (ColumnType(Kind.TEXT, charset="utf8mb4"),),
        "UTF-8, converted as the server converts. CHAR comes without spaces at its end, VARCHAR and TEXT with them. "
        "A code without a character is `?` (U+FFFD in big5 and tis620), as the server has it. Bytes that are no text "
        "of the column's character set make the table stale, see below",
    ),
    Entry("BINARY(n)", (ColumnType(Kind.BINARY, length=16),), "n bytes, zero bytes at the end too"),
    Entry(
        "VARBINARY, TINYBLOB to LONGBLOB",
        (ColumnType(Kind.BLOB),),
        "the same bytes; nothing is cut off or padded",
    ),
    Entry(
        "VECTOR",
        (ColumnType(Kind.BLOB),),
        "the server's bytes: one 32-bit float, lowest byte first, for each dimension; the servers take finite numbers "
        "only (MySQL 9, MariaDB 11.7 and later)",
    ),
    Entry(
        "ENUM",
        (ColumnType(Kind.ENUM, charset="utf8mb4", labels=("a",)),),
        "the label in UTF-8; the invalid value 0 is the empty text",
    ),
    Entry(
        "SET",
        (ColumnType(Kind.SET, charset="utf8mb4", labels=("a",)),),
        "the labels in UTF-8, in the order of the definition, with commas between them",
    ),
    Entry("JSON of MySQL", (ColumnType(Kind.JSON),), "the text that the server gives for it, byte by byte"),
    Entry(
        "UUID",
        (ColumnType(Kind.UUID),),
        "the text that the server gives: 32 digits in lower case, four hyphens",
    ),
    Entry("INET4", (ColumnType(Kind.INET4),), "the text that the server gives: `10.0.0.1`"),
    Entry(
        "INET6",
        (ColumnType(Kind.INET6),),
        "the text that the server gives: the first of the longest runs of zeros is `::`, IPv4 as in `::ffff:1.2.3.4`",
    ),
    Entry(
        "GEOMETRY, POINT, LINESTRING, POLYGON, MULTI..., GEOMETRYCOLLECTION",
        (ColumnType(Kind.GEOMETRY),),
        "four bytes of SRID, lowest first, then WKB",
    ),
)


class Names(msgspec.Struct, frozen=True):
    """What readers of a plain table call a type."""

    delta: str
    duckdb: str
    spark: str


_NAMES: Final = {
    pa.int8(): Names("byte", "TINYINT", "tinyint"),
    pa.int16(): Names("short", "SMALLINT", "smallint"),
    pa.int32(): Names("integer", "INTEGER", "int"),
    pa.int64(): Names("long", "BIGINT", "bigint"),
    pa.float32(): Names("float", "FLOAT", "float"),
    pa.float64(): Names("double", "DOUBLE", "double"),
    pa.date32(): Names("date", "DATE", "date"),
    pa.timestamp("us"): Names("timestamp_ntz", "TIMESTAMP", "timestamp_ntz"),
    pa.timestamp("us", tz="UTC"): Names("timestamp", "TIMESTAMP WITH TIME ZONE", "timestamp"),
    pa.string(): Names("string", "VARCHAR", "string"),
    pa.binary(): Names("binary", "BLOB", "binary"),
}
_HEAD = """# Types

A value that a chunk reads by SELECT, the value that the log carries, and the value read back from the lake
are equal, bit by bit. This page says what each type of MariaDB and MySQL becomes. NULL is NULL; every
column of a lake table may be NULL.

Delta, DuckDB and Spark show a plain table with these types; Arrow is what `catchment.read`, pandas and polars get.

| source | Delta | DuckDB | Spark | Arrow | rule | in a key |
| --- | --- | --- | --- | --- | --- | --- |
"""
_FOOT = """
## Columns of all types

- Generated columns, virtual ones too, and invisible columns are carried like others; so is the primary key that
  MySQL makes (`sql_generate_invisible_primary_key`). The hidden columns of an index over an expression are not
  carried; a column with a name of 32 hexadecimal digits is refused on MySQL 8.0, which names them so.
- MariaDB 11.8.9 leaves generated columns out of UPDATE and DELETE events, whatever `binlog_row_image` is (10.11
  and earlier ones of 11.8 log them). There a table with generated columns is refused: drop them, or exclude the table.
- `COMPRESSED` columns of MariaDB hold what the same column without `COMPRESSED` holds.
- The log of MariaDB shows UUID, INET4 and INET6 as BINARY; the catalog tells what they are, and of a column
  that is added the statement does.
- **Bytes that are no text of the column's character set**, in a value or in a label of an ENUM or SET, are not left
  out. In the log they make their table [stale](ddl.md): it is read as of its last exact epoch and copied again.
  Where the copy meets them, the chunk is refused until the row is corrected on the server, or the table is excluded.
  Other tables go on. In what describes a table (comments, defaults, names of constraints) such bytes are U+FFFD.
- Refused by name: temporal columns in the format of servers before 5.6 and 10.1 (`ALTER TABLE ... FORCE`
  rewrites them).

## Times and zero dates

Delta has no type for a time of day, and a TIME of MariaDB and MySQL is none: it reaches from -838 to 838 hours. So
the lake has its microseconds, which add up, compare and sort as the source does. To show a column `t`:

| | as a duration | as a time of day, where it is one |
| --- | --- | --- |
| DuckDB | `to_microseconds(t)` | `TIME '00:00' + to_microseconds(t)` |
| Spark, in UTC | `make_dt_interval(0, 0, 0, t / 1000000)` | `date_format(timestamp_micros(t), 'HH:mm:ss.SSSSSS')` |
| polars | `pl.col("t").cast(pl.Duration("us"))` | `(pl.col("t") * 1000).cast(pl.Time)` |

A zero date (`0000-00-00`), and one that no calendar has (`2026-00-00`, `2026-02-30`), is NULL: no reader has such a
date. So the lake does not tell it from NULL, and `verify` takes both for equal. What is `WHERE d = '0000-00-00'` at
the source is among `WHERE d IS NULL` in the lake.

## Keys

- *by value*: chunks and the log are compared by us, as bytes that order like the server's index. Rows
  beyond the copied keys wait for their chunk.
- *by the server*: only the server knows the order (collations, labels, floats). Changes of the log are
  applied always, chunks are merged one row per key, and the server is asked which keys lie in a chunk.
- The key is the primary key, else the first of the unique keys whose columns are all whole and NOT NULL. A
  prefix in a primary key (`PRIMARY KEY (name(10))`) counts as the whole column. Parts that descend are read
  as well, but the server sorts each chunk.
- A zero date, or one that no calendar has, is NULL in the lake, which no key may be: `0000-00-00` and
  `2023-02-30`, two rows of the source, would be one row there. Where the copy meets one in a key, the table's
  rows are not copied until that row is corrected. One that is written later makes the table
  [stale](ddl.md#a-table-that-is-copied-anew): readers see it as of the epoch before, and it is copied again as soon
  as no such row is left. All other tables go on. `doctor` names keys with dates on servers that accept zero dates.
- An ENUM with an empty label is refused in a key: the label and the invalid value 0, two keys of the source, are
  the same text. Without such a label the value 0 is a key like others. A spatial column is refused in a key.
- Values that differ in the collation of the column only by case, accents or spaces at the end are one key
  at the source and stay one row in the lake. An update from one to the other is a delete and an insert.
"""
_SETS = """
MySQL and MariaDB give every code of these sets the same character (gb18030 is MySQL's alone). Halves of pairs of
UTF-16, which ucs2 and utf32 take as characters, and the bytes 8EA0 in ujis and eucjpms of MySQL are no text.
"""
_WRITTEN = "\n(This page is written by `python -m catchment.sink.delta.types_reference`.)\n"


def names(kind: pa.DataType) -> Names:
    """What readers call an Arrow type."""
    if pa.types.is_decimal(kind):
        arguments = f"({kind.precision},{kind.scale})"
        return Names(f"decimal{arguments}", f"DECIMAL{arguments}", f"decimal{arguments}")
    return _NAMES[kind]


def key_rule(kind: ColumnType) -> str:
    """How keys of a type are compared."""
    if kind.kind in (Kind.GEOMETRY, Kind.JSON):
        return "no"
    column = Column("k", kind)
    return "by value" if chunk_key(Table(TableId("s", "t"), (column,), ("k",))).ordered else "by the server"


def reference() -> str:
    """The page as Markdown."""
    lines = []
    for entry in ENTRIES:
        kind = entry.types[0]
        arrow = arrow_type(kind)
        known, shown = names(arrow), str(arrow)
        if kind.kind is Kind.DECIMAL and pa.types.is_decimal(arrow):
            known, shown = Names("decimal(p,s)", "DECIMAL(p,s)", "decimal(p,s)"), "decimal128(p, s)"
        types = " | ".join(f"`{name}`" for name in (known.delta, known.duckdb, known.spark, shown))
        lines.append(f"| {entry.source} | {types} | {entry.rule} | {key_rule(kind)} |")
    forms = {
        "UTF-8 already": charsets.UTF8,
        "of one byte": charsets.CODECS,
        "of one or more bytes": charsets.PAIRS,
        "of UTF-16 and UTF-32": charsets.WIDE,
    }
    sets = "\n## Character sets\n\n"
    sets += "".join(f"- {form}: {', '.join(sorted(names))}\n" for form, names in forms.items())
    sets += "- bytes: binary\n"
    return _HEAD + "\n".join(lines) + "\n" + _FOOT + sets + _SETS + _WRITTEN


if __name__ == "__main__":
    Path("docs/types.md").write_text(reference(), encoding="utf-8")
