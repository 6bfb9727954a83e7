"""Definitions of tables as the log's DDL changes them, for logs that do not describe themselves."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from catchment.model.definition import UNKNOWN, DefinedColumn, Definition
from catchment.model.errors import AlteredUnseen, Unsupported
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.schema.ddl import AGAIN, Columns, Here, Stop
from catchment.schema.declaration import read_column
from catchment.schema.events import SchemaEvents, stops
from catchment.schema.kinds_now import Kinds, KindsNow
from catchment.schema.passage import Stopped
from catchment.schema.redeclared import definition_of
from catchment.schema.renamed import renamed
from catchment.schema.statement import NO_BACKSLASH_ESCAPES, AmbiguousText, Word, beginning, parted
from catchment.wire.log.facts import Ddl, Fact

_NOT_COLUMNS = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK"}
)
_Columns = list[DefinedColumn]


class Followed:
    """The definitions of chosen tables at the place in the log where its reader stands.

    `chosen` are all tables whose rows are read, also those without a definition. Where a DDL stops one, its
    rows are not decoded any more (`readers/checks.alterations` says why). `here` and `defined` as SchemaEvents takes
    them. `events`: of the statements that were taken, and of others between them. `lost`: tables with a statement that
    does not fit the definition, or says too little of it; their rows are not decoded either.
    """

    def __init__(
        self,
        chosen: Iterable[TableId],
        definitions: Iterable[Definition] = (),
        here: Here | None = None,
        defined: LogOffset | None = None,
    ) -> None:
        self.events = SchemaEvents(chosen, here, defined)
        self.lost: dict[TableId, Stopped] = {}
        self._now = {definition.table: definition for definition in definitions}
        self._kinds: KindsNow | None = None

    @property
    def now(self) -> dict[TableId, Definition]:
        """The definitions as of here."""
        return dict(self._now)

    def kinds(self, at_start: Mapping[TableId, Kinds]) -> Mapping[TableId, Kinds]:
        """The columns that the log declares as BINARY and that are something else, as of wherever the reader stands.
        `at_start`: where it begins."""
        self._kinds = KindsNow(at_start)
        return self._kinds

    def on_ddl(self, fact: Ddl) -> dict[TableId, Definition | None]:
        """Take a DDL; what it changes (None: its rows cannot be read any more). Raises Unsupported."""
        event = self.events.next(fact)
        did = event.effect
        if isinstance(did, Stop):
            return {stop.table: None for stop in stops(event, self.events.chosen)}
        if isinstance(did, Columns) and self._kinds is not None:
            self._kinds.alter(did)
        if not isinstance(did, Columns) or did.emptied or did.table not in self._now:
            return {}
        known = self._now.pop(did.table)
        try:
            self._now[did.table] = altered(known, did, mysql=fact.mysql, sql_mode=fact.sql_mode)
        except AlteredUnseen as why:
            self.lost[did.table] = Stopped(did.table, f"log {fact.at}: {why}", place=fact.at)
        except AmbiguousText as why:
            self.lost[did.table] = Stopped(
                did.table,
                f"{did.table} at {fact.at}: the columns that `{beginning(fact.sql)}` leads to cannot be told: {why}; "
                "set binlog_row_metadata=FULL on the server, and " + AGAIN.format(table=did.table),
                place=fact.at,
            )
        return {did.table: self._now.get(did.table)}

    def must_follow(self) -> None:
        """Raise Unsupported where the columns of a table are not known any more."""
        for stopped in self.lost.values():
            raise Unsupported(stopped.reason)

    def over(self, facts: Iterable[Fact]) -> "Followed":
        """Take all DDL among the facts."""
        for fact in facts:
            if isinstance(fact, Ddl):
                self.on_ddl(fact)
        return self


def altered(definition: Definition, did: Columns, *, mysql: bool, sql_mode: int = 0) -> Definition:
    """The definition after an ALTER TABLE: first columns go, then others change and get names, then others come, each
    in the statement's order.

    Raises AmbiguousText when a column's type or place cannot be told, AlteredUnseen when the table is not as the
    statement found it, or nobody knows what it was like.
    """
    if definition.is_unknown:
        raise AlteredUnseen(f"{definition.table}: {UNKNOWN}")
    if sql_mode & NO_BACKSLASH_ESCAPES and any("\\" in word.text for word in did.actions):
        raise AmbiguousText("it holds a backslash, which stands for itself in this sql_mode")
    actions = list(parted(did.actions))
    if not all(actions):
        raise AmbiguousText("nothing stands behind or before a comma")
    columns = list(definition.columns)
    for action in actions:
        if action[0].keyword == "DROP":
            columns = _dropped(definition, columns, action, did)
    for action in actions:
        if action[0].keyword in ("MODIFY", "CHANGE"):
            columns = _modified(definition, columns, action, mysql=mysql)
        elif action[0].keyword == "RENAME":
            columns = _renamed(definition, columns, action)
        if action[0].keyword == "ADD" and (at := _column_at(action)):
            columns = _added(definition, columns, action, at, mysql=mysql)
    return replace(definition, columns=tuple(columns))


def _column_at(action: Sequence[Word]) -> int:
    """Where an ADD names its column; 0 when it adds something else."""
    at = 1
    if action[at].keyword == "COLUMN":
        at += 1
    elif action[at].keyword in _NOT_COLUMNS:
        return 0
    if action[at].keyword == "(":
        raise AmbiguousText("columns are added in parentheses")
    return at + 3 if [w.keyword for w in action[at : at + 3]] == ["IF", "NOT", "EXISTS"] else at


def _dropped(definition: Definition, columns: _Columns, action: Sequence[Word], did: Columns) -> _Columns:
    names = {name.lower() for name in did.dropped}
    keywords = [w.keyword for w in action]
    at = 2 if keywords[1] == "COLUMN" else 1
    exists = keywords[at : at + 2] == ["IF", "EXISTS"]
    if exists:
        at += 2
    name = action[at].text.lower()
    if keywords[1] in _NOT_COLUMNS or name not in names:
        return columns  # an index or a constraint
    kept = [c for c in columns if c.name.lower() != name]
    if len(kept) == len(columns) and not exists:
        raise _unseen(definition, f"an ALTER TABLE drops {action[at].text}")
    return kept


def _modified(definition: Definition, columns: _Columns, action: Sequence[Word], *, mysql: bool) -> _Columns:
    """The columns after MODIFY or CHANGE: one has another definition, and perhaps name and place."""
    words, place = _placed(definition_of(action))
    was = renamed(action)
    index = _of_name(definition, columns, words[0].text if was is None else was.old, "modifies")
    new = read_column(words, definition.charset, mysql=mysql)
    others = [*columns[:index], *columns[index + 1 :]]
    if place is not None:
        index = _index(definition, others, new.name, place)
    return [*others[:index], new, *others[index:]]


def _renamed(definition: Definition, columns: _Columns, action: Sequence[Word]) -> _Columns:
    """The columns after RENAME COLUMN, or RENAME of something else."""
    said = renamed(action)
    if said is None:
        return columns
    index = _of_name(definition, columns, said.old, "renames")
    return [*columns[:index], replace(columns[index], name=said.new), *columns[index + 1 :]]


def _of_name(definition: Definition, columns: _Columns, name: str, act: str) -> int:
    """Where the column stands that an action is about."""
    index = next((i for i, c in enumerate(columns) if c.name.lower() == name.lower()), None)
    if index is None:
        raise _unseen(definition, f"an ALTER TABLE {act} {name}")
    return index


def _added(
    definition: Definition, columns: _Columns, action: Sequence[Word], at: int, *, mysql: bool
) -> _Columns:
    words, place = _placed(action[at:])
    if any(c.name.lower() == words[0].text.lower() for c in columns):
        if at >= 4:  # IF NOT EXISTS
            return columns
        raise _unseen(definition, f"an ALTER TABLE adds {words[0].text}")
    new = read_column(words, definition.charset, mysql=mysql)
    if place is None:
        index = next((i for i, c in enumerate(columns) if c.hidden), len(columns))
    else:
        index = _index(definition, columns, new.name, place)
    return [*columns[:index], new, *columns[index:]]


def _index(definition: Definition, columns: _Columns, name: str, place: str) -> int:
    """Where a column stands that is put behind another one, or first."""
    names = [c.name.lower() for c in columns]
    if place == "":
        return 0
    if place.lower() not in names:
        raise _unseen(definition, f"an ALTER TABLE puts {name} after {place}")
    return names.index(place.lower()) + 1


def _placed(words: Sequence[Word]) -> tuple[Sequence[Word], str | None]:
    """The words of a column without its place; the place: behind which column, empty for FIRST, None: last."""
    if len(words) > 2 and words[-2].keyword == "AFTER":
        return words[:-2], words[-1].text
    if len(words) > 2 and words[-1].keyword == "FIRST":
        return words[:-1], ""
    return words, None


def _unseen(definition: Definition, what: str) -> AlteredUnseen:
    names = ", ".join(c.name for c in definition.columns)
    return AlteredUnseen(f"{definition.table} has the columns {names}, but {what}: it was altered unseen")
