"""Catchment: copy a sharded MySQL or MariaDB into a lakehouse, exact at every epoch."""

import importlib
from typing import TYPE_CHECKING, Any

from catchment.model.version import LAKE_LAYOUT, __version__

if TYPE_CHECKING:
    from catchment.api.changes import changes
    from catchment.api.epochs import epochs
    from catchment.api.read import read
    from catchment.feed.compare import verify
    from catchment.feed.dump import apply, dump, set_live, stop, tables
    from catchment.feed.erase import erase
    from catchment.serve.stream.stream import stream

__all__ = [
    "LAKE_LAYOUT",
    "__version__",
    "apply",
    "changes",
    "dump",
    "epochs",
    "erase",
    "read",
    "set_live",
    "stop",
    "stream",
    "tables",
    "verify",
]


_MODULES = {
    "apply": "catchment.feed.dump",
    "changes": "catchment.api.changes",
    "dump": "catchment.feed.dump",
    "epochs": "catchment.api.epochs",
    "erase": "catchment.feed.erase",
    "read": "catchment.api.read",
    "set_live": "catchment.feed.dump",
    "stop": "catchment.feed.dump",
    "stream": "catchment.serve.stream.stream",
    "tables": "catchment.feed.dump",
    "verify": "catchment.feed.compare",
}


def __getattr__(name: str) -> Any:
    """What reads a lake or commands a feed, imported at its first use: tasks on executors need none of it."""
    if name in _MODULES:
        from catchment.model.extras import needing

        with needing(f"catchment.{name}", "stream" if name == "stream" else "local"):
            return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module catchment has no attribute {name}")
