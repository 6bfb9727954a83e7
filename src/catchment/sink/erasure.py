"""What a sink is asked to erase, and what it has erased."""

from datetime import datetime
from enum import Enum

import msgspec
import pyarrow as pa

from catchment.model.table import TableId


class Spelling(Enum):
    """Which texts are the same key. A sink does not know the collations of the source."""

    EXACT = "exact"  # those of the same characters
    ANY = "any"  # those, too, that differ in case, accents or spaces at the end


class Erasure(msgspec.Struct, frozen=True):
    """Rows of a table that shall be nowhere in the sink. `keys`: a row each, with the source's names of the columns.

    `shard`: rows of that one alone. `keeps_versions`: what older versions need stays for the readers' window.
    `spelling`: None stops where another spelling of a key is met.
    """

    table: TableId
    keys: pa.Table
    shard: str | None = None
    keeps_versions: bool = False
    spelling: Spelling | None = None


class Erased(msgspec.Struct, frozen=True):
    """What an erasure has done. `found`: how many of the keys had rows. `readable`: which epochs can be read.

    `rows`: how many were removed, by place: `table` (of its newest version), `history` (files of older versions),
    `tail` and `change_data`. Those that are `kept` stay until `kept_until`. `newer`: rows of later epochs, which stay.
    `unreadable`: files that could not be searched. They are being written, or a crash cut them off.
    """

    table: str
    keys: int
    found: int
    rows: dict[str, int]
    rewritten: int
    deleted: int
    newer: int
    unreadable: tuple[str, ...]
    readable: str
    kept_until: datetime | None = None
