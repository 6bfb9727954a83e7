"""Catchment: copy a sharded MySQL or MariaDB into a lakehouse, exact at every epoch."""

from typing import TYPE_CHECKING, Any

from catchment.model.version import LAKE_LAYOUT, __version__

if TYPE_CHECKING:
    from catchment.api.changes import changes
    from catchment.api.epochs import epochs
    from catchment.api.read import read
    from catchment.feed.erase import erase

__all__ = ["LAKE_LAYOUT", "__version__", "changes", "epochs", "erase", "read"]


def __getattr__(name: str) -> Any:
    """What reads a lake, imported at its first use: tasks on executors need none of the query engines."""
    if name == "changes":
        from catchment.api.changes import changes

        return changes
    if name == "epochs":
        from catchment.api.epochs import epochs

        return epochs
    if name == "erase":
        from catchment.feed.erase import erase

        return erase
    if name == "read":
        from catchment.api.read import read

        return read
    raise AttributeError(f"module catchment has no attribute {name}")
