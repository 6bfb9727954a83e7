"""What a DDL statement of the log does to the rows of the chosen tables.

An allow-list decides (DESIGN 4 and 5). A statement that names a chosen table passes only when its effect on the rows is
known. It has none, takes all rows, drops columns, or adds some of which every row has the same value. Or it gives
columns another name, or another definition that may leave all values as they are. Pure: looks at no server and no
catalog.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from catchment.model.table import TableId
from catchment.schema.alter import plain, read_alter
from catchment.schema.chosen import Chosen
from catchment.schema.filling import Filled
from catchment.schema.names import without_marks
from catchment.schema.redeclared import REDEFINED, Redeclared
from catchment.schema.renamed import Renamed
from catchment.schema.statement import NOT_UNDERSTOOD, AmbiguousText, Word
from catchment.schema.text import Text, read_text
from catchment.schema.verbs import DATABASES, Act, kind_of, object_of

Here = Mapping[TableId, Collection[str]]


@dataclass(frozen=True, slots=True)
class Harmless:
    """Rows and columns of the chosen tables stay as they are."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of `table` were dropped, then others `modified`, then some of these and others `renamed`, then others
    added. Those have the value of `filled` in every row, else NULL. `emptied`: a TRUNCATE took all its rows, and no
    column came or went.

    `declared`: added columns, as far as it is told. `actions`: the words of the ALTER TABLE behind the table's name,
    without what it says of partitions.
    """

    table: TableId
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    filled: tuple[Filled, ...] = ()
    modified: tuple[Redeclared, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    declared: tuple[Redeclared, ...] = field(default=(), compare=False)
    actions: tuple[Word, ...] = field(default=(), compare=False)
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """The lake cannot follow: `reason` says what happened to `table`, `way_out` what the user can do."""

    table: TableId
    reason: str
    way_out: str


Effect = Harmless | Columns | Stop
HARMLESS = Harmless()

# A dot after one of these begins a name without a schema, as in `DROP TABLE .t`.
_BEFORE_NAMES = frozenset({"TABLE", "TABLES", "EXISTS", "TO", "ON", "INTO", "LIKE", "REFERENCES", ",", "("})

# What MariaDB takes behind the name of a table that is truncated.
_AFTER_TRUNCATE = re.compile(r"(NOWAIT|WAIT \d+)?")
TRUNCATED = "it was truncated, which logs no rows"

# First words of statements that may give a table its name; others leave one alone that the shard does not have.
_NAMING = frozenset({"CREATE", "RENAME", "ALTER"})

_WITHOUT = (
    'add "!{table}" to `tables` and start once with `--leave {table}`: the feed goes on without it, and its lake table '
    "stays as it is"
)
AGAIN = "with `schema_change: evolve`, the default, {table} is copied again by itself; or " + _WITHOUT
_REMOVE = "with `schema_change: evolve`, the default, the feed goes on without {table}; or " + _WITHOUT
BY_ROWS = "set binlog_format=ROW for every session; " + _WITHOUT
ADD_PLAIN = (
    AGAIN
    + "; next time add the column as NULL without a default and fill it with UPDATE, which needs no stop"
)


def effect(
    sql: str,
    default_schema: str,
    chosen: Collection[TableId],
    *,
    here: Here | None = None,
    mysql: bool = False,
    sql_mode: int | None = None,
    time: int = 0,
) -> Effect:
    """What the statement `sql` of a log does as DDL; one that is none is Harmless here (judge.py says more).

    `default_schema` is the schema of bare names (the event's own), `sql_mode` its mode if it tells it. `here`: those
    of the tables that the shard has, with their columns; None: it has all, and the columns are not known. Never
    raises: what cannot be read and names a chosen table is a Stop.
    """
    text = read_text(sql, default_schema, mysql=mysql, sql_mode=sql_mode, time=time)
    return effect_of(text, chosen, here)


def effect_of(text: Text, chosen: Collection[TableId], here: Here | None = None) -> Effect:
    """As `effect`, of a statement that is read.

    Names are matched without regard to case and marks, as the server may do; one that differs in case evolves
    nothing. Columns says what the text says: with IF EXISTS and IF NOT EXISTS a column may have been there or missing
    already.
    """
    chosen = Chosen.of(chosen)
    if text.unreadable:
        named = named_by(text, chosen)
        why = f"a statement that names it cannot be read: {text.unreadable}"
        return _stop(named[0], why) if named else HARMLESS
    columns = dict.fromkeys(chosen, ()) if here is None else here
    if kind_of(text.words) is not Act.DEFINES:
        return HARMLESS
    found = _Reading(text.words, text.schema, chosen, columns, text).effect()
    if isinstance(found, Columns) and text.doubtful and (found.emptied or found.modified or found.renamed):
        return _stop(found.table, TRUNCATED if found.emptied else REDEFINED)
    return found


def named_by(text: Text, chosen: Collection[TableId]) -> list[TableId]:
    """The chosen tables, in order, that a statement may mean: as DDL it does nothing to others."""
    chosen = Chosen.of(chosen)
    if text.unreadable:
        sql = without_marks(text.sql.replace("``", "`"))
        return sorted(t for name, tables in chosen.by_name.items() if name in sql for t in tables)
    if kind_of(text.words) is not Act.DEFINES:
        return []
    reading = _Reading(text.words, text.schema, chosen, {}, text)
    kind, place = object_of(text.words)
    return sorted({*reading.named(0), *(reading.of_schemas(place) if kind in DATABASES else ())})


def altered_table(
    words: tuple[Word, ...], default_schema: str, chosen: Collection[TableId]
) -> TableId | None:
    """The chosen table whose definition an ALTER TABLE, CREATE INDEX or DROP INDEX changes."""
    if kind_of(words) is not Act.DEFINES:
        return None
    reading = _Reading(words, default_schema, chosen, {})
    kind, place = object_of(words)
    named = []
    if kind == "INDEX":
        named = reading.named(place)
    elif (words[0].keyword, kind) == ("ALTER", "TABLE"):
        named = reading.named(*reading.target(place))
    return named[0] if named else None


def altering(words: tuple[Word, ...], default_schema: str, table: TableId) -> tuple[Word, ...]:
    """The actions of an ALTER TABLE of `table`; none of another statement."""
    if not words or (words[0].keyword, object_of(words)[0]) != ("ALTER", "TABLE"):
        return ()
    if altered_table(words, default_schema, [table]) is None:
        return ()
    reading = _Reading(words, default_schema, [table], {})
    return words[reading.target(object_of(words)[1])[1] :]


class _Reading:
    """A statement, and the tables it may touch."""

    def __init__(
        self,
        words: tuple[Word, ...],
        default_schema: str,
        chosen: Collection[TableId],
        here: Here,
        text: Text | None = None,
    ) -> None:
        self.words = words
        self.text = text
        self.here = here
        self.keywords = [w.keyword for w in words]
        self.default_schema = default_schema
        self.chosen = Chosen.of(chosen)

    def effect(self) -> Effect:
        """The effect of the statement."""
        head = self.keywords[0]
        kind, place = object_of(self.words)
        if kind in DATABASES:
            return self._of_database(head, place)
        named = self.named(0)
        if head not in _NAMING:
            named = [table for table in named if table in self.here]
        if not named or "TEMPORARY" in self.keywords[1:place]:
            return HARMLESS
        if kind == "INDEX":
            return self._of_index(head, place, named[0])
        if head in ("CREATE", "TRUNCATE"):
            return self._of_create(place) if head == "CREATE" else self._of_truncate(named[0])
        if head == "ALTER" and kind == "TABLE":
            return self._of_alter(place)
        way_out = _REMOVE if head == "DROP" else AGAIN
        return _stop(named[0], _REASONS.get(head, NOT_UNDERSTOOD), way_out)

    def named(self, start: int, end: int | None = None) -> list[TableId]:
        """Chosen tables that an identifier between `start` and `end` may mean."""
        return [t for place in range(len(self.words))[start:end] for t in self._meant(place)]

    def _meant(self, place: int) -> list[TableId]:
        word = self.words[place]
        mine = self.chosen.by_name.get(without_marks(word.text), []) if word.quote != "'" else []
        if not mine or self.keywords[place + 1 : place + 2] == ["."]:
            return []  # a schema
        schema = self.default_schema
        # The first word is the verb, also of `TRUNCATE .t`.
        if place >= 3 and self.keywords[place - 1] == "." and self.keywords[place - 2] not in _BEFORE_NAMES:
            schema = self.words[place - 2].text
        return [table for table in mine if without_marks(table.schema) == without_marks(schema)]

    def _is(self, table: TableId, target: Sequence[Word]) -> bool:
        """Whether a name, with its schema or without, is that of the table letter by letter."""
        names = [word.text for word in target[::2]]
        assert self.text is not None
        found = [
            self.text.name(name) for name in ([self.default_schema, *names] if len(names) == 1 else names)
        ]
        return found == [table.schema, table.name]

    def target(self, place: int) -> tuple[int, int]:
        """Where the table name after `IF [NOT] EXISTS` begins and ends."""
        while self.keywords[place : place + 1] and self.keywords[place] in ("IF", "NOT", "EXISTS"):
            place += 1
        end = place + (2 if self.keywords[place : place + 1] == ["."] else 1)
        while self.keywords[end : end + 1] == ["."]:
            end += 2
        return place, end

    def _of_database(self, head: str, place: int) -> Effect:
        gone = [t for t in self.of_schemas(place) if t in self.here]
        if gone and (head == "DROP" or "REPLACE" in self.keywords[:place]):
            return _stop(gone[0], "its schema was dropped", _REMOVE)
        return HARMLESS

    def of_schemas(self, place: int) -> list[TableId]:
        """The chosen tables of the schemas that a statement names from `place` on."""
        start, end = self.target(place)
        names = {without_marks(w.text) for w in self.words[start:end]}
        return sorted(t for name in names for t in self.chosen.by_schema.get(name, ()))

    def _of_truncate(self, table: TableId) -> Effect:
        start = 2 if self.keywords[1:2] == ["TABLE"] else 1
        end = start + (3 if self.keywords[start + 1 : start + 2] == ["."] else 1)
        known = _AFTER_TRUNCATE.fullmatch(" ".join(self.keywords[end:])) is not None
        return (
            Columns(table, (), (), emptied=True)
            if known and self._is(table, self.words[start:end])
            else _stop(table, TRUNCATED)
        )

    def _of_index(self, head: str, place: int, table: TableId) -> Effect:
        start, _ = self.target(place)
        if head == "DROP" and self.words[start].text.upper() == "PRIMARY":
            return _stop(table, "its primary key was dropped")
        return HARMLESS

    def _of_create(self, place: int) -> Effect:
        made = self.named(*self.target(place))
        if not made:
            return HARMLESS
        # MySQL logs it also where it does nothing.
        if made[0] in self.here and self.keywords[place : place + 3] == ["IF", "NOT", "EXISTS"]:
            return HARMLESS
        if "REPLACE" in self.keywords[:place]:
            return _stop(made[0], "it was replaced by a new table (CREATE OR REPLACE)")
        return _stop(made[0], "it was created while the feed was running")

    def _of_alter(self, place: int) -> Effect:
        start, end = self.target(place)
        own = [table for table in self.named(start, end) if table in self.here]
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
            for table in self.named(place, place + 1):
                if self.keywords[before - 1] in ("RENAME", "TO", "AS", "=", "TABLE"):
                    return _stop(table, "another table took its name, or exchanged rows with it")
        return HARMLESS

    def _of_change(self, table: TableId, target: tuple[Word, ...], actions: tuple[Word, ...]) -> Effect:
        assert self.text is not None
        conditions = self.text.conditions
        try:
            actions = tuple(plain(actions))
        except AmbiguousText:
            return _stop(table, NOT_UNDERSTOOD)
        change = read_alter(actions, self.here[table], conditions)
        if change.reason:
            return _stop(table, change.reason, ADD_PLAIN if change.by_adding else AGAIN)
        if change.modified and not conditions.usual:
            return _stop(table, REDEFINED)
        if not (change.added or change.dropped or change.modified or change.renamed):
            return HARMLESS
        if not self._is(table, target):
            written = ".".join(word.text for word in target[::2])
            return _stop(table, f"{written}, whose name differs in case, was altered")
        return Columns(
            table,
            change.added,
            change.dropped,
            change.filled,
            change.modified,
            change.renamed,
            change.declared if conditions.usual else (),
            actions,
        )


_REASONS = {
    "DROP": "it was dropped",
    "RENAME": "it was renamed, or another table took its name; a temporary table of that name looks the same in the "
    "log, so give temporary tables other names",
}


def _stop(table: TableId, reason: str, way_out: str = AGAIN) -> Stop:
    return Stop(table, reason, way_out.format(table=table))
