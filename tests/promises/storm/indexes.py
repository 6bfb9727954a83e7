"""Indexes that a server has broken: MariaDB marks one as corrupted that it built while others wrote, and refuses every
ALTER of the table from then on (11.8, index of a table that is cut into partitions).

No row is lost by that, since all are in the primary key. What was asked is asked again when the index is built again.
"""

import re

import pymysql

from tests.promises.storm.sight import Sight

_CORRUPT = 1712
_NAMED = re.compile(r"Index `?(\w+)`? is corrupted")


def broken_index(error: pymysql.err.OperationalError) -> str | None:
    """The index for which a server refuses a statement; None where it does so for anything else."""
    code, said = error.args[:2]
    found = _NAMED.search(said) if code == _CORRUPT else None
    return None if found is None else found[1]


def rebuilding(index: str, seen: Sight) -> tuple[str, str]:
    """DDL that builds an index again which a kind of the storm has made."""
    return (
        f"ALTER TABLE {seen.name} DROP INDEX {index}",
        f"ALTER TABLE {seen.name} ADD INDEX {index} ({seen.key[0]})",
    )
