"""Shadow tables: those that tools for schema changes make beside a table, fill, and swap with it or drop.

A feed that takes `shop.*` would carry each one, and have it dropped soon after.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from catchment.config.table_patterns import name_in
from catchment.model.table import TableId

# gh-ost has _t_gho, _t_ghc and _t_del, also with a time in between. pt-online-schema-change has _t_new, __t_new and
# _t_old. Spirit has _t_new, _t_chkpnt, _spirit_sentinel, and _t_old, also with a time behind it.
SHADOWS = (
    "_*_gho",
    "_*_ghc",
    "_*_ghr",
    "_*_del",
    "_*_new",
    "_*_old",
    "_*_old_[0-9]*",
    "_*_chkpnt",
    "_spirit_*",
)

# Of these a tool's log, checkpoint, or the table of before.
_NOT_FILLED = ("_ghc", "_del", "_old", "_chkpnt")


def is_shadow(patterns: Sequence[str], rules: Sequence[str], table: TableId) -> bool:
    """Whether a table's name is that of a shadow table, and no rule names it in full."""
    return _is_shadow(tuple(patterns), tuple(rules), table)


@lru_cache(maxsize=1 << 14)
def _is_shadow(patterns: tuple[str, ...], rules: tuple[str, ...], table: TableId) -> bool:
    named = any(name_in(rule) == str(table) for rule in rules)
    return not named and any(fnmatchcase(table.name, pattern) for pattern in patterns)


def is_filled_beside(patterns: Sequence[str], rules: Sequence[str], table: TableId) -> bool:
    """Whether a shadow table's name is that of one which is filled to take the place of another table."""
    return is_shadow(patterns, rules, table) and not table.name.endswith(_NOT_FILLED)


def beside(table: TableId, carried: Iterable[TableId]) -> TableId | None:
    """The table whose place a shadow table is to take, by their names; None where it is none of `carried`.

    A wrong guess does no harm: the RENAME decides.
    """
    meant = [one for one in carried if one.schema == table.schema and f"_{one.name}_" in table.name]
    return max(meant, key=lambda one: len(one.name), default=None)
