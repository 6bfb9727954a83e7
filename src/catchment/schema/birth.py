"""Which CREATE TABLE makes a table without rows: what it holds later is in the log, from the statement on.

A list of known forms. A statement with SELECT, as a session logs it that logs statements, brings rows in no event.
"""

import logging
from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from catchment.schema.statement import Word, parted

_DEFINES = (
    exp.ColumnDef,
    exp.PrimaryKey,
    exp.ForeignKey,
    exp.IndexColumnConstraint,
    exp.UniqueColumnConstraint,
    exp.CheckColumnConstraint,
    exp.Constraint,
)
_OPTIONS = (
    exp.EngineProperty,
    exp.CharacterSetProperty,
    exp.CollateProperty,
    exp.SchemaCommentProperty,
    exp.RowFormatProperty,
    exp.AutoIncrementProperty,
)
# MySQL logs CREATE TABLE ... SELECT as a CREATE with these words and, in the same group, its rows (since 8.0.21).
_WITH_ROWS_BEHIND = ["START", "TRANSACTION"]

# What an ALTER TABLE may do to a table without a row and bring none. EXCHANGE PARTITION brings rows of elsewhere.
_BRINGS_NONE = frozenset(
    {
        "ADD",
        "DROP",
        "MODIFY",
        "CHANGE",
        "ALTER",
        "CONVERT",
        "DEFAULT",
        "CHARACTER",
        "CHARSET",
        "COLLATE",
        "COMMENT",
    }
    | {"AUTO_INCREMENT", "ROW_FORMAT", "ENGINE", "FORCE", "ALGORITHM", "LOCK"}
)
_NOT_OF_COLUMNS = frozenset({"PARTITION", "SYSTEM", "PERIOD", "TABLE"})
_RENAMES_A_PART = frozenset({"COLUMN", "INDEX", "KEY"})

# sqlglot warns of every statement that it does not know; here that is an answer.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def makes_empty(words: Sequence[Word]) -> bool:
    """Whether a CREATE TABLE makes a table that has no row behind the statement itself.

    With IF NOT EXISTS it may have been there, which MySQL logs, too.
    """
    if [word.keyword for word in words[-2:]] == _WITH_ROWS_BEHIND:
        words = words[:-2]
    try:
        (tree,) = sqlglot.parse(" ".join(word.sql for word in words), dialect="mysql")
    except (sqlglot.errors.SqlglotError, ValueError):
        return False
    if not isinstance(tree, exp.Create):
        return False
    known = all(
        name in ("this", "kind", "properties", "replace") or not told for name, told in tree.args.items()
    )
    properties = tree.args.get("properties")
    options = properties.expressions if properties is not None else []
    match tree.this:
        case exp.Schema(expressions=[exp.LikeProperty()]):
            return known and not options
        case exp.Schema(expressions=parts):
            return known and _are(parts, _DEFINES) and _are(options, _OPTIONS)
        case exp.Table():
            return known and len(options) == 1 and isinstance(options[0], exp.LikeProperty)
    return False


def leaves_empty(actions: Sequence[Word]) -> bool:
    """Whether the actions of an ALTER TABLE leave a table without a row that has none."""
    return bool(actions) and all(
        _brings_none([word.keyword for word in action[:2]]) for action in parted(actions)
    )


def _brings_none(keywords: Sequence[str]) -> bool:
    match keywords:
        case ["RENAME", what]:
            return what in _RENAMES_A_PART
        case [what, of]:
            return what in _BRINGS_NONE and of not in _NOT_OF_COLUMNS
        case [what]:
            return what == "FORCE"
    return False


def _are(parts: Sequence[exp.Expression], kinds: tuple[type[exp.Expression], ...]) -> bool:
    return bool(parts or kinds is _OPTIONS) and all(isinstance(part, kinds) for part in parts)
