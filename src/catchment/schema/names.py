"""The names in a statement, and which of them a server may take for one another."""

import unicodedata
from collections.abc import Sequence

from catchment.schema.statement import Word

Name = tuple[str, str]

# What utf8mb3_general_ci, the collation of routines' names, holds to be a letter with a mark (seen on all characters).
_LETTERS = str.maketrans({"ß": "s", "ẞ": "s", "ı": "i", "\u0345": "ι"})

# A bare one of these is no schema: a dot behind it begins a name of the default schema, as in `DELETE FROM .t`.
_BEFORE_NAMES = frozenset(
    {
        "UPDATE",
        "INSERT",
        "REPLACE",
        "DELETE",
        "INTO",
        "FROM",
        "JOIN",
        "STRAIGHT_JOIN",
        "USING",
        "TABLE",
        "TABLES",
    }
    | {
        "LOW_PRIORITY",
        "HIGH_PRIORITY",
        "DELAYED",
        "QUICK",
        "IGNORE",
        "OJ",
        "ONLY",
        "EXISTS",
        "TO",
        "ON",
        "LIKE",
    }
    | {
        "REFERENCES",
        "VIEW",
        "TRIGGER",
        "AS",
        "SELECT",
        "ALL",
        "DISTINCT",
        "BY",
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "SET",
    }
)


def without_marks(name: str) -> str:
    """A name without case and marks: two names that any server may take for one another become the same."""
    if name.isascii():
        return name.lower()
    apart = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def in_lower_case(name: str) -> str:
    """The name of a table or a schema as a server with lower_case_table_names=1 has it. It brings each letter to one
    letter (my_casedn_str), Python some to several."""
    return "".join(letter.lower()[:1] for letter in name)


def named(words: Sequence[Word], default_schema: str) -> frozenset[Name]:
    """Every name that may be one of a table, a view or a routine, with its schema, both `without_marks`.

    Every word counts that is no string: keywords, columns and aliases, too. Of a.b both do, and of `a.b` in one pair of
    quotes a as well: so MariaDB logs a function b of a package a.
    """
    default = without_marks(default_schema)
    found = set()
    for place, word in enumerate(words):
        if word.quote == "'" or not (
            word.quote or word.text[0].isalnum() or word.text[0] in "_$" or word.text > "~"
        ):
            continue
        names = {without_marks(word.text), without_marks(word.text.partition(".")[0])}
        before = words[place - 2] if place >= 2 and words[place - 1] == Word(".") else None
        if before is None or not (before.quote or before.keyword.strip("!\"#%&'()*+,-./:;<=>?@[]^{|}~")):
            schemas = {default}
        else:
            schemas = {without_marks(before.text)} | ({default} if before.keyword in _BEFORE_NAMES else set())
        found |= {(schema, name) for schema in schemas for name in names}
    return frozenset(found)
