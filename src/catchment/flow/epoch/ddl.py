"""What a DDL statement of the log does to the rows of the chosen tables.

An allow-list: a statement that names a chosen table is let through only when it is known to leave the rows
alone, or to add empty columns or drop some (DESIGN 4 and 5). Pure: looks at no server and no catalog.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from catchment.flow.epoch.statement import NOT_UNDERSTOOD, Unreadable, Word, readings
from catchment.model.errors import NEW_FEED
from catchment.model.table import TableId


@dataclass(frozen=True, slots=True)
class Harmless:
    """Rows and columns of the chosen tables stay as they are."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of `table` were dropped, then others added, which are NULL in every row.

    `actions`: the words of the ALTER TABLE behind the table's name; none when they may be read in two ways.
    """

    table: TableId
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    actions: tuple[Word, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """The lake cannot follow: `reason` says what happened to `table`, `way_out` what the user can do."""

    table: TableId
    reason: str
    way_out: str


Effect = Harmless | Columns | Stop
HARMLESS = Harmless()

# First words of statements that change rows, logged as text. SELECT, DO and CALL are when a stored
# function or a procedure in them does.
_DML = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "SELECT", "DO", "CALL", "("})

# The first word of a text whose strings cannot be told apart.
_HEAD = re.compile(
    r"(?:\s|/\*M?!\d*|/\*(?!M?!).*?\*/|--\s[^\n]*\n|\#[^\n]*\n|SET\s+STATEMENT\s.*?\sFOR\s)*(\w+|\()",
    re.I | re.S,
)

# First words of statements that leave the rows of tables alone whatever they name. OPTIMIZE rebuilds an
# InnoDB table with the same rows; REPAIR is not here, it may lose some.
_HARMLESS_HEADS = frozenset(
    {
        "ANALYZE",
        "OPTIMIZE",
        "CHECK",
        "CHECKSUM",
        "FLUSH",
        "GRANT",
        "REVOKE",
        "SET",
        "CACHE",
        "INSTALL",
        "UNINSTALL",
    }
    | {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"}
)

# What CREATE, ALTER, DROP and RENAME may act on. Bodies of routines run later; what they do is logged then.
_HARMLESS_OBJECTS = frozenset(
    {"VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT", "USER", "ROLE", "SERVER"}
)
_DATABASES = frozenset({"DATABASE", "SCHEMA"})
_TABLES = frozenset({"TABLE", "TABLES", "SEQUENCE"})
_OBJECTS = _HARMLESS_OBJECTS | _DATABASES | _TABLES | {"INDEX"}

# A dot after one of these begins a name without a schema, as in `DROP TABLE .t`.
_BEFORE_NAMES = frozenset({"TABLE", "TABLES", "EXISTS", "TO", "ON", "INTO", "LIKE", "REFERENCES", ",", "("})

# First words of statements that may give a table its name; others leave one alone that the shard does not have.
_NAMING = frozenset({"CREATE", "RENAME", "ALTER"})

_WITHOUT = (
    'add "!{table}" to `tables` and start once with `--leave {table}`: the feed goes on without it, and its lake table '
    "stays as it is"
)
AGAIN = f"start {NEW_FEED} to copy {{table}} again, or " + _WITHOUT
_REMOVE = _WITHOUT + f"; if the table is back, {NEW_FEED} copies it"
_ROW = "set binlog_format=ROW for every session, then " + AGAIN
_PLAIN = (
    AGAIN
    + "; next time add the column as NULL without a default and fill it with UPDATE, which needs no stop"
)


def is_dml(sql: str, *, sql_mode: int | None = None) -> bool:
    """True for a statement that changes rows and was logged as text (binlog_format is not ROW)."""
    try:
        return any(words and words[0].keyword in _DML for words in readings(sql, sql_mode=sql_mode))
    except Unreadable:
        head = _HEAD.match(sql)
        return bool(head and head[1].upper() in _DML)


def effect(
    sql: str,
    default_schema: str,
    chosen: Collection[TableId],
    *,
    here: Mapping[TableId, Collection[str]] | None = None,
    mysql: bool = False,
    sql_mode: int | None = None,
) -> Effect:
    """What the DDL text `sql` of a QUERY event does to the rows of the `chosen` tables.

    `default_schema` is the schema of bare names (the event's own), `sql_mode` its mode if it tells it. `here`: those
    of the tables that the shard has, with their columns; None: it has all, and the columns are not known. Never
    raises: what is not understood and names a chosen table is a Stop. Names are matched without regard to case, as
    the server may do; one that differs in case evolves nothing. Columns says what the text says: with IF EXISTS and
    IF NOT EXISTS a column may have been there or missing already.
    """
    columns = dict.fromkeys(chosen, ()) if here is None else here
    try:
        words_read = readings(sql, mysql=mysql, sql_mode=sql_mode)
        effects = [_Reading(words, default_schema, chosen, columns).effect() for words in words_read]
    except Unreadable as why:
        return _unreadable(sql, chosen, str(why))
    if any(e != effects[0] for e in effects):
        stops = [e for e in effects if isinstance(e, Stop)]
        touched = [e.table for e in effects if isinstance(e, Columns)]
        return stops[0] if stops else _stop(touched[0], "an executable comment may or may not have been run")
    first = effects[0]
    if isinstance(first, Columns) and any(
        isinstance(e, Columns) and e.actions != first.actions for e in effects
    ):
        return replace(first, actions=())
    return first


def altered_table(
    words: tuple[Word, ...], default_schema: str, chosen: Collection[TableId]
) -> TableId | None:
    """The chosen table whose definition an ALTER TABLE, CREATE INDEX or DROP INDEX changes, in one reading of it."""
    reading = _Reading(words, default_schema, chosen, {})
    head, kind, place = reading._head()
    named = []
    if kind == "INDEX":
        named = reading._named(place)
    elif (head, kind) == ("ALTER", "TABLE"):
        named = reading._named(*reading._target(place))
    return named[0] if named else None


def _unreadable(sql: str, chosen: Collection[TableId], why: str) -> Effect:
    text = sql.lower().replace("``", "`")
    of_database = re.search(r"\b(database|schema)\b", text)
    for table in sorted(chosen):
        for name in (table.name, table.schema) if of_database else (table.name,):
            if re.search(rf"(?<![\w$]){re.escape(name.lower())}(?![\w$])", text):
                return _stop(table, f"a statement that names it cannot be read: {why}")
    return HARMLESS


class _Reading:
    """One reading of a statement, and the tables it may touch."""

    def __init__(
        self,
        words: tuple[Word, ...],
        default_schema: str,
        chosen: Collection[TableId],
        here: Mapping[TableId, Collection[str]],
    ) -> None:
        self.words = words
        self.here = here
        self.keywords = [w.keyword for w in words]
        self.default_schema = default_schema
        self.chosen = sorted(chosen)

    def effect(self) -> Effect:
        """The effect of this reading."""
        head, kind, place = self._head()
        if head in _HARMLESS_HEADS or kind in _HARMLESS_OBJECTS:
            return HARMLESS
        if kind in _DATABASES:
            return self._of_database(head, place)
        named = self._named(0)
        if head not in _NAMING:
            named = [table for table in named if table in self.here]
        if not named or "TEMPORARY" in self.keywords[1:place]:
            return HARMLESS
        return self._of_table(head, kind, place, named[0])

    def _of_table(self, head: str, kind: str, place: int, named: TableId) -> Effect:
        if head in _DML:
            return _stop(named, "its rows were changed by a statement logged as text", _ROW)
        if kind == "INDEX":
            return self._of_index(head, place, named)
        if head == "CREATE" and kind in _TABLES:
            return self._of_create(place)
        if head == "ALTER" and kind == "TABLE":
            return self._of_alter(place)
        return _stop(named, _REASONS.get(head, NOT_UNDERSTOOD), _REMOVE if head == "DROP" else AGAIN)

    def _head(self) -> tuple[str, str, int]:
        """First word; the kind of object it acts on, empty if none is found; place of the word after that."""
        head = self.keywords[0] if self.keywords else "SET"  # an empty statement sets nothing
        if head in ("CREATE", "ALTER", "DROP", "RENAME"):
            for place, word in enumerate(self.keywords[1:], 2):
                if word in _OBJECTS:
                    return head, word, place
        return head, "", 1

    def _named(self, start: int, end: int | None = None) -> list[TableId]:
        """Chosen tables that an identifier between `start` and `end` may mean."""
        return [t for i in range(len(self.words))[start:end] for t in self.chosen if self._means(i, t)]

    def _means(self, place: int, table: TableId) -> bool:
        word = self.words[place]
        if word.quote == "'" or word.text.lower() != table.name.lower():
            return False
        if self.keywords[place + 1 : place + 2] == ["."]:
            return False  # a schema
        schema = self.default_schema
        if place >= 2 and self.keywords[place - 1] == "." and self.keywords[place - 2] not in _BEFORE_NAMES:
            schema = self.words[place - 2].text
        return schema.lower() == table.schema.lower()

    def _target(self, place: int) -> tuple[int, int]:
        """Where the table name after `IF [NOT] EXISTS` begins and ends."""
        while self.keywords[place : place + 1] and self.keywords[place] in ("IF", "NOT", "EXISTS"):
            place += 1
        end = place + (2 if self.keywords[place : place + 1] == ["."] else 1)
        while self.keywords[end : end + 1] == ["."]:
            end += 2
        return place, end

    def _of_database(self, head: str, place: int) -> Effect:
        start, end = self._target(place)
        names = {w.text.lower() for w in self.words[start:end]}
        gone = [t for t in self.chosen if t in self.here and t.schema.lower() in names]
        if gone and (head == "DROP" or "REPLACE" in self.keywords[:place]):
            return _stop(gone[0], "its schema was dropped", _REMOVE)
        return HARMLESS

    def _of_index(self, head: str, place: int, table: TableId) -> Effect:
        start, _ = self._target(place)
        if head == "DROP" and self.words[start].text.upper() == "PRIMARY":
            return _stop(table, "its primary key was dropped")
        return HARMLESS

    def _of_create(self, place: int) -> Effect:
        made = self._named(*self._target(place))
        if not made:
            return HARMLESS
        # MySQL logs it also where it does nothing.
        if made[0] in self.here and self.keywords[place : place + 3] == ["IF", "NOT", "EXISTS"]:
            return HARMLESS
        if "REPLACE" in self.keywords[:place]:
            return _stop(made[0], "it was replaced by a new table (CREATE OR REPLACE)")
        return _stop(made[0], "it was created while the feed was running")

    def _of_alter(self, place: int) -> Effect:
        start, end = self._target(place)
        own = [table for table in self._named(start, end) if table in self.here]
        if not own:
            return self._of_other_alter(end)
        if "IGNORE" in self.keywords[1:place]:
            return _stop(own[0], "ALTER IGNORE may delete rows without row events")
        actions = self.words[end:]
        if actions and actions[0].keyword == "NOWAIT":
            actions = actions[1:]
        elif len(actions) > 1 and actions[0].keyword == "WAIT" and actions[1].text.isdigit():
            actions = actions[2:]
        return self._of_change(own[0], self.words[start:end], actions)

    def _of_other_alter(self, end: int) -> Effect:
        """Another table's ALTER touches a chosen one by RENAME, EXCHANGE PARTITION and CONVERT only."""
        for place in range(end, len(self.words)):
            before = place - 2 if self.keywords[place - 1] == "." else place
            for table in self._named(place, place + 1):
                if self.keywords[before - 1] in ("RENAME", "TO", "AS", "=", "TABLE"):
                    return _stop(table, "another table was given its name, or exchanged rows with it")
        return HARMLESS

    def _of_change(self, table: TableId, target: tuple[Word, ...], actions: tuple[Word, ...]) -> Effect:
        # Not above: sqlglot takes each process half a second to import, and most meet no ALTER.
        from catchment.flow.epoch.alter import read_alter

        change = read_alter(target, actions, self.here[table])
        if change.reason:
            return _stop(table, change.reason, _PLAIN if change.by_adding else AGAIN)
        if not (change.added or change.dropped):
            return HARMLESS
        schema = target[0].text if len(target) > 1 else self.default_schema
        if (schema, target[-1].text) != (table.schema, table.name):
            return _stop(table, f"{schema}.{target[-1].text}, whose name differs in case, was altered")
        return Columns(table, change.added, change.dropped, actions)


_REASONS = {
    "DROP": "it was dropped",
    "TRUNCATE": "it was truncated, which logs no rows",
    "RENAME": "it was renamed, or another table was given its name (or a temporary table was that has its name: the "
    "log does not tell; give temporary tables other names)",
}


def _stop(table: TableId, reason: str, way_out: str = AGAIN) -> Stop:
    return Stop(table, reason, way_out.format(table=table))
