"""Which tables a feed takes: names, globs, `/regex/`, and exclusions that begin with `!`.

A table is chosen when at least one rule takes it and no exclusion names it; their order does not matter.
Tables of the server itself are never chosen. Names are compared by letter case, as MariaDB does on Linux.
"""

import json
import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import lru_cache

from catchment.model.table import TableId

SYSTEM_SCHEMAS = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

_Match = Callable[[TableId], bool]


def takes(rules: Sequence[str], table: TableId) -> bool:
    """Whether `rules` take `table`; raises ValueError when a rule is malformed."""
    taken, excluded = _compiled(tuple(rules))
    if table.schema in SYSTEM_SCHEMAS or any(match(table) for match in excluded):
        return False
    return any(match(table) for match in taken)


def exclusion(table: TableId) -> str:
    """A line to paste under `tables`, which excludes this table alone."""
    schema, name = (re.sub(r"([*?[])", r"[\1]", part) for part in (table.schema, table.name))
    return f"- {json.dumps(f'!{schema}.{name}', ensure_ascii=False)}"


def check_rules(rules: tuple[str, ...]) -> tuple[str, ...]:
    """The same rules; raises ValueError naming every malformed one, also when no rule takes a table."""
    faults = []
    for rule in rules:
        try:
            _matcher(rule.removeprefix("!"))
        except ValueError as fault:
            faults.append(str(fault))
    if not any(not rule.startswith("!") for rule in rules):
        faults.append("no rule takes a table: add a name such as shop.orders or a glob such as shop.*")
    if faults:
        raise ValueError("; ".join(faults))
    return rules


@lru_cache(maxsize=64)
def _compiled(rules: tuple[str, ...]) -> tuple[tuple[_Match, ...], tuple[_Match, ...]]:
    taken = tuple(_matcher(rule) for rule in rules if not rule.startswith("!"))
    excluded = tuple(_matcher(rule[1:]) for rule in rules if rule.startswith("!"))
    return taken, excluded


def _matcher(pattern: str) -> _Match:
    """The test that a pattern (without its `!`) stands for."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        try:
            whole = re.compile(pattern[1:-1])
        except re.error as fault:
            raise ValueError(f"{pattern} is not a regular expression: {fault}") from fault
        return lambda table: whole.fullmatch(str(table)) is not None
    try:
        named = TableId.parse(pattern)
    except ValueError:
        raise ValueError(f"{pattern} is not of the form schema.table, schema.glob* or /regex/") from None
    # Each part has a glob of its own, so that `*` does not reach over the dot.
    schema, name = re.compile(translate(named.schema)), re.compile(translate(named.name))
    return lambda table: bool(schema.match(table.schema) and name.match(table.name))
