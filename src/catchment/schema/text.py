"""A statement of the log as text, read: its words, what kind it is, and what it names."""

from dataclasses import dataclass
from functools import lru_cache

from catchment.schema.conditions import UNKNOWN, Conditions
from catchment.schema.names import Name, in_lower_case, named
from catchment.schema.statement import RENAMING, STRICT, AmbiguousText, Word, words_of
from catchment.schema.verbs import Act, kind_of, query_of

# Each table that enters a feed has the log of its birth read again, and with it the statements of all others.
_KEPT, _KEPT_CHARACTERS = 2_000, 4_000


@dataclass(frozen=True, slots=True)
class Text:
    """A statement, read: its words, and every name in those that may change rows. `schema`: that of bare names.
    `unreadable`: why it has no words. `doubtful`: it may have acted on a temporary table, or failed.
    `folds`: the server has names of tables and schemas in lower case."""

    sql: str
    schema: str
    words: tuple[Word, ...]
    kinds: frozenset[Act]
    names: frozenset[Name]
    unreadable: str = ""
    conditions: Conditions = UNKNOWN
    doubtful: bool = False
    folds: bool = False

    def name(self, written: str) -> str:
        """The name of a table or a schema, of one that the statement writes so."""
        return in_lower_case(written) if self.folds else written

    @property
    def changes_rows(self) -> bool:
        """Whether it may change rows of what its names lead to."""
        return Act.CHANGES_ROWS in self.kinds


def read_text(
    sql: str,
    default_schema: str,
    *,
    mysql: bool = False,
    sql_mode: int | None = None,
    time: int = 0,
    folds: bool = False,
) -> Text:
    """Read a statement; never raises. `sql_mode`: as its event has it, None when that is not known."""
    read = _read if len(sql) <= _KEPT_CHARACTERS else _read.__wrapped__
    return read(sql, default_schema, mysql, sql_mode, time, folds)


@lru_cache(_KEPT)
def _read(sql: str, default_schema: str, mysql: bool, sql_mode: int | None, time: int, folds: bool) -> Text:
    try:
        words = words_of(sql, mysql=mysql, sql_mode=sql_mode)
    except AmbiguousText as why:
        leaves = why.words[1:] and kind_of(why.words) is Act.LEAVES_ROWS
        kind = Act.LEAVES_ROWS if leaves else Act.NOT_KNOWN
        return Text(sql, default_schema, (), frozenset({kind}), frozenset(), str(why), folds=folds)
    kind = kind_of(words)
    # The table that a CREATE TABLE makes has no trigger yet.
    changing = query_of(words) if kind is Act.DEFINES else words if kind is Act.CHANGES_ROWS else ()
    kinds = frozenset({kind, Act.CHANGES_ROWS} if changing else {kind})
    # SET STATEMENT sql_mode: the event has another one than the statement ran in.
    mode = sql_mode if "sql_mode" not in sql.lower() else None
    strict, usual = mode is not None and mode & STRICT != 0, mode is not None and mode & RENAMING == 0
    conditions = Conditions(time, strict, usual, mysql)
    return Text(
        sql, default_schema, words, kinds, named(changing, default_schema), "", conditions, folds=folds
    )
