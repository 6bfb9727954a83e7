"""What a shard's catalog says of views, triggers, routines and foreign keys: all by which rows change unnamed."""

import re
from collections.abc import Collection, Iterable, Iterator

from catchment.model.errors import SourceError
from catchment.model.stored import AllStored, Stored
from catchment.model.table import TableId
from catchment.source.bounds import source_name
from catchment.source.session import ACCESS, Session, answer_behind

# Without SELECT objects of other schemas do not show, without SHOW VIEW what views are made of, without TRIGGER any
# trigger. Names of tables and views, and bodies of routines, show with SELECT on all (seen on MariaDB 10.11 and 11.8,
# MySQL 8.0 and 9.7).
_NEEDED = ("SELECT", "SHOW VIEW", "TRIGGER")
_GRANT = re.compile(r"GRANT (.+?) ON \*\.\* TO ", re.IGNORECASE)
# MySQL with partial_revokes takes a privilege on all back for one schema.
_REVOKE = re.compile(r"REVOKE (.+?) ON `(?:[^`]|``)+`\.\* FROM ", re.IGNORECASE)

_VIEWS = "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS"
_TRIGGERS = """
SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_SCHEMA, TRIGGER_NAME, ACTION_STATEMENT, SQL_MODE
FROM information_schema.TRIGGERS
"""
_TABLES = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES"
# No table here has a trigger: servers refuse to make one (error 1465), and to move a table here that has one (1435).
_WITHOUT_TRIGGERS = "mysql"
_ROUTINES = """
SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_BODY, ROUTINE_DEFINITION, SQL_MODE
FROM information_schema.ROUTINES WHERE ROUTINE_TYPE <> 'PACKAGE'
"""
_KEYS = """
SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')
"""
# MariaDB shows rules of foreign keys only to users that may do more than SELECT; that there is one, to all.
_KEYS_OF_ANY_RULE = """
SELECT DISTINCT REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME
FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
"""
# As numbers of sql_mode; they decide how a body is read.
_MODES = {"ANSI_QUOTES": 1 << 2, "NO_BACKSLASH_ESCAPES": 1 << 20}
# MySQL shows bodies there without the backslashes of their strings: 'it\'s' as 'it's'.
_MANGLED = re.compile(r"['\"\\]")
_VIEW_TEXT, _OTHER_TEXT = 1, 2
# No such schema, table, routine or trigger, no view, a view of what is not there.
_NOT_SHOWN = {*ACCESS, 1049, 1146, 1305, 1360, 1347, 1356}


def read_objects(session: Session) -> AllStored:
    """All that is stored on a shard, as it is now; raises SourceError."""
    granted = _granted(session)
    lacking = tuple(name for name in _NEEDED if name not in granted)
    stored = [] if "SHOW VIEW" in lacking else [*_views(session)]
    stored += [] if "TRIGGER" in lacking else _triggers(session)
    stored += [*_routines(session), *_foreign_keys(session, _KEYS_OF_ANY_RULE if lacking else _KEYS)]
    return AllStored(tuple(stored), lacking, _hidden(session, lacking))


def _hidden(session: Session, lacking: Collection[str]) -> tuple[TableId, ...] | None:
    """Tables that may have triggers which do not show, and views that may be made of anything."""
    if "SELECT" in lacking:
        return None
    tables = session.rows(_TABLES) if lacking else ()
    return tuple(TableId(schema, name) for schema, name, kind in tables if _hides(schema, kind, lacking))


def _hides(schema: str, kind: str, lacking: Collection[str]) -> bool:
    if kind == "VIEW":
        return "SHOW VIEW" in lacking
    return "TRIGGER" in lacking and (schema, kind) != (_WITHOUT_TRIGGERS, "BASE TABLE")


def _granted(session: Session) -> frozenset[str]:
    """Those of the needed privileges that the user has on all schemas."""
    return needed_of(str(line) for (line,) in session.rows("SHOW GRANTS"))


def needed_of(lines: Iterable[str]) -> frozenset[str]:
    """The same of what SHOW GRANTS says. A line that begins with REVOKE and is not known takes all."""
    granted: set[str] = set()
    revoked: set[str] = set()
    for line in lines:
        if match := _GRANT.match(line):
            granted |= _named(match[1])
        elif line.upper().startswith("REVOKE"):
            found = _REVOKE.match(line)
            revoked |= _named(found[1]) if found else set(_NEEDED)
    return frozenset(granted - revoked)


def _named(privileges: str) -> set[str]:
    names = privileges.upper().split(", ")
    return set(_NEEDED) if "ALL PRIVILEGES" in names else {*_NEEDED} & {*names}


def _views(session: Session) -> Iterator[Stored]:
    for schema, name, definition in session.rows(_VIEWS):
        view = TableId(schema, name)
        text = definition or _shown(session, f"VIEW {source_name(view)}", _VIEW_TEXT)
        yield Stored(f"view {view}", schema, name, text)


def _triggers(session: Session) -> Iterator[Stored]:
    for schema, table, own_schema, name, body, mode in session.rows(_TRIGGERS):
        trigger = TableId(own_schema, name)
        text = _body(session, f"TRIGGER {source_name(trigger)}", body)
        yield Stored(f"trigger {trigger}", schema, table, text, _mode(mode))


def _routines(session: Session) -> Iterator[Stored]:
    for kind, schema, name, language, body, mode in session.rows(_ROUTINES):
        routine = TableId(schema, name)
        text = None
        if language == "SQL":  # of others the catalog does not say what SQL they run
            text = _body(session, f"{kind} {source_name(routine)}", body)
        yield Stored(f"{str(kind).lower()} {routine}", schema, name, text, _mode(mode))


def _foreign_keys(session: Session, asked: str) -> Iterator[Stored]:
    for schema, table, child_schema, child, name in session.rows(asked):
        text = source_name(TableId(child_schema, child))
        yield Stored(f"foreign key {name} of {child_schema}.{child}", schema, table, text)


def _body(session: Session, what: str, body: str | None) -> str | None:
    if body is None or not _MANGLED.search(body):
        return body
    return _shown(session, what, _OTHER_TEXT)


def _shown(session: Session, what: str, column: int) -> str | None:
    """The statement that makes an object; None where the server does not show it, or has it no more."""
    try:
        row = session.row(f"SHOW CREATE {what}")
    except SourceError as refused:
        if answer_behind(refused)[0] in _NOT_SHOWN:
            return None
        raise
    return row[column] if row else None


def _mode(names: str) -> int:
    return sum(number for name, number in _MODES.items() if name in names.split(","))
