"""The list of definitions that hold every value of another one: what is next to it is not in it."""

import pytest

from catchment.model.table import ColumnType
from catchment.schema.widening import holds_length, holds_type
from catchment.wire.cells.types import from_catalog

WIDER = [
    ("tinyint", "smallint"), ("int", "int"), ("int unsigned", "bigint"), ("int unsigned", "bigint unsigned"),
    ("decimal(5,2)", "decimal(7,3)"), ("decimal(5,2)", "decimal(38,35)"), ("decimal(5,2) unsigned", "decimal(5,2)"),
    ("decimal(40,2)", "decimal(40,2)"), ("time", "time(6)"), ("datetime(3)", "datetime(3)"), ("bit(3)", "bit(3)"),
    ("enum('a','b')", "enum('a','b','c')"), ("set('a')", "set('a','b')"), ("varbinary(3)", "longblob"),
    ("timestamp(3)", "timestamp(3)"), ("binary(3)", "binary(3)"), ("year", "year"), ("json", "json"),
]  # fmt: skip
OTHERS = [
    ("bigint", "int"), ("int", "int unsigned"), ("int", "bigint unsigned"), ("bigint unsigned", "bigint"),
    ("int unsigned", "int"), ("decimal(5,2)", "decimal(5,1)"), ("decimal(5,2)", "decimal(9,1)"),
    ("decimal(5,2)", "decimal(5,3)"), ("decimal(5,2)", "decimal(5,2) unsigned"), ("decimal(5,2)", "decimal(40,2)"),
    ("decimal(40,2)", "decimal(38,2)"), ("time(6)", "time"), ("datetime(3)", "datetime"), ("bit(3)", "bit(4)"),
    ("timestamp", "timestamp(3)"), ("datetime", "timestamp"), ("date", "datetime"), ("binary(3)", "binary(4)"),
    ("enum('a','b')", "enum('b','a')"), ("enum('a','b')", "enum('b','a','c')"), ("enum('a','b')", "enum('a')"),
    ("set('a','b')", "set('a','c','b')"), ("enum('a')", "set('a')"), ("enum('a')", "varchar(9)"), ("float", "double"),
    ("float", "float unsigned"), ("int", "decimal(20,0)"), ("bit(3)", "int"), ("year", "int"), ("json", "longtext"),
]  # fmt: skip
LONGER = [
    ("varchar(5)", "varchar(5)"), ("varchar(5)", "varchar(6)"), ("char(5)", "char(6)"),
    ("varbinary(5)", "varbinary(9)"),
    ("tinytext", "text"), ("text", "longtext"), ("blob", "mediumblob"), ("varchar(63)", "tinytext"),
    ("varchar(16383)", "text"), ("varbinary(255)", "tinyblob"), ("varbinary(65535)", "blob"),
]  # fmt: skip
SHORTER = [
    ("varchar(6)", "varchar(5)"), ("char(5)", "varchar(9)"), ("varchar(5)", "char(9)"), ("text", "tinytext"),
    ("varchar(64)", "tinytext"), ("varchar(16384)", "text"), ("varbinary(256)", "tinyblob"), ("text", "longblob"),
    ("varchar(5)", "longblob"), ("varbinary(5)", "longtext"), ("char(5)", "longtext"), ("text", "varchar(65000)"),
    ("", "longtext"), ("", "varchar(65000)"), ("varchar(5) /*M!100301 COMPRESSED*/", "varchar(9)"),
    ("longtext", "varchar(9) /*M!100301 COMPRESSED*/"),
]  # fmt: skip


def kind(declared: str, charset: str = "utf8mb4") -> ColumnType:
    return from_catalog(declared.partition("(")[0].partition(" ")[0], declared, charset)


def test_a_type_that_holds_another() -> None:
    assert [(old, new) for old, new in [*WIDER, *OTHERS] if holds_type(kind(new), kind(old))] == WIDER


@pytest.mark.parametrize("declared", ["text", "enum('a')", "set('a')"])
def test_character_sets(declared: str) -> None:
    holds = [("utf8mb3", "utf8mb4"), ("latin1", "latin1")]
    others = [("utf8mb4", "utf8mb3"), ("ascii", "utf8mb4"), ("latin1", "utf8mb4"), ("utf8mb3", "latin1")]
    found = [of for of in [*holds, *others] if holds_type(kind(declared, of[1]), kind(declared, of[0]))]
    assert found == holds


def test_a_length_that_holds_another() -> None:
    assert [(old, new) for old, new in [*LONGER, *SHORTER] if holds_length(new, old)] == LONGER
