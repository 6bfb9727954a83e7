"""Properties of the lake's Delta tables: whose rows stand in one, and which layout it has."""

from collections.abc import Mapping

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.version import LAKE_LAYOUT, __version__

# Catchment alone thins out the logs of its tables, and removes their files. So a vacuum finds nothing to do. It would
# judge by the age of a file, and a file that an older version needs may have any.
UNDISTURBED = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}
CONFIGURATION = {
    "delta.checkpointInterval": "100",
    # Longer than the longest readers' window (config.sink.KEEP_SECONDS_MAX).
    "delta.logRetentionDuration": "interval 2 days",
    **UNDISTURBED,
}
_OWNER, _LAYOUT = "catchment.feed", "catchment.layout"


def marks(feed: str | None) -> dict[str, str]:
    """What the properties of each table say: its layout, and whose rows it has unless all feeds share it."""
    return {_LAYOUT: str(LAKE_LAYOUT)} if feed is None else {_LAYOUT: str(LAKE_LAYOUT), _OWNER: feed}


def marked(configuration: Mapping[str, str]) -> dict[str, str] | None:
    """Those of a table of an earlier layout, marked with today's: its rows are the same. None for other tables."""
    wanted = str(LAKE_LAYOUT)
    return None if configuration.get(_LAYOUT) == wanted else {**configuration, _LAYOUT: wanted}


def must_be_known(configuration: Mapping[str, str], directory: Location) -> None:
    """Raise SinkError for a table, of these properties, of a layout that a later Catchment has given it."""
    layout = configuration.get(_LAYOUT, "0")
    if not layout.isdecimal() or int(layout) > LAKE_LAYOUT:
        raise SinkError(
            f"the lake table {directory} has layout {layout}, of a later Catchment; this one ({__version__}) knows "
            f"layouts up to {LAKE_LAYOUT}: upgrade it, see docs/upgrade.md"
        )


def is_owned(configuration: Mapping[str, str]) -> bool:
    """Whether a feed made the table; whose it is, `must_own` checks."""
    return _OWNER in configuration


def must_own(configuration: Mapping[str, str], feed: str, name: str, directory: Location) -> None:
    """Raise SinkError when the table is another feed's: rows would stand in it twice."""
    owner = configuration.get(_OWNER, feed)
    if owner != feed:
        raise SinkError(
            f"{name}: the lake table at {directory} is feed {owner}'s, and this feed is {feed}; give the feed "
            f"another sink.path, or its old name {owner} if it was renamed"
        )
