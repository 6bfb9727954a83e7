"""A rule of a stream: which tables it is for, and what of their rows is given.

The first rule that takes a table counts. A table that no rule takes is not given.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from catchment.config.table_patterns import check_rules, name_in, takes
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.serve.rules.key_range import is_key_range, key_range
from catchment.serve.rules.refused import Refused

EXCLUDE = "exclude"  # as VStream has it
OF_MAX = 65536


@dataclass(frozen=True, slots=True)
class Rule:
    """`match`: a pattern of tables, as a feed file has them (docs/patterns.md).

    `filter`: a SELECT, a range of keyspace ids such as `-80`, `exclude`, or nothing, which gives all. `of` and `index`:
    of so many slices of the keys, the one with that number, from 0.

    Raises ConfigError where any of it is malformed. Whether a filter fits a table is asked when it is compiled.
    """

    match: str
    filter: str = ""
    of: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        try:
            self._check()
        except ValueError as fault:
            raise ConfigError(f"rule for {self.match or 'no table'}: {fault}") from None

    def takes(self, table: TableId) -> bool:
        """Whether it is for a table. Those of the server itself no rule takes."""
        return takes((self.match,), table)

    @property
    def excludes(self) -> bool:
        """Whether it says that its tables are not given."""
        return self.filter.strip().lower() == EXCLUDE

    @property
    def selects(self) -> bool:
        """Whether its filter is a SELECT."""
        return bool(self.filter.strip()) and not self.excludes and not is_key_range(self.filter)

    def _check(self) -> None:
        if self.match.startswith("!"):
            raise Refused(
                "a rule takes tables; put one with filter: exclude in front of it for those to leave out"
            )
        if not self.match:
            raise Refused(
                "match is empty: write a table such as shop.orders, a glob such as shop.*, or /regex/"
            )
        check_rules((self.match,))
        if not 1 <= self.of <= OF_MAX or not 0 <= self.index < self.of:
            raise Refused(
                f"index {self.index} of {self.of} is no slice: of is 1 to {OF_MAX}, index from 0 to one less than of"
            )
        if self.excludes and self.of > 1:
            raise Refused("a table that is excluded has no slices: leave of and index out")
        if is_key_range(self.filter):
            key_range(self.filter)
        elif self.selects:
            self._check_select()

    def _check_select(self) -> None:
        # Not above: sqlglot takes half a second to import, and many rules need none.
        from catchment.serve.rules.select import select_of

        match = name_in(self.match)
        if match is None:
            raise Refused("a SELECT is for one table: match it by its name, or give a range of keyspace ids")
        named = select_of(self.filter).table
        if named.rpartition(".")[2] != match.rpartition(".")[2] or ("." in named and named != match):
            raise Refused(f"its filter reads FROM {named}: name the same table in both")


def first_of(rules: Iterable[Rule], table: TableId) -> Rule | None:
    """The rule that counts for a table; None where it is not given."""
    rule = next((rule for rule in rules if rule.takes(table)), None)
    return None if rule is None or rule.excludes else rule
