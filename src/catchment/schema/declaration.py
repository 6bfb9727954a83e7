"""A column's type in the words of an ALTER TABLE, as the catalog declares it afterwards.

Pure. Only for columns that `alter.py` has let through.
"""

import re
from collections.abc import Sequence
from typing import Final

from catchment.model.definition import DefinedColumn
from catchment.schema.attributes import Attributes, attributes
from catchment.schema.cursor import Cursor
from catchment.schema.statement import AmbiguousText, Word
from catchment.wire.cells.charsets import NO_CHARACTER

# Names of types in statements -> in the catalog (MariaDB manual: Data Types; MySQL manual: 13.9).
_SYNONYMS: Final = {
    "INTEGER": "int", "INT4": "int", "INT1": "tinyint", "INT2": "smallint", "INT3": "mediumint",
    "MIDDLEINT": "mediumint", "INT8": "bigint", "FLOAT4": "float", "FLOAT8": "double", "REAL": "double",
    "DEC": "decimal", "NUMERIC": "decimal", "FIXED": "decimal", "CHARACTER": "char", "VARCHARACTER": "varchar",
    "NCHAR": "char", "NVARCHAR": "varchar", "GEOMCOLLECTION": "geometrycollection",
}  # fmt: skip
_PLAIN: Final = (
    *(
        "tinyint",
        "smallint",
        "mediumint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "bit",
        "year",
        "date",
    ),
    *("time", "datetime", "timestamp", "char", "varchar", "binary", "varbinary", "enum", "set", "json"),
    *("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"),
    *("uuid", "inet4", "inet6", "vector", "geometry", "point", "linestring", "polygon", "multipoint"),
    *("multilinestring", "multipolygon", "geometrycollection"),
)
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_OF_BYTES: Final = {
    "char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob",
    "mediumtext": "mediumblob", "longtext": "longblob",
}  # fmt: skip
_SIZED: Final = ("text", "blob")
_LENGTH: Final = re.compile(r"[0-9]{1,10}")
_DEFAULT_LENGTH: Final = {"char": "1", "binary": "1", "bit": "1", "decimal": "10,0"}
_DOUBLE_FROM_BITS: Final = 25


def read_column(words: Sequence[Word], charset: str, *, mysql: bool) -> DefinedColumn:
    """The column that `name type attributes` declares in a table whose default character set is `charset`.

    Raises AmbiguousText for what is not known to be read right.
    """
    name, words = words[0].text, words[1:]
    kind, national, words = _kind(words)
    arguments, words = _arguments(words)
    said = attributes(words)
    nullable = said.null is not False
    if kind == "json" and not mysql:
        return DefinedColumn(name, "longtext", "utf8mb4", nullable)
    if kind == "float" and len(arguments) == 1 and int(arguments[0].text) >= _DOUBLE_FROM_BITS:
        kind = "double"
    if kind in _SIZED and arguments:
        raise AmbiguousText(f"the type that {kind.upper()} of a length becomes depends on the character set")
    own = ""
    if kind in _TEXTS:
        own = "utf8mb3" if national else _charset(said, charset)
        if own == "binary" and kind in _OF_BYTES:
            kind, own = _OF_BYTES[kind], ""
    return DefinedColumn(name, _declared(kind, arguments, unsigned=said.unsigned), own, nullable)


def attributes_of(words: Sequence[Word]) -> Sequence[Word]:
    """What stands behind the type in `type attributes`. Raises AmbiguousText where that is not known."""
    cursor = Cursor(_kind(words)[2])
    if cursor.sees("("):
        cursor.parenthesis()
    return cursor.rest


def has_size(words: Sequence[Word]) -> bool:
    """Whether `type attributes` gives the type a size, as `FLOAT(5,1)` does. Raises AmbiguousText where it is not known
    which type it is."""
    return Cursor(_kind(words)[2]).sees("(")


