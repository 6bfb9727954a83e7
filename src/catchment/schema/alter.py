"""What the actions of one ALTER TABLE do to columns and rows, read with sqlglot."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from catchment.model.errors import Unsupported
from catchment.schema.filling import UNLOGGED, Filled, filled
from catchment.schema.partitions import keeps_rows
from catchment.schema.redeclared import REDEFINED, Redeclared, declared_as, definition_of, redeclared
from catchment.schema.renamed import Renamed, are_clear, renamed
from catchment.schema.statement import NOT_UNDERSTOOD, AmbiguousText, Word, parted

_PRIMARY = "its primary key was changed"
_CASCADE = "it was given a foreign key that changes rows without row events (CASCADE, SET NULL, SET DEFAULT)"

_HARMLESS_OPTIONS = (
    exp.AlgorithmProperty,
    exp.LockProperty,
    exp.SchemaCommentProperty,
    exp.AutoIncrementProperty,
    exp.RowFormatProperty,
)
_HARMLESS_CONSTRAINTS = (exp.IndexColumnConstraint, exp.UniqueColumnConstraint, exp.CheckColumnConstraint)
_HARMLESS_ATTRIBUTES = (
    exp.CommentColumnConstraint,
    exp.CharacterSetColumnConstraint,
    exp.CollateColumnConstraint,
    exp.UniqueColumnConstraint,
    exp.CheckColumnConstraint,
    exp.InvisibleColumnConstraint,
    exp.ZeroFillColumnConstraint,
    exp.BinaryColumnConstraint,
)
_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)

_UUID = "a UUID column was added, which the log shows as BINARY(16) until the table is copied again"
_PLAIN_ACTIONS: dict[type[exp.Expression], str] = {
    exp.RenameIndex: "",
    exp.ForceProperty: "",
    exp.AlterRename: "it was renamed",
    exp.RenameColumn: REDEFINED,
    exp.ModifyColumn: REDEFINED,
    exp.DropPrimaryKey: _PRIMARY,
}

# What sqlglot does not know: visibility of indexes and columns, checks, hints to the optimizer.
_PLAIN_WORDS = re.compile(
    r"ALTER (?:INDEX|KEY)(?: IF EXISTS)? \S+ (?:VISIBLE|INVISIBLE|(?:NOT )?IGNORED)"
    r"|ALTER (?:COLUMN )?\S+ SET (?:VISIBLE|INVISIBLE)"
    r"|ALTER (?:CHECK|CONSTRAINT) \S+ (?:NOT )?ENFORCED"
    r"|(?:STATS_PERSISTENT|STATS_AUTO_RECALC|STATS_SAMPLE_PAGES|AVG_ROW_LENGTH|MAX_ROWS|MIN_ROWS)(?: =)? \w+"
)

# sqlglot warns of every statement that it does not know; here that is an answer.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Altered:
    """Columns added and dropped, or the `reason` why rows may have changed (`by_adding` a column). `filled`: those of
    the added ones that have a value in every row. `modified`: columns that got another definition, under the names that
    they had. `renamed`: those that got another name. `declared`: those of added ones, as far as they are told."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    filled: tuple[Filled, ...] = ()
    modified: tuple[Redeclared, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    declared: tuple[Redeclared, ...] = ()
    reason: str = ""
    by_adding: bool = False


def read_alter(
    name: Sequence[Word],
    actions: Sequence[Word],
    columns: Collection[str] = (),
    *,
    time: int = 0,
    strict: bool = False,
) -> Altered:
    """Read `ALTER TABLE name actions`; the modifiers that sqlglot does not know are gone already.

    `columns`: of those that the table has, as far as known, ADD COLUMN IF NOT EXISTS adds none. `time`: when it began,
    in seconds since 1970, 0 where that is not known. `strict`: the statement fails where a NULL or a label
    does not fit.
    """
    if [w.keyword for w in actions] in (["DISABLE", "KEYS"], ["ENABLE", "KEYS"]) or keeps_rows(actions):
        return Altered()
    parts = [action for action in parted(actions) if not _leaves_rows(action)]
    told = [_Told.of(action, strict=strict) for action in parts]
    others = [action for action, one in zip(parts, told, strict=True) if not one.is_known]
    modified = tuple(one.modified for one in told if one.modified is not None)
    names = tuple(one.renamed for one in told if one.renamed is not None and one.is_known)
    there = {column.lower() for column in columns} - {one.old.lower() for one in names}
    rest = _read(name, others, there, time) if others or not actions else Altered()
    if rest.reason:
        return rest
    stay = (one.modified.column for one in told if one.modified is not None and one.renamed is None)
    if names and not are_clear(names, parts, rest.added, rest.dropped, stay):
        return Altered(reason=REDEFINED)
    return replace(rest, modified=modified, renamed=names)


@dataclass(frozen=True, slots=True)
class _Told:
    """What one action says of a column that stays: its definition, and its name."""

    modified: Redeclared | None
    renamed: Renamed | None
    defines: bool

    @classmethod
    def of(cls, action: Sequence[Word], *, strict: bool) -> "_Told":
        defines = bool(definition_of(action))
        return cls(redeclared(action, strict=strict), renamed(action), defines)

    @property
    def is_known(self) -> bool:
        """Whether it says no more than that."""
        return self.modified is not None or (self.renamed is not None and not self.defines)


def _read(
    name: Sequence[Word], others: Sequence[Sequence[Word]], columns: Collection[str], time: int
) -> Altered:
    """The actions that sqlglot reads."""
    actions = [word for action in others for word in (Word(","), *action)][1:]
    text = " ".join(w.sql for w in (Word("ALTER"), Word("TABLE"), *name, *actions))
    try:
        (tree,) = sqlglot.parse(text, dialect="mysql")
    except (sqlglot.errors.SqlglotError, ValueError):
        return Altered(reason=NOT_UNDERSTOOD)
    if not isinstance(tree, exp.Alter) or not _only(tree, "this", "kind", "actions", "options"):
        return Altered(reason=NOT_UNDERSTOOD)
    told = tree.args.get("actions") or ()
    dropped = {t.name.lower() for a in told if isinstance(a, exp.Drop) for t in a.args.get("tables") or ()}
    there = {column.lower() for column in columns} - dropped
    steps = [Altered() if _adds_none(a, there) else _step(a) for a in told]
    steps = _with_values(steps, [action for action in others if not _names(action, there)], time)
    steps += [Altered(reason=_option(o)) for o in tree.args.get("options") or ()]
    return replace(_together(steps, tree), declared=tuple(_declared(others)))


def _declared(actions: Iterable[Sequence[Word]]) -> Iterator[Redeclared]:
    """The columns that are added, as far as their declarations are known."""
    for action in actions:
        if words := _declaration(action):
            with suppress(AmbiguousText, Unsupported):
                yield declared_as(words)


def _leaves_rows(action: Sequence[Word]) -> bool:
    """Whether an action that sqlglot does not know leaves rows alone."""
    text = " ".join(w.keyword or "name" for w in action)
    return _PLAIN_WORDS.fullmatch(text) is not None


def _together(steps: list[Altered], tree: exp.Alter) -> Altered:
    for step in steps:
        if step.reason:
            return step
    added = tuple(name for s in steps for name in s.added)
    dropped = tuple(name for s in steps for name in s.dropped)
    if not steps:
        return Altered(reason=NOT_UNDERSTOOD)
    twice = {n.lower() for n in added} & {n.lower() for n in dropped}
    if twice and any(a.args.get("exists") for a in tree.args["actions"]):
        return Altered(reason=f"column {min(twice)} was dropped and added with IF [NOT] EXISTS in one ALTER")
    return Altered(added, dropped, tuple(one for s in steps for one in s.filled))


def _with_values(steps: Sequence[Altered], actions: Sequence[Sequence[Word]], time: int) -> list[Altered]:
    """The steps, of which those that add a column with a value tell it, where it is certain."""
    if not any(step.by_adding for step in steps):
        return list(steps)
    declared = [words for action in actions if (words := _declaration(action))]
    found = []
    for step in steps:
        mine = [words for words in declared if step.by_adding and words[0].text == step.added[0]]
        told = filled(mine[0], time) if len(mine) == 1 else None
        if told is None:
            found.append(step)
        else:
            found.append(Altered(step.added, filled=(told,) if told.value is not None else ()))
    return found


def _names(action: Sequence[Word], columns: Collection[str]) -> bool:
    words = _declaration(action)
    return bool(words) and words[0].text.lower() in columns


def _declaration(action: Sequence[Word]) -> Sequence[Word]:
    """`name type attributes` of an action that adds a column, whatever is there."""
    begin = [word.keyword for word in action[:2]]
    at = 2 if begin == ["ADD", "COLUMN"] else 1
    adds = begin[:1] == ["ADD"] and len(action) > at + 1
    return action[at:] if adds and action[at].keyword not in ("IF", "(") else ()


def _adds_none(action: exp.Expression, there: Collection[str]) -> bool:
    return (
        isinstance(action, exp.ColumnDef) and bool(action.args.get("exists")) and action.name.lower() in there
    )


def _step(action: exp.Expression) -> Altered:
    match action:
        case exp.ColumnDef():
            reason = _new_column(action)
            return Altered(added=(action.name,), reason=reason, by_adding=reason not in ("", _UUID))
        case exp.Drop():
            return _drop(action)
        case exp.AddConstraint():
            return Altered(reason=_first(map(_constraint, action.expressions)))
        case exp.AlterColumn() if _only(action, "this", "default", "drop"):
            return Altered()  # the default of rows to come
    return Altered(reason=_PLAIN_ACTIONS.get(type(action), NOT_UNDERSTOOD))


def _drop(action: exp.Drop) -> Altered:
    if not _only(action, "tables", "kind", "exists", "restrict"):
        return Altered(reason=NOT_UNDERSTOOD)
    names = tuple(t.name for t in action.args["tables"])
    kind = action.args["kind"]
    if kind == "COLUMN":
        return Altered(dropped=names)
    if any(n.upper() == "PRIMARY" for n in names):
        return Altered(reason=_PRIMARY)
    known = kind in ("INDEX", "FOREIGN KEY", "CONSTRAINT", "CHECK")
    return Altered(reason="" if known else NOT_UNDERSTOOD)


def _constraint(node: exp.Expression) -> str:
    if isinstance(node, exp.Constraint):
        return _first(map(_constraint, node.expressions))
    if isinstance(node, exp.PrimaryKey):
        return _PRIMARY
    if isinstance(node, exp.ForeignKey):
        return _foreign_key(node)
    return "" if isinstance(node, _HARMLESS_CONSTRAINTS) else NOT_UNDERSTOOD


def _foreign_key(node: exp.Expression) -> str:
    """Only RESTRICT and NO ACTION leave the rows of the child to logged statements."""
    for part in node.walk():
        if isinstance(part, exp.ForeignKey | exp.Reference):
            said = [*(part.args.get("options") or ()), part.args.get("delete"), part.args.get("update")]
            if any(o and not str(o).upper().endswith(("RESTRICT", "NO ACTION")) for o in said):
                return _CASCADE
    return ""


def _new_column(column: exp.ColumnDef) -> str:
    kinds = [c.args.get("kind") for c in column.args.get("constraints") or ()]
    if column.kind is None or not _only(column, "this", "kind", "constraints", "position", "exists"):
        return NOT_UNDERSTOOD
    # A TIMESTAMP without the word NULL is NOT NULL if explicit_defaults_for_timestamp is off, with DEFAULT
    # NULL or without. (Seen: existing rows got the time of the ALTER.)
    if column.kind.this in _TIMESTAMPS and not any(map(_says_null, kinds)):
        return UNLOGGED
    if column.kind.this == exp.DType.UUID:
        return _UUID
    if column.kind.this == exp.DType.SERIAL:
        return UNLOGGED
    return _first(map(_attribute, kinds))


def _says_null(kind: exp.Expression | None) -> bool:
    return isinstance(kind, exp.NotNullColumnConstraint) and bool(kind.args.get("allow_null"))


def _is_null_default(kind: exp.Expression | None) -> bool:
    return isinstance(kind, exp.DefaultColumnConstraint) and isinstance(kind.this, exp.Null)


def _attribute(kind: exp.Expression | None) -> str:
    if isinstance(kind, exp.Reference):
        return _foreign_key(kind)
    if isinstance(kind, exp.PrimaryKeyColumnConstraint):
        return _PRIMARY
    harmless = _says_null(kind) or _is_null_default(kind) or isinstance(kind, _HARMLESS_ATTRIBUTES)
    return "" if harmless else UNLOGGED


def _option(option: exp.Expression) -> str:
    if isinstance(option, exp.EngineProperty):
        # to InnoDB: a rebuild with the same rows
        return "" if option.name.upper() == "INNODB" else "it was given another engine"
    return "" if isinstance(option, _HARMLESS_OPTIONS) else NOT_UNDERSTOOD


def _only(node: exp.Expression, *known: str) -> bool:
    """True when nothing but the `known` arguments is set, so that nothing said is overlooked."""
    return all(name in known or not value for name, value in node.args.items())


def _first(reasons: Iterable[str]) -> str:
    return next(filter(None, reasons), "")
