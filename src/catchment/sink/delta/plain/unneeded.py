"""Which files of a plain table nobody can need any more: replaced ones past the readers' window, and lost attempts."""

from collections.abc import Collection, Mapping

from catchment import world
from catchment.model.location import Location
from catchment.sink.delta.files import lake_file, lake_files, name_within
from catchment.sink.delta.plain import change_data
from catchment.sink.delta.plain.vectors import HIDDEN
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS, Window
from catchment.sink.storage.choice import storage_of


def present_files(directory: Location) -> dict[str, float]:
    """The files of a table as they lie there, change data apart, with their ages in seconds. To be asked before the
    log: what is committed in between is named then."""
    now = world.now_us() / 1e6
    with lake_file(directory):
        found = storage_of(directory).below(directory, "")
    named = ((name_within(directory, one.place), one) for one in found)
    return {name: now - one.since for name, one in named if _is_of_table(name)}


def _is_of_table(name: str) -> bool:
    """Whether a name is that of a data file or of a vector. Other programs write into directories of partitions, and
    keep what is theirs in hidden ones."""
    first = name.partition("/")[0]
    hidden = first.startswith(("_", ".")) and "=" not in first
    return name.endswith((".parquet", ".bin")) and (first == HIDDEN or not hidden)


def unneeded(present: Mapping[str, float], window: Window, held: Collection[str]) -> list[str]:
    """Files that no version of the window needs, and that are not `held` for kept ones."""
    return [
        name
        for name, age in present.items()
        if name not in window.files
        and name not in held
        and (name in window.replaced or age > ATTEMPT_SECONDS)
    ]


def old_change_data(directory: Location, keep_seconds: float) -> list[str]:
    """Files of change data past the window. Each belongs to one commit, which is about as old as the file."""
    now = world.now_us() / 1e6
    told = lake_files(directory / change_data.DIRECTORY, ".parquet")
    old = (one.place for one in told if now - one.since > keep_seconds + ATTEMPT_SECONDS)
    return [name_within(directory, place) for place in old]
