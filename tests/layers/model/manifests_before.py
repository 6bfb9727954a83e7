"""Records of manifests as versions 1 and 2 were written, each beside what it was then (manifests_before.json).

What each was is the manifest of then as JSON: positions, seals and definitions by shard, copies in one list.
"""

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_suffix(".json")
_KEPT: dict[str, Any] = json.loads(_FILE.read_text())

# What commits of version 1 name the first of them by.
CONTENT: str = _KEPT["content"]


def kept(what: str) -> list[tuple[bytes, dict[str, Any]]]:
    """The records of a kind in order, and what each was."""
    return [(one["record"].encode(), one["value"]) for one in _KEPT[what]]
