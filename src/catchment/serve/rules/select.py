"""The SELECT of a filter, read with sqlglot: one table, some columns, a condition, and nothing else."""

import logging
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from catchment.serve.rules.refused import Refused

# sqlglot warns of every statement that it does not know; here that is an answer.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_LIKE_THIS = "write it like select id, total from orders where paid = 1"
_CLAUSES = {
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "joins": "a join",
    "laterals": "a join",
    "with_": "WITH",
    "windows": "WINDOW",
    "locks": "a lock",
    "into": "INTO",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What one column of the result is: `name` of the result, empty where the SELECT gives none. No tree: all columns
    of the table."""

    name: str
    tree: exp.Expression | None


@dataclass(frozen=True, slots=True)
class Select:
    """A filter's parts. `table`: as FROM names it. `known_as`: how columns may name it, in lower case."""

    table: str
    known_as: frozenset[str]
    given: tuple[Given, ...]
    where: exp.Expression | None


def select_of(text: str) -> Select:
    """Read a filter. Raises Refused."""
    _check_words(text)
    tree = _tree(text)
    if not isinstance(tree, exp.Select):
        raise Refused(f"a filter is one SELECT; {_LIKE_THIS}")
    for name, value in tree.args.items():
        if value and name not in ("expressions", "from_", "where"):
            raise Refused(
                f"{_CLAUSES.get(name, name.strip('_'))} stands in no filter: it sees one changed row at a time"
            )
    table, known_as = _from(tree.args.get("from_"))
    where = tree.args.get("where")
    given = tuple(_given(one) for one in tree.expressions)
    return Select(table, known_as, given, None if where is None else where.this)


def _check_words(text: str) -> None:
    """Refuse what means different things on servers with different settings, and what sqlglot does not tell."""
    if "\\" in text:
        raise Refused(
            "a backslash means different things by the server's sql_mode; write LIKE ... ESCAPE '|' for the "
            "characters % and _"
        )
    if "/*" in text:
        raise Refused("comments stand in no filter: some of them are run by some servers")
    try:
        words = sqlglot.tokenize(text, dialect="mysql")
    except sqlglot.errors.SqlglotError as fault:
        raise Refused(f"it cannot be read: {_first_line(fault)}") from None
    for word in words:
        if word.comments:
            raise Refused("comments stand in no filter")
        if word.token_type is sqlglot.TokenType.DPIPE:
            raise Refused("|| means OR or CONCAT by the server's sql_mode; write which of them")


def _tree(text: str) -> exp.Expr | None:
    try:
        (tree,) = sqlglot.parse(text, dialect="mysql")
    except sqlglot.errors.SqlglotError as fault:
        raise Refused(f"it cannot be read: {_first_line(fault)}; {_LIKE_THIS}") from None
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError:
        raise Refused(f"a filter is one SELECT; {_LIKE_THIS}") from None
    return tree


def _first_line(fault: Exception) -> str:
    return str(fault).partition("\n")[0].rstrip(".")


def _from(clause: exp.Expression | None) -> tuple[str, frozenset[str]]:
    """The table, and the names by which columns may call it."""
    table = None if clause is None else clause.this
    if not isinstance(table, exp.Table):
        raise Refused(f"FROM names one table; {_LIKE_THIS}")
    if any(value for name, value in table.args.items() if name not in ("this", "db", "alias")):
        raise Refused(f"FROM names one table and nothing else, not {table.sql(dialect='mysql')}")
    if not isinstance(table.this, exp.Identifier):
        raise Refused(f"FROM names one table; {_LIKE_THIS}")
    schema = table.text("db")
    whole = f"{schema}.{table.name}" if schema else table.name
    names = {table.alias} if table.alias else {table.name, whole}
    return whole, frozenset(name.lower() for name in names)


def _given(one: exp.Expression) -> Given:
    if isinstance(one, exp.Star):
        if any(one.args.values()):
            raise Refused("only * itself stands for all columns")
        return Given("", None)
    if isinstance(one, exp.Alias):
        return Given(one.alias, one.this)
    return Given("", one)
