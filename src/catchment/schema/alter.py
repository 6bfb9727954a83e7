"""What the actions of one ALTER TABLE do to columns and rows, by the grammars of MySQL 8.0 to 9.7 and MariaDB 10.5 to
11.8.

A list of what is known: an action that is not on it may change any row. Pure.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from catchment.model.errors import Unsupported
from catchment.schema.attributes import attributes
from catchment.schema.conditions import UNKNOWN, Conditions
from catchment.schema.constraints import CASCADE, PRIMARY, read_constraint, sees_constraint
from catchment.schema.cursor import Cursor, Untold
from catchment.schema.declaration import attributes_of
from catchment.schema.filling import UNLOGGED, Filled, filled
from catchment.schema.options import read_option
from catchment.schema.partitions import without_partitioning
from catchment.schema.redeclared import REDEFINED, Redeclared, declared_as, definition_of, redeclared
from catchment.schema.renamed import Renamed, are_clear, renamed
from catchment.schema.statement import NOT_UNDERSTOOD, AmbiguousText, Word, parted

# The log shows them as BINARY, so that the statement has to be known to say what they are.
_AS_BINARY: Final = ("UUID", "INET6", "INET4")
# Reserved words: a bare one of these is no column.
_INDEXES: Final = (
    "INDEX",
    "KEY",
    "UNIQUE",
    "FULLTEXT",
    "SPATIAL",
    "PRIMARY",
    "FOREIGN",
    "CHECK",
    "CONSTRAINT",
)
# Whole actions that leave columns and rows alone.
_PLAIN: Final = (
    ("FORCE",),
    ("DISABLE", "KEYS"),
    ("ENABLE", "KEYS"),
    ("SECONDARY_LOAD",),
    ("SECONDARY_UNLOAD",),
)


@dataclass(frozen=True, slots=True)
class Altered:
    """Columns added and dropped, or the `reason` why rows may have changed (`by_adding` a column). `filled`: those of
    the added ones that have a value in every row. `modified`: columns that got another definition, under the names that
    they had. `renamed`: those that got another name. `declared`: those of added ones, as far as they are told.
    `in_doubt`: it holds for columns that are there or not, as it finds them."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    filled: tuple[Filled, ...] = ()
    modified: tuple[Redeclared, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    declared: tuple[Redeclared, ...] = ()
    reason: str = ""
    by_adding: bool = False
    in_doubt: bool = False


def plain(actions: Sequence[Word]) -> Sequence[Word]:
    """The actions with `ADD (a INT, b INT)` as `ADD a INT, ADD b INT`, and without a change of partitions that keeps
    all rows. Raises AmbiguousText."""
    found: list[Word] = []
    for action in parted(without_partitioning(actions)):
        cursor = Cursor(action)
        several = cursor.took("ADD") and (cursor.sees("(") or (cursor.took("COLUMN") and cursor.sees("(")))
        parts = [[Word("ADD"), *part] for part in parted(cursor.parenthesis())] if several else [action]
        if several and not cursor.ended:
            raise Untold("words stand behind columns in parentheses")
        found += [word for part in parts for word in (Word(","), *part)]
    return found[1:]


def read_alter(
    actions: Sequence[Word], columns: Collection[str] = (), conditions: Conditions = UNKNOWN
) -> Altered:
    """Read the `actions` of an ALTER TABLE, as `plain` gives them.

    `columns`: those that the table has, as far as known: of these ADD COLUMN IF NOT EXISTS adds none.
    """
    if not actions:
        return Altered()
    parts = list(parted(actions))
    known = {column.lower() for column in columns}
    gone = {name.lower() for step in map(_dropped, parts) for name in step.dropped}
    gone |= {one.old.lower() for part in parts if (one := renamed(part)) is not None}
    steps = [_step(part, known - gone if known else None, conditions) for part in parts]
    for step in steps:
        if step.reason:
            return step
    found = Altered(
        added=tuple(name for step in steps for name in step.added),
        dropped=tuple(name for step in steps for name in step.dropped),
        filled=tuple(one for step in steps for one in step.filled),
        modified=tuple(one for step in steps for one in step.modified),
        renamed=tuple(one for step in steps for one in step.renamed),
        declared=tuple(one for step in steps for one in step.declared),
    )
    return replace(found, reason=_contradiction(found, steps, parts))


def _contradiction(found: Altered, steps: Sequence[Altered], parts: Sequence[Sequence[Word]]) -> str:
    """Why it is not known what several actions come to that name one column; empty where it is."""
    added = sorted(map(str.lower, found.added))
    twice = {n.lower() for n in found.dropped} & set(added) or {n for n in added if added.count(n) > 1}
    if twice and any(step.in_doubt for step in steps):
        return f"column {min(twice)} was dropped or added, and added with IF [NOT] EXISTS, in one ALTER"
    stay = (one.column for step in steps if not step.renamed for one in step.modified)
    clear = not found.renamed or are_clear(found.renamed, parts, found.added, found.dropped, stay)
    return "" if clear else REDEFINED


def _step(  # noqa: PLR0911
    action: Sequence[Word], columns: Collection[str] | None, conditions: Conditions
) -> Altered:
    """What one action does. `columns`: those that the table has without those that the statement takes away, in lower
    case; None where they are not known."""
    cursor = Cursor(action)
    try:
        match cursor.took_one("ADD", "DROP", "ALTER", "RENAME", "MODIFY", "CHANGE"):
            case "ADD":
                return _ended(_add(cursor, columns, conditions), cursor)
            case "DROP":
                return _dropped(action)
            case "ALTER":
                return _ended(_alter_part(cursor), cursor)
            case "RENAME" if not cursor.sees("COLUMN"):
                return _ended(_rename(cursor), cursor)
            case "RENAME" | "MODIFY" | "CHANGE":
                return _redefined(action, conditions)
        if any(cursor.took(*words) for words in _PLAIN):
            return _ended(Altered(), cursor)
        while not (reason := read_option(cursor)) and not cursor.ended:
            pass  # servers take several options without a comma
        return Altered(reason=reason)
    except AmbiguousText:
        return Altered(reason=NOT_UNDERSTOOD)


def _ended(step: Altered, cursor: Cursor) -> Altered:
    """The step, of which nothing may be left to read, so that nothing said is overlooked."""
    return step if cursor.ended or step.reason else Altered(reason=NOT_UNDERSTOOD)


def _redefined(action: Sequence[Word], conditions: Conditions) -> Altered:
    """What gives a column another definition, or another name."""
    modified, names = redeclared(action, strict=conditions.strict), renamed(action)
    if modified is None and (names is None or definition_of(action)):
        return Altered(reason=REDEFINED)
    return Altered(
        modified=() if modified is None else (modified,), renamed=() if names is None else (names,)
    )


def _add(cursor: Cursor, columns: Collection[str] | None, conditions: Conditions) -> Altered:
    if not cursor.took("COLUMN") and sees_constraint(cursor):
        return Altered(reason=read_constraint(cursor))
    exists = cursor.took("IF", "NOT", "EXISTS")
    words = cursor.rest
    name = cursor.name()
    while not cursor.ended:
        cursor.word()
    if exists and columns is not None and name.lower() in columns:
        return Altered()
    step = _new_column(name, words, conditions)
    # One that is there may keep its values.
    may_be_there = exists if columns is None else name.lower() in columns
    if step.filled and may_be_there:
        return Altered((name,), reason=UNLOGGED, by_adding=True)
    return replace(step, in_doubt=exists)


def _new_column(  # noqa: PLR0911
    name: str, words: Sequence[Word], conditions: Conditions
) -> Altered:
    """The column of the declaration `name type attributes`."""
    kind = words[1].keyword if len(words) > 1 else ""
    if kind in _AS_BINARY and not conditions.usual:
        return Altered(
            reason=f"a column of type {kind} was added, which the log shows as BINARY, in a sql_mode that may give "
            "the name another meaning"
        )
    unlogged = Altered((name,), reason=UNLOGGED, by_adding=True)
    if kind == "SERIAL":
        return unlogged
    try:
        said = attributes(attributes_of(words[1:]))
    except AmbiguousText:
        return (
            unlogged if any(word.keyword == "DEFAULT" for word in words) else Altered(reason=NOT_UNDERSTOOD)
        )
    if said.primary or said.cascades:
        return Altered(reason=PRIMARY if said.primary else CASCADE)
    if said.computes:
        return unlogged
    declared = _declared(words)
    # A TIMESTAMP without the word NULL is NOT NULL if explicit_defaults_for_timestamp is off, with DEFAULT
    # NULL or without. (Seen: existing rows got the time of the ALTER.)
    if said.leaves_null and (kind != "TIMESTAMP" or said.null):
        return Altered((name,), declared=declared)
    told = filled(words, conditions)
    if told is None:
        return unlogged
    return Altered((name,), filled=(told,) if told.value is not None else (), declared=declared)


def _declared(words: Sequence[Word]) -> tuple[Redeclared, ...]:
    """The column that is added, as far as its declaration is known."""
    try:
        return (declared_as(words),)
    except (AmbiguousText, Unsupported):
        return ()


def _dropped(action: Sequence[Word]) -> Altered:
    """What a DROP takes; nothing of another action."""
    cursor = Cursor(action)
    if not cursor.took("DROP"):
        return Altered()
    try:
        return _ended(_drop(cursor), cursor)
    except AmbiguousText:
        return Altered(reason=NOT_UNDERSTOOD)


def _drop(cursor: Cursor) -> Altered:
    if cursor.took("PRIMARY"):
        return Altered(reason=PRIMARY)
    what = "" if cursor.took("COLUMN") else cursor.took_one("INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK")
    if what == "FOREIGN":
        cursor.must("KEY")
    exists = cursor.took("IF", "EXISTS")
    name = cursor.name()
    if what:
        return Altered(reason=PRIMARY if name.upper() == "PRIMARY" else "")
    cursor.took_one("RESTRICT", "CASCADE")  # servers take no notice of either
    return Altered(dropped=(name,), in_doubt=exists)


def _alter_part(cursor: Cursor) -> Altered:
    """ALTER of a column's default and visibility, of an index, and of a constraint."""
    if cursor.took_one("INDEX", "KEY"):
        cursor.took("IF", "EXISTS")
        cursor.name()
        if not cursor.took_one("VISIBLE", "INVISIBLE", "IGNORED"):
            cursor.must("NOT", "IGNORED")
        return Altered()
    if cursor.took_one("CHECK", "CONSTRAINT"):
        cursor.name()
        cursor.took("NOT")
        cursor.must("ENFORCED")
        return Altered()
    cursor.took("COLUMN")
    cursor.took("IF", "EXISTS")
    cursor.name()
    if cursor.took("DROP", "DEFAULT") or cursor.took("SET", "VISIBLE") or cursor.took("SET", "INVISIBLE"):
        return Altered()
    cursor.must("SET", "DEFAULT")
    while not cursor.ended:  # any expression: it is for rows to come
        cursor.word()
    return Altered()


def _rename(cursor: Cursor) -> Altered:
    """RENAME of an index, or of the table."""
    if not cursor.took_one("INDEX", "KEY"):
        return Altered(reason="it was renamed")
    cursor.took("IF", "EXISTS")
    cursor.name()
    cursor.must("TO")
    cursor.name()
    return Altered()
