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


@pytest.mark.parametrize(("old", "new"), WIDER)
def test_a_type_that_holds_another(old: str, new: str) -> None:
    assert holds_type(kind(new), kind(old))


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_a_type_that_may_not(old: str, new: str) -> None:
    assert not holds_type(kind(new), kind(old))


@pytest.mark.parametrize("declared", ["text", "enum('a')", "set('a')"])
@pytest.mark.parametrize(("old", "new", "holds"), [
    ("utf8mb3", "utf8mb4", True), ("latin1", "latin1", True), ("utf8mb4", "utf8mb3", False),
    ("ascii", "utf8mb4", False), ("latin1", "utf8mb4", False), ("utf8mb3", "latin1", False),
])  # fmt: skip
def test_character_sets(declared: str, old: str, new: str, holds: bool) -> None:
    assert holds_type(kind(declared, new), kind(declared, old)) is holds


@pytest.mark.parametrize(("old", "new"), LONGER)
def test_a_length_that_holds_another(old: str, new: str) -> None:
    assert holds_length(new, old)


@pytest.mark.parametrize(("old", "new"), SHORTER)
def test_a_length_that_may_not(old: str, new: str) -> None:
    assert not holds_length(new, old)
