"""Which cascading foreign keys can be followed: what they do to rows is a function of rows that the lake has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from catchment.model.column_rule import ColumnRule, rule_of
from catchment.model.epoch import TableShape
from catchment.model.foreign_key import Does, ForeignKey, below
from catchment.model.table import DECIMAL_DIGITS_MAX, INTEGERS, Column, ColumnType, Kind, TableId
from catchment.schema.ddl import altered_table
from catchment.schema.events import SchemaEvent
from catchment.schema.statement import Word

# Kinds of which two values are one for a server where they are one for us. Not texts, because of collations. Not dates,
# since zero dates are NULL in the lake.
_COMPARED = (*INTEGERS, Kind.DECIMAL, Kind.BINARY, Kind.BLOB, Kind.YEAR)

Columns = Mapping[str, Column]


def kept_as_they_are(columns: Iterable[Column], rules: Sequence[ColumnRule]) -> dict[str, Column]:
    """The columns that the lake has with the source's values, by their names in lower case."""
    found = {}
    for column in columns:
        rule = rule_of(rules, column.name)
        if rule is None or not (rule.excluded or rule.masking):
            found[column.name.lower()] = column
    return found


def columns_of(shapes: Iterable[TableShape]) -> dict[TableId, Columns]:
    """The same of tables of the lake."""
    return {
        shape.table: kept_as_they_are((one.column for one in shape.kept), shape.rules) for shape in shapes
    }


def refusal(key: ForeignKey, tables: Mapping[TableId, Columns]) -> str:
    """Why nobody can tell when a key changes rows; empty where the log of its parent does.

    `tables`: those that the feed carries from the shard, as `kept_as_they_are` gives them.
    """
    if key.parent not in tables:
        return f"{key.parent} is not among the tables"
    lacking = [name for name in key.columns if name.lower() not in tables[key.child]]
    lacking += [name for name in key.referenced if name.lower() not in tables[key.parent]]
    return f"the feed leaves column {lacking[0]} out, or masks it" if lacking else ""


def unfollowed(
    key: ForeignKey, tables: Mapping[TableId, Columns], computed: bool, keys: Iterable[ForeignKey]
) -> str:
    """Why it is not known which rows a key that is not refused changes; empty where it is.

    `computed`: the child has columns that the server computes. `keys`: all cascading keys of the shard.
    """
    for name, referenced in zip(key.columns, key.referenced, strict=True):
        mine, its = tables[key.child][name.lower()].type, tables[key.parent][referenced.lower()].type
        if not _is_compared(mine) or mine != its:
            return f"only the server can compare {name} with {key.parent}.{referenced}"
    if computed and (key.on_delete is Does.FORGET or key.on_update is not Does.KEEP):
        return f"{key.child} has generated columns, which may change with it"
    others = tuple(keys)
    if key.child != key.parent and key.parent in below(others, frozenset({key.child})):
        return f"{key.child} and {key.parent} are children of each other"
    columns = {name.lower() for name in key.columns}
    for other in others:
        same = other.child == key.child and columns & {name.lower() for name in other.columns}
        if same and (other.name, other.child) != (key.name, key.child):
            return f"which of it and {other.name} acts first is for the server to say"
    return ""


def named(key: ForeignKey, tables: Mapping[TableId, Columns]) -> ForeignKey:
    """A key that is not refused, with the names of columns as the tables have them."""
    columns = tuple(tables[key.child][name.lower()].name for name in key.columns)
    referenced = tuple(tables[key.parent][name.lower()].name for name in key.referenced)
    return replace(key, columns=columns, referenced=referenced)


def _is_compared(kind: ColumnType) -> bool:
    return kind.kind in _COMPARED and (kind.kind is not Kind.DECIMAL or kind.length <= DECIMAL_DIGITS_MAX)


def dropped_keys(event: SchemaEvent, table: TableId) -> frozenset[str]:
    """The foreign keys, in lower case, that a statement may drop from a table."""
    if table.name.casefold() not in event.text.sql.replace("``", "`").casefold():
        return frozenset()
    words = event.text.words
    return frozenset(_dropped(words) if altered_table(words, event.text.schema, [table]) else ())


def _dropped(words: Sequence[Word]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word.keyword != "DROP":
            continue
        rest = words[at + 1 :]
        begin = [one.keyword for one in rest[:4]]
        skip = 2 if begin[:2] == ["FOREIGN", "KEY"] else 1 if begin[:1] == ["CONSTRAINT"] else 0
        if begin[skip : skip + 2] == ["IF", "EXISTS"]:
            skip += 2
        if skip and len(rest) > skip:
            yield rest[skip].text.lower()
