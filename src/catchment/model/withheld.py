"""What rules withheld of the columns of a table that became stale, so that its next copy does not show it."""

from collections.abc import Iterable, Sequence

import msgspec

from catchment.model.column_rule import ColumnRule, rule_of


class Withheld(msgspec.Struct, frozen=True):
    """All `columns` that a table had, and the `names` of those that were left out or masked. Both are empty where none
    was."""

    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def shown_by(self, columns: Iterable[str], rules: Sequence[ColumnRule]) -> tuple[list[str], list[str]]:
        """The withheld columns that are not there any more, and the new ones that these rules show: they may have the
        values of those."""
        there = list(columns)
        gone = [name for name in self.names if not _is_among(name, there)]
        came = [name for name in there if not _is_among(name, self.columns) and not is_withheld(name, rules)]
        return gone, came


def withheld_among(columns: Sequence[str], rules: Sequence[ColumnRule]) -> Withheld:
    """What the rules withhold of columns."""
    names = tuple(name for name in columns if is_withheld(name, rules))
    return Withheld(names, tuple(columns)) if names else Withheld()


def is_withheld(name: str, rules: Sequence[ColumnRule]) -> bool:
    """Whether rules leave a column out, or mask it."""
    rule = rule_of(rules, name)
    return rule is not None and (rule.excluded or rule.masking is not None)


def _is_among(name: str, columns: Iterable[str]) -> bool:
    return any(name.lower() == one.lower() for one in columns)
