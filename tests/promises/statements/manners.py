"""The manners in which a statement of one kind may reach the server: alone, prepared, in a routine, ..."""

import re
from collections.abc import Callable

from tests.promises.statements.corpus import number_of

Manner = Callable[[str], tuple[str, ...]]

_DML = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.I)


def _prepared(one: str) -> tuple[str, ...]:
    return f"PREPARE rig FROM '{_quoted(one)}'", "EXECUTE rig", "DEALLOCATE PREPARE rig"


def _in_routine(one: str) -> tuple[str, ...]:
    return "DROP PROCEDURE IF EXISTS wrapped", f"CREATE PROCEDURE wrapped() {one}", "CALL wrapped()"


_EVERYWHERE: tuple[Manner, ...] = (
    lambda one: (one,),
    lambda one: (one,),
    lambda one: (one,),
    lambda one: ("START TRANSACTION", one, "SAVEPOINT s", one, "COMMIT"),
    lambda one: ("START TRANSACTION", "SAVEPOINT s", one, "ROLLBACK TO s", one, "COMMIT"),
    lambda one: ("/* a comment */ " + one,),
    lambda one: ("-- a comment\n" + one,),
    lambda one: ("/*!40000 " + one.replace("/*", "").replace("*/", "") + " */",),
    _prepared,
    _in_routine,
)
_MARIADB: tuple[Manner, ...] = (
    lambda one: ("SET STATEMENT max_sort_length=64 FOR " + one,),
    lambda one: ("BEGIN NOT ATOMIC " + one.rstrip("; ") + "; END",),
    lambda one: ("EXECUTE IMMEDIATE '" + _quoted(one) + "'",),
)
_MARIADB_DML: tuple[Manner, ...] = (
    lambda one: ("ANALYZE " + one,),
    lambda one: ("ANALYZE FORMAT=JSON " + one,),
    lambda one: ("/**/ ANALYZE /**/ " + one,),
    lambda one: ("SET STATEMENT max_sort_length=64 FOR ANALYZE " + one,),
)


def manner_of(one: str, *, mysql: bool) -> Manner:
    """A manner for a statement, the same one always for the same text."""
    known = _EVERYWHERE if mysql else _EVERYWHERE + _MARIADB
    if not mysql and _DML.match(one):
        known += _MARIADB_DML
    return known[number_of("manner" + one, len(known))]


def _quoted(one: str) -> str:
    return one.replace("\\", "\\\\").replace("'", "''")
