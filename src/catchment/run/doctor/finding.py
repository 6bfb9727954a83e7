"""What the doctor says."""

from enum import Enum

import msgspec


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
