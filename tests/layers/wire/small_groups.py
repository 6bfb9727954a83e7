"""Groups of every kind, and tables of several columns: small seeds for the fuzzer."""

from typing import Final

from tests.layers.wire.answers import Session, run

_PLAIN: Final = "CREATE TABLE {t} (id int PRIMARY KEY, v varchar(9))"
# What is done to a table {t} whose rows come first in the group, by the group's name.
GROUPS: Final = {
    "group with savepoints": [
        "BEGIN",
        "INSERT INTO {t} VALUES (1, 'x'), (2, 'y')",
        "SAVEPOINT `S t`",
        "UPDATE {t} SET v = 'z'",
        "SAVEPOINT u",
        "CREATE TEMPORARY TABLE {t}_tmp (a int)",
        "DELETE FROM {t}",
        "ROLLBACK TO u",
        "ROLLBACK TO `S t`",
        "RELEASE SAVEPOINT `S t`",
        "COMMIT",
        "DROP TEMPORARY TABLE {t}_tmp",
    ],
    "group of an engine without transactions": [
        "ALTER TABLE {t} ENGINE=MyISAM",
        "INSERT INTO {t} VALUES (1, 'x')",
    ],
    "group rolled back": [
        "BEGIN",
        "INSERT INTO {t} VALUES (1, 'x')",
        "SAVEPOINT u",
        "INSERT INTO {t} VALUES (2, 'y')",
        "CREATE TEMPORARY TABLE {t}_tmp (a int)",
        "ROLLBACK TO u",
        "UPDATE {t} SET id = id + 100",
        "ROLLBACK",
        "DROP TEMPORARY TABLE {t}_tmp",
    ],
    "group of two tables": [
        "CREATE TABLE {t}_other (a int PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO {t} VALUES (1, 'x')",
        "INSERT INTO {t}_other VALUES (1)",
        "INSERT INTO {t} VALUES (2, 'y')",
        "UPDATE {t}, {t}_other SET v = 'z', a = 3 WHERE id = a",
        "DELETE FROM {t}",
        "COMMIT",
    ],
    "group prepared": [
        "XA START 'g'",
        "INSERT INTO {t} VALUES (1, 'x')",
        "XA END 'g'",
        "XA PREPARE 'g'",
        "XA ROLLBACK 'g'",
    ],
}
WITHOUT_PLACES: Final = "group without places"  # as MariaDB writes it from 11.4 on
_WITHOUT_PLACES: Final = [
    "BEGIN",
    "INSERT INTO {t} VALUES (1, 'x'), (2, 'y')",
    "UPDATE {t} SET v = 'z'",
    "DELETE FROM {t}",
    "COMMIT",
]
COLUMNS: Final = {
    "columns of several character sets": (
        "id int PRIMARY KEY, c varchar(9) character set latin1, d varchar(9), e text, f char(3) character set ascii, "
        "g enum('é') character set latin1, h set('x','ü'), k enum('a','b')",
        "(1, 'é', 'é', 'x', 'abc', 'é', 'x,ü', 'a')",
    ),
    "key of a prefix": ("c varchar(20), d int, PRIMARY KEY (c(5), d)", "('abcdefgh', 1)"),
}
_NAMED: Final = [(f"g{i}", name) for i, name in enumerate((*GROUPS, WITHOUT_PLACES))] + [
    (f"x{i}", name) for i, name in enumerate(COLUMNS)
]
GROUP_NAMES: Final = dict(_NAMED)
_TABLE_OF: Final = {name: table for table, name in _NAMED}


def _write(session: Session, schema: str, name: str, statements: list[str]) -> None:
    run(session, *(sql.format(t=f"{schema}.{_TABLE_OF[name]}") for sql in (_PLAIN, *statements)))


def write_groups(session: Session, schema: str) -> None:
    for name, statements in GROUPS.items():
        _write(session, schema, name, statements)


def write_group_without_places(session: Session, schema: str) -> None:
    _write(session, schema, WITHOUT_PLACES, _WITHOUT_PLACES)


def write_columns(session: Session, schema: str) -> None:
    """A row of each table, changed."""
    for name, (columns, row) in COLUMNS.items():
        table = f"{schema}.{_TABLE_OF[name]}"
        run(session, f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES {row}")
        run(session, f"UPDATE {table} SET c = 'other'")
