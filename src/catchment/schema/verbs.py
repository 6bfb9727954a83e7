"""What kind of statement a text of the log is, by its first words.

A list of what is known: a statement that is not on it may change any row.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from catchment.schema.statement import Word


class Act(Enum):
    """What a statement may do to rows."""

    LEAVES_ROWS = "leaves rows alone, whatever it names"
    DEFINES = "defines tables, databases or indexes: it acts on what it names"
    CHANGES_ROWS = "changes rows, of what it names and of what that leads to"
    NOT_KNOWN = "is not known"


# What CREATE, ALTER, DROP and RENAME act on without touching rows. Bodies run later; what they do is logged then.
_OBJECTS = frozenset(
    {"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "USER", "ROLE", "SERVER", "INSTANCE"}
    | {"TABLESPACE", "UNDO", "LOGFILE", "LIBRARY", "RESOURCE"}
)
_WITH_BODY = frozenset({"TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "LIBRARY"})
DATABASES = frozenset({"DATABASE", "SCHEMA"})
_TABLES = frozenset({"TABLE", "TABLES", "SEQUENCE", "INDEX"})
_ACTING = frozenset({"CREATE", "ALTER", "DROP", "RENAME"})

# What may stand between CREATE, ALTER or DROP and the kind of object. DEFINER, ALGORITHM and SQL SECURITY see below.
_BEFORE_OBJECTS = frozenset(
    {
        "OR",
        "REPLACE",
        "TEMPORARY",
        "AGGREGATE",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "VECTOR",
        "ONLINE",
        "OFFLINE",
    }
    | {"IGNORE", "SQL", "SECURITY", "INVOKER", "JSON", "RELATIONAL", "DUALITY"}
)

_CHANGING = frozenset(
    {"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "SELECT", "DO", "CALL", "TABLE", "VALUES", "("}
)
_EXPLAINING = frozenset({"ANALYZE", "EXPLAIN", "DESCRIBE", "DESC"})
# TRUNCATE and REPAIR may take rows from the table that they name.
_DEFINING = frozenset({"TRUNCATE", "REPAIR"})

# How statements begin that leave rows alone: transactions, and what servers log while all sessions write in ROW format.
# Of SET that is little: it may call a function. ANALYZE runs what it stands before, if that is no table.
_BEGINNINGS = frozenset(
    {("COMMIT",), ("ROLLBACK",), ("SAVEPOINT",), ("RELEASE", "SAVEPOINT"), ("START", "TRANSACTION"), ("XA",)}
    | {("GRANT",), ("REVOKE",), ("SET", "PASSWORD"), ("SET", "DEFAULT", "ROLE"), ("SET", "ROLE"), ("FLUSH",)}
    | {("CACHE", "INDEX"), ("LOAD", "INDEX", "INTO", "CACHE")}
    | {(verb, what) for verb in ("INSTALL", "UNINSTALL") for what in ("PLUGIN", "SONAME", "COMPONENT")}
    | {
        (verb, *without_log, tables)
        for verb in ("ANALYZE", "OPTIMIZE", "CHECK", "CHECKSUM")
        for without_log in ((), ("LOCAL",), ("NO_WRITE_TO_BINLOG",))
        for tables in ("TABLE", "TABLES")
    }
)
_LONGEST = max(map(len, _BEGINNINGS))
_WHOLE = frozenset({("BEGIN",), ("BEGIN", "WORK")})  # BEGIN NOT ATOMIC runs any statements


def object_of(words: Sequence[Word]) -> tuple[str, int]:
    """What CREATE, ALTER, DROP or RENAME acts on, empty if that is not known, and the place of the word after it."""
    place = 1
    while place < len(words):
        keyword = words[place].keyword
        if keyword in _OBJECTS | DATABASES | _TABLES:
            return keyword, place + 1
        if keyword == "DEFINER" and [w.keyword for w in words[place + 1 : place + 2]] == ["="]:
            place = _behind_account(words, place + 2)
        elif keyword == "ALGORITHM" and [w.keyword for w in words[place + 1 : place + 2]] == ["="]:
            place += 3
        elif keyword in _BEFORE_OBJECTS or (keyword == "DEFINER" and words[place - 1].keyword == "SECURITY"):
            place += 1
        elif keyword == "REFERENCE" and words[place - 1].keyword == "SPATIAL":
            return "RESOURCE", place + 1  # a spatial reference system
        else:
            break
    return "", 1


def _behind_account(words: Sequence[Word], place: int) -> int:
    """Behind `user`, `user@host`, `CURRENT_USER` or `CURRENT_USER()`; a bare host may hold dots."""
    keywords = [w.keyword for w in words]
    if keywords[place + 1 : place + 3] == ["(", ")"]:
        return place + 3
    place += 1
    while keywords[place : place + 1] in (["@"], ["."]):
        place += 2
    return place


def kind_of(words: Sequence[Word]) -> Act:
    """The kind of a statement."""
    beginning = tuple(word.keyword for word in words[:_LONGEST])
    head = beginning[0] if words else ""
    acts_on = object_of(words)[0] if head in _ACTING else ""
    if acts_on not in _WITH_BODY and Word(";") in words:
        return Act.NOT_KNOWN
    if (
        not words  # "# Dummy event replacing event type 160"
        or acts_on in _OBJECTS
        or any(beginning[:length] in _BEGINNINGS for length in range(1, _LONGEST + 1))
        or (len(words) == len(beginning) and beginning in _WHOLE)
    ):
        return Act.LEAVES_ROWS
    if acts_on or head in _DEFINING:
        return Act.DEFINES
    return Act.CHANGES_ROWS if head in _CHANGING | _EXPLAINING else Act.NOT_KNOWN


def query_of(words: Sequence[Word]) -> Sequence[Word]:
    """The query from which a CREATE TABLE takes its rows, which may call functions; empty for other statements."""
    kind, place = object_of(words)
    if words[0].keyword != "CREATE" or kind != "TABLE":
        return ()
    for start, (word, after) in enumerate(pairwise([*words[place:], Word("")]), place):
        values = word.keyword == "VALUES" and after.keyword not in ("LESS", "IN")
        if values or word.keyword in ("SELECT", "TABLE"):
            return words[start:]
    return ()
