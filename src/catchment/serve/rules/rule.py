"""A rule of a stream: which tables it is for, and what of their rows is given.

The first rule that takes a table counts. A table that no rule takes is not given.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from catchment.config.table_patterns import check_rules, takes
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.serve.rules.key_range import is_key_range, key_range
from catchment.serve.rules.refused import Refused

EXCLUDE = "exclude"  # as VStream has it
OF_MAX = 65536

_NAME = re.compile(r"[^*?\[\]/!]+")


@dataclass(frozen=True, slots=True)
class Rule:
    """`match`: a table `shop.orders`, a name `orders` in any schema, a glob `shop.*`, or `/regex/` of RE2. A regex is
    held against the whole of `schema.table`, one without any dot against the whole name of the table.

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
        regex = self._regex
        if regex is None:
            return takes((self._pattern,), table)
        return takes(("*.*",), table) and _fits(regex, table.name if "." not in regex else str(table))

    @property
    def excludes(self) -> bool:
        """Whether it says that its tables are not given."""
        return self.filter.strip().lower() == EXCLUDE

    @property
    def selects(self) -> bool:
        """Whether its filter is a SELECT."""
        return bool(self.filter.strip()) and not self.excludes and not is_key_range(self.filter)

    @property
    def _regex(self) -> str | None:
        return self.match[1:-1] if len(self.match) > 1 and self.match[0] == self.match[-1] == "/" else None

    @property
    def _pattern(self) -> str:
        return self.match if "." in self.match else f"*.{self.match}"

    def _check(self) -> None:
        if self.match.startswith("!"):
            raise Refused(
                "a rule takes tables; put one with filter: exclude in front of it for those to leave out"
            )
        if not self.match:
            raise Refused(
                "match is empty: write a table such as shop.orders, a glob such as shop.*, or /regex/"
            )
        if self._regex is None:
            check_rules((self._pattern,))
        else:
            _check_regex(self._regex)
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

        if not _NAME.fullmatch(self.match):
            raise Refused("a SELECT is for one table: match it by its name, or give a range of keyspace ids")
        named = select_of(self.filter).table
        if named.rpartition(".")[2] != self.match.rpartition(".")[2] or (
            "." in named and named != self.match
        ):
            raise Refused(f"its filter reads FROM {named}: name the same table in both")


def first_of(rules: Iterable[Rule], table: TableId) -> Rule | None:
    """The rule that counts for a table; None where it is not given."""
    rule = next((rule for rule in rules if rule.takes(table)), None)
    return None if rule is None or rule.excludes else rule


@lru_cache(maxsize=1 << 14)
def _fits(regex: str, text: str) -> bool:
    """Whether it is the whole of a text. RE2 takes a time that grows with the text, whatever a client wrote."""
    return bool(pc.match_substring_regex(pa.scalar(text), rf"\A(?:{regex})\z").as_py())


def _check_regex(regex: str) -> None:
    """Raises Refused. By itself, so that it cannot close the brackets around it."""
    try:
        pc.match_substring_regex(pa.scalar(""), regex)
    except pa.ArrowInvalid as fault:
        raise Refused(
            f"/{regex}/ is not a regular expression of RE2, which has no lookaround and no backreference: "
            f"{str(fault).removeprefix('Invalid regular expression: ')}"
        ) from None
