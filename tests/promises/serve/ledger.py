"""What a client has made of a stream, as sums of digests: equal for equal rows, and cheap to keep at every vgtid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from catchment.serve.stream.events import Row
from tests.world.canonical import Key, canonical_row, key_of
from tests.world.oracle import State

_ALL = 1 << 64
# By shard and table.
Sums = dict[str, dict[str, int]]


class Wrong(AssertionError):
    """A row came that cannot follow what the client has."""


def digest(row: Mapping[str, Any]) -> int:
    """Of a canonical row, whatever the order of its columns, and however a number is written."""
    values = [(name, _plain(row[name])) for name in sorted(row)]
    return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest())


def sum_of(rows: Mapping[Key, Mapping[str, Any]]) -> int:
    """Of all rows of a table."""
    return sum(map(digest, rows.values())) % _ALL


def sums_of(state: State) -> dict[str, int]:
    """Of the tables of one shard."""
    return {table: sum_of(rows) for table, rows in state.items()}


@dataclass
class Ledger:
    """Takes rows; each must follow what is there, once its table is copied. `keys`: of the tables that come."""

    keys: Mapping[str, tuple[str, ...]]
    copied: bool = False
    sums: Sums = field(default_factory=dict)
    _digests: dict[tuple[str, str], dict[Key, int]] = field(default_factory=dict)

    def take(self, row: Row) -> None:
        """Apply a row. Raises Wrong where it came twice, or one before it did not come."""
        table = str(row.table)
        have = self._digests.setdefault((row.shard, table), {})
        change = 0
        if row.before is not None:
            key, expected = key_of(row.before, self.keys[table]), digest(canonical_row(row.before))
            found = have.pop(key, None)
            if self.copied and found != expected:
                raise Wrong(f"{row.shard} {table} {key}: the row before is not the one that came last")
            change -= found or 0
        if row.after is not None:
            key, new = key_of(row.after, self.keys[table]), digest(canonical_row(row.after))
            if self.copied and key in have:
                raise Wrong(f"{row.shard} {table} {key}: it came twice")
            change += new - have.get(key, 0)
            have[key] = new
        of_shard = self.sums.setdefault(row.shard, {})
        of_shard[table] = (of_shard.get(table, 0) + change) % _ALL


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value.normalize())
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value
