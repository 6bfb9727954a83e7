"""Which files of a plain table nobody can need any more: replaced ones past the readers' window, and lost attempts."""

from collections.abc import Collection, Mapping

from catchment import world
from catchment.model.location import Location
from catchment.sink.delta.files import lake_files, name_within
from catchment.sink.delta.plain import change_data
from catchment.sink.delta.plain.vectors import DIRECTORY
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS, Window


def present_files(directory: Location) -> dict[str, float]:
    """The files of a table as they lie there, change data apart, with their ages in seconds. To be asked before the
    log: what is committed in between is named then."""
    now = world.now_us() / 1e6
    found = [*lake_files(directory, ".parquet"), *lake_files(directory / DIRECTORY, ".bin")]
    return {name_within(directory, one.place): now - one.since for one in found}


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
