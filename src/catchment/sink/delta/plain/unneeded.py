"""Which files of a table nobody can need any more: replaced ones past the readers' window, and lost attempts."""

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from catchment import world
from catchment.model.location import Location
from catchment.sink.delta.files import lake_file, name_within
from catchment.sink.delta.plain.change_data import DIRECTORY
from catchment.sink.delta.plain.vectors import HIDDEN
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS, Window
from catchment.sink.storage.choice import storage_of

_LOG = "_delta_log/"


class Present(msgspec.Struct, frozen=True):
    """What lies in a table's directory, by names, with ages in seconds. `files`: data files and vectors; `changes`:
    files of change data; `log`: files of the log, by their names in that."""

    files: Mapping[str, float]
    changes: Mapping[str, float]
    log: Mapping[str, float]


def present(directory: Location) -> Present:
    """What lies there. To be asked before the log: what is committed in between is named then. Raises SinkError."""
    now = world.now_us() / 1e6
    with lake_file(directory):
        found = storage_of(directory).below(directory, "")
    ages = {name_within(directory, one.place): now - one.since for one in found}
    return Present(
        {name: age for name, age in ages.items() if _is_of_table(name)},
        {name: age for name, age in ages.items() if name.startswith(f"{DIRECTORY}/")},
        {name.removeprefix(_LOG): age for name, age in ages.items() if name.startswith(_LOG)},
    )


def _is_of_table(name: str) -> bool:
    """Whether a name is that of a data file or of a vector. Other programs write into directories of partitions, and
    keep what is theirs in hidden ones."""
    first = name.partition("/")[0]
    hidden = first.startswith(("_", ".")) and "=" not in first
    return name.endswith((".parquet", ".bin")) and (first == HIDDEN or not hidden)


def is_old(name: str, age: float) -> bool:
    """Whether a file that no version names is of an attempt that has lost, as far as its age (seconds) tells."""
    return age > ATTEMPT_SECONDS


def unneeded(
    there: Present, window: Window, held: Collection[str] = (), lost: Callable[[str, float], bool] = is_old
) -> Iterator[str]:
    """Data files that no version of the window needs, and that are not `held` for kept ones. `lost`: whether one that
    no entry of the log names is of an attempt that cannot be committed any more, by its name and its age in seconds."""
    for name, age in there.files.items():
        if name in window.files or name in held:
            continue
        if name in window.replaced or lost(name, age):
            yield name


def old_changes(there: Present, keep_seconds: float) -> Iterator[str]:
    """Files of change data past the window. Each belongs to one commit, which is about as old as the file."""
    return (name for name, age in there.changes.items() if age > keep_seconds + ATTEMPT_SECONDS)


def old_drafts(there: Present) -> Iterator[str]:
    """Files of the log, relative to that, which a process that was killed had not given their names yet."""
    return (name for name, age in there.log.items() if name.endswith(".tmp") and is_old(name, age))
