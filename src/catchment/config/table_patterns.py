r"""Patterns of tables: the one dialect of `tables` and `match` in feed files, of rules of streams, and of `--table`.

A pattern is a name `shop.orders`, a glob `shop.*`, either of them without a schema (`orders` is that name in any
schema), or `/regex/`. A regex is compared with the whole of `schema.table` (docs/patterns.md). Letter case counts, as
it does for MariaDB on Linux. Tables of the server itself are never taken.

In a list of patterns `!` in front excludes: a table is taken when a pattern takes it and no exclusion does, in whatever
order they are.
"""

import json
import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final

from catchment.model.table import TableId

SYSTEM_SCHEMAS = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

_SPECIAL: Final = re.compile(r"([*?[])")
_QUOTED: Final = re.compile(r"\[([*?[])\]")
_Match = Callable[[TableId], bool]


def takes(patterns: Sequence[str], table: TableId) -> bool:
    """Whether a list of patterns takes `table`. Raises ValueError where one is malformed."""
    return table.schema not in SYSTEM_SCHEMAS and _takes(tuple(patterns), table)


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


def pattern_of(table: TableId) -> str:
    """The pattern that takes this table alone."""
    return f"{_quoted(table.schema)}.{_quoted(table.name)}"


def exclusion(table: TableId) -> str:
    """A line to paste under `tables`, which excludes this table alone."""
    return f"- {json.dumps(f'!{pattern_of(table)}', ensure_ascii=False)}"


def name_in(pattern: str) -> str | None:
    """The name that a pattern is, with its schema if it has one; None for a glob, a regex and an exclusion."""
    if pattern.startswith(("/", "!")) or _SPECIAL.search(_QUOTED.sub("", pattern)):
        return None
    return _QUOTED.sub(r"\1", pattern)


def table_in(pattern: str) -> TableId:
    """The one table that a pattern names with its schema. Raises ValueError where it is no such name."""
    name = name_in(pattern)
    if name is None:
        raise ValueError(f"{pattern} may take several tables; name one as schema.table")
    return TableId.parse(name)


def _quoted(name: str) -> str:
    return _SPECIAL.sub(r"[\1]", name)


@lru_cache(maxsize=1 << 14)
def _takes(patterns: tuple[str, ...], table: TableId) -> bool:
    """The same for each of a thousand shards that have the table."""
    taken, excluded = _compiled(patterns)
    return any(match(table) for match in taken) and not any(match(table) for match in excluded)


@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...]) -> tuple[tuple[_Match, ...], tuple[_Match, ...]]:
    taken = tuple(_matcher(pattern) for pattern in patterns if not pattern.startswith("!"))
    excluded = tuple(_matcher(pattern[1:]) for pattern in patterns if pattern.startswith("!"))
    return taken, excluded


def _matcher(pattern: str) -> _Match:
    """The test that a pattern (without its `!`) means. Raises ValueError."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        return _by_regex(pattern)
    if pattern.startswith("/"):
        raise ValueError(f"{pattern} begins as a regular expression: end it with a slash, too")
    schema, dot, name = pattern.partition(".") if "." in pattern else ("*", ".", pattern)
    if not (schema and dot and name):
        raise ValueError(
            f"{pattern or 'an empty text'} is not of the form schema.table, schema.glob* or /regex/"
        )
    # Each part has a glob of its own, so that `*` does not reach over the dot.
    schemas, names = re.compile(translate(schema)), re.compile(translate(name))
    return lambda table: bool(schemas.match(table.schema) and names.match(table.name))


def _by_regex(pattern: str) -> _Match:
    """Of RE2, whose time grows with the length of a text alone: a stranger's regex cannot hold up the server."""
    regex = pattern[1:-1]
    _must_be_re2(pattern, regex)  # by itself, so that it cannot close the brackets around it
    if "." not in regex:
        # Every text that it is compared with has a dot. So this one was meant for the table's name alone.
        raise ValueError(
            rf"{pattern} has no dot: a regular expression is compared with the whole of schema.table; "
            rf"write /.*\.({regex})/"
        )
    whole = rf"\A(?:{regex})\z"
    _must_be_re2(pattern, whole)
    return lambda table: _fits(whole, str(table))


def _must_be_re2(pattern: str, regex: str) -> None:
    # Not above: a command that reads a feed file without a regex starts a third of a second sooner.
    import pyarrow as pa

    try:
        _fits(regex, "")
    except pa.ArrowInvalid as fault:
        why = str(fault).removeprefix("Invalid regular expression: ")
        raise ValueError(
            f"{pattern} is not a regular expression of RE2, which has no lookaround and no backreference: {why}"
        ) from None


@lru_cache(maxsize=1 << 14)
def _fits(regex: str, text: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.scalar(text), regex).as_py())
