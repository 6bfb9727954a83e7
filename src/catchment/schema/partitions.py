"""ALTER TABLE statements on partitions that leave all rows and their values: a list of what is known.

Servers refuse a change for which a row would have no partition, in every sql_mode (error 1526). ALTER IGNORE, which
may delete such rows, is none of these.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from catchment.schema.statement import Word

_NAME = r"[^\s(),]+"
_NAMES = rf"(?:ALL|{_NAME}(?: , {_NAME})*)"
_UNLOGGED = r"(?: (?:LOCAL|NO_WRITE_TO_BINLOG))?"
_VALUES = r"(?: VALUES (?:LESS THAN (?:\(\)|MAXVALUE)|IN (?:\(\)|DEFAULT))| DEFAULT)?"
_OPTIONS = (
    r"(?: (?:STORAGE )?ENGINE(?: =)? INNODB| COMMENT(?: =)? text| (?:DATA|INDEX) DIRECTORY(?: =)? text"
    r"| (?:MAX_ROWS|MIN_ROWS)(?: =)? [0-9]+)*"
)
_PART = rf"SUBPARTITION {_NAME}{_OPTIONS}"
_DEFINITION = rf"PARTITION {_NAME}{_VALUES}{_OPTIONS}(?: \( {_PART}(?: , {_PART})* \))?"
_DEFINITIONS = rf"\( {_DEFINITION}(?: , {_DEFINITION})* \)"
_BY_HASH = r"(?:LINEAR )?(?:HASH|KEY(?: ALGORITHM = [0-9])?) \(\)"
_BY = (
    rf"PARTITION BY (?:{_BY_HASH}|(?:RANGE|LIST)(?: COLUMNS)? \(\))(?: PARTITIONS [0-9]+)?"
    rf"(?: SUBPARTITION BY {_BY_HASH}(?: SUBPARTITIONS [0-9]+)?)?(?: {_DEFINITIONS})?"
)
_KNOWN = re.compile(
    rf"{_BY}|REMOVE PARTITIONING|COALESCE PARTITION{_UNLOGGED} [0-9]+"
    rf"|ADD PARTITION(?: IF NOT EXISTS)?{_UNLOGGED} (?:PARTITIONS [0-9]+|{_DEFINITIONS})"
    rf"|REORGANIZE PARTITION{_UNLOGGED}(?: {_NAMES} INTO {_DEFINITIONS})?"
    rf"|(?:ANALYZE|CHECK|OPTIMIZE|REBUILD) PARTITION{_UNLOGGED} {_NAMES}"
)
# What changes partitions behind other actions, without a comma in front of it.
_BEHIND = ("PARTITION", "REMOVE")
_PARTS = ("PARTITION", "SUBPARTITION")


def keeps_rows(actions: Sequence[Word]) -> bool:
    """Whether the words behind the name of a table are one of these statements, and nothing more."""
    return _KNOWN.fullmatch(_outline(actions)) is not None


def without_partitioning(actions: Sequence[Word]) -> Sequence[Word]:
    """The words without one of these statements, which may stand alone or behind others."""
    depth = 0
    for place, word in enumerate(actions):
        depth += (word.keyword == "(") - (word.keyword == ")")
        begins = place == 0 or (word.keyword in _BEHIND and actions[place - 1].keyword != ",")
        if depth == 0 and begins and keeps_rows(actions[place:]):
            return actions[:place]
    return actions


def _outline(words: Sequence[Word]) -> str:
    """The words, with `name` and `text` for what is quoted, and `()` for what stands in parentheses and is no list of
    partitions."""
    found: list[str] = []
    hidden = 0
    for word, after in pairwise([*words, Word("")]):
        if hidden:
            hidden += (word.keyword == "(") - (word.keyword == ")")
        elif word.keyword == "(" and after.keyword not in _PARTS:
            hidden = 1
            found.append("()")
        else:
            found.append(word.keyword or ("text" if word.quote == "'" else "name"))
    return " ".join(found)
