"""What the doctor says."""

from collections.abc import Sequence
from enum import Enum

import msgspec

_NAMED_MAX = 2


class Severity(Enum):
    """ERROR: the feed cannot run, or its lake would be wrong. WARNING: it can, but read what it risks."""

    ERROR = "error"
    WARNING = "warning"
    OK = "ok"


class Finding(msgspec.Struct, frozen=True):
    """One thing found. `shard` is empty when it is not about one shard; `remedy` names the setting or
    statement to change."""

    severity: Severity
    shard: str
    found: str
    risk: str = ""
    remedy: str = ""


class TableFound(msgspec.Struct, frozen=True):
    """A chosen table that can be carried: `rows` by the estimates of its shards, the columns of its key."""

    table: str
    rows: int
    key: tuple[str, ...]
    shards: tuple[str, ...]


class Diagnosis(msgspec.Struct, frozen=True):
    """All that the doctor says of a feed. `exclusions`: lines to paste under `tables`, for those that cannot be
    carried."""

    shards: tuple[str, ...]
    findings: tuple[Finding, ...]
    tables: tuple[TableFound, ...]
    exclusions: tuple[str, ...]


def on_shards(shards: Sequence[str], count: int) -> str:
    """Where something was found, of `count` shards: `shard -80`, `both shards`, `all 64 shards`, `shards -80, 80- and 3
    more`."""
    if len(shards) == 1:
        return f"shard {shards[0]}"
    if len(shards) == count:
        return "both shards" if count == 2 else f"all {count} shards"
    more = f" and {len(shards) - _NAMED_MAX} more" if len(shards) > _NAMED_MAX else ""
    return f"shards {', '.join(shards[:_NAMED_MAX])}{more}"
