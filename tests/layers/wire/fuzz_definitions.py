"""Definitions that do not fit the log: real ones changed in one place, or those of other tables."""

import random
from collections.abc import Sequence

from msgspec.structs import replace

from catchment.model.definition import DefinedColumn, Definition

_CHARSETS = ("", "utf8", "utf8mb4", "latin1", "ucs2", "gbk", "no such")


def unfit(rng: random.Random, definition: Definition, others: Sequence[Definition]) -> Definition:
    """The definition as an ALTER that no one saw, or a fault of the catalog's reader, would leave it."""
    columns = list(definition.columns)
    at = rng.randrange(len(columns))
    way = rng.randrange(9)
    if way == 0:
        return replace(rng.choice(others), table=definition.table)
    if way == 1:
        del columns[at]
    elif way == 2:
        columns.insert(at, replace(rng.choice(rng.choice(others).columns), name="new"))
    elif way == 3:
        columns[at] = replace(rng.choice(rng.choice(others).columns), name=columns[at].name)
    elif way == 4:
        rng.shuffle(columns)
    elif way == 5:
        return replace(definition, key=rng.choice(((), ("c",), ("no such",), ("id", "c"))))
    elif way == 6:
        columns[at] = replace(columns[at], nullable=not columns[at].nullable)
    elif way == 7:
        columns[at] = replace(columns[at], charset=rng.choice(_CHARSETS))
    else:
        columns[at] = _declared_otherwise(rng, columns[at])
    return replace(definition, columns=tuple(columns))


def _declared_otherwise(rng: random.Random, column: DefinedColumn) -> DefinedColumn:
    """One character of the declaration changed, left out or doubled."""
    text = column.declared
    at = rng.randrange(len(text))
    put = rng.choice(("", text[at] * 2, "9", "0", "(", ")", "'", ",", " ", "é", "x"))
    return replace(column, declared=text[:at] + put + text[at + 1 :])