def _kind(words: Sequence[Word]) -> tuple[str, bool, Sequence[Word]]:
    """The type's name in the catalog, whether it is a NATIONAL one, and the words behind it."""
    keywords = [w.keyword for w in words[:3]]
    national = keywords[:1] in (["NATIONAL"], ["NCHAR"], ["NVARCHAR"])
    if keywords[:1] == ["NATIONAL"]:
        words, keywords = words[1:], keywords[1:]
    if not keywords or not keywords[0]:
        raise AmbiguousText("a column has no type")
    if keywords[0] in ("BOOL", "BOOLEAN"):
        return "tinyint", False, words[1:]
    if keywords[0] == "LONG":
        return _long(Cursor(words[1:]))
    kind = _SYNONYMS.get(keywords[0], keywords[0].lower())
    if kind not in _PLAIN:
        raise AmbiguousText(f"type {keywords[0]} is not known")
    used = 1
    varying = ["VARYING"], ["VARCHAR"], ["VARCHARACTER"]
    if kind == "char" and keywords[1:2] in varying[: 3 if keywords[0] == "NCHAR" else 1]:
        kind, used = "varchar", 2
    if kind == "double" and keywords[1:2] == ["PRECISION"]:
        used = 2
    return kind, national, words[used:]


def _long(cursor: Cursor) -> tuple[str, bool, Sequence[Word]]:
    """The type whose name begins with LONG: that alone is a text, too."""
    if cursor.took("VARBINARY"):
        return "mediumblob", False, cursor.rest
    if not cursor.took_one("VARCHAR", "VARCHARACTER") and not cursor.took("CHAR", "VARYING"):
        cursor.took("CHARACTER", "VARYING")
    return "mediumtext", False, cursor.rest


def _arguments(words: Sequence[Word]) -> tuple[tuple[Word, ...], Sequence[Word]]:
    """Length, digits or labels in parentheses, and the words behind them."""
    if not words or words[0].keyword != "(":
        return (), words
    end = next((i for i, w in enumerate(words) if w.keyword == ")"), None)
    if end is None:
        raise AmbiguousText("a parenthesis does not end")
    inner = words[1:end]
    given = inner[::2]
    if any(w.keyword != "," for w in inner[1::2]) or not given:
        raise AmbiguousText("the arguments of a type are not a list")
    for word in given:
        unread = "\\" in word.text or NO_CHARACTER in word.text
        if unread or (not _LENGTH.fullmatch(word.text) if not word.quote else word.quote == "`"):
            raise AmbiguousText(f"{word.text!r} is not a length or a label")
    return tuple(given), words[end + 1 :]


def _declared(kind: str, arguments: tuple[Word, ...], *, unsigned: bool) -> str:
    """COLUMN_TYPE of the catalog, as far as it tells how values are stored."""
    if kind in ("enum", "set"):
        if not arguments or any(not w.quote for w in arguments):
            raise AmbiguousText(f"an {kind.upper()} has no labels")
        labels = [w.text.rstrip(" ").replace("'", "''") for w in arguments]
        return f"{kind}(" + ",".join(f"'{label}'" for label in labels) + ")"
    if any(w.quote for w in arguments):
        raise AmbiguousText(f"{kind.upper()} has labels")
    text = ",".join(str(int(w.text)) for w in arguments)
    if kind == "decimal" and len(arguments) == 1:
        text = "10,0" if text == "0" else f"{text},0"
    if kind in ("year", "double", "float"):
        text = ""
    text = text or _DEFAULT_LENGTH.get(kind, "")
    return kind + (f"({text})" if text else "") + (" unsigned" if unsigned else "")


def _charset(said: Attributes, default: str) -> str:
    """The character set that the column gets; `binary` for none. BINARY, and a COLLATE of the default one, keep it."""
    name = said.charset or _of_collation(said.collation, default)
    if name == "default":
        raise AmbiguousText("the character set is the default one")
    return "utf8mb3" if name == "utf8" else name


def _of_collation(name: str, default: str) -> str:
    """`latin1_bin` is of latin1; `uca1400_ai_ci` is of whatever the column has (MariaDB 10.10)."""
    if name in ("", "default") or name.startswith("uca1400_"):
        return default
    return name.partition("_")[0]
