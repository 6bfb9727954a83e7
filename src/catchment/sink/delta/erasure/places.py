"""Every file of a table that may have rows, whether a version names it or not, and which of them have keys."""

from collections.abc import Iterable

import numpy as np

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.sink.delta.erasure.sought import Held, Sought
from catchment.sink.delta.files import exists, lake_file, lake_files, name_within
from catchment.sink.delta.log.actions import lines
from catchment.sink.delta.plain.parallel import each
from catchment.sink.storage.choice import storage_of

_LOG = "_delta_log"
_NOTHING = Held(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


class Searched:
    """Files that were searched, each once: no byte of one ever changes. `unreadable`: why one could not be."""

    def __init__(self, sought: Sought) -> None:
        self.unreadable: dict[Location, SinkError] = {}
        self._sought = sought
        self._held: dict[Location, Held] = {}

    def holding(self, paths: Iterable[Location]) -> dict[Location, Held]:
        """Those of the files that have rows of the keys."""
        asked = list(paths)
        fresh = [path for path in asked if path not in self._held]
        self._held.update(zip(fresh, each(self._search, fresh), strict=True))
        return {path: held for path in asked if len(held := self._held[path])}

    def must_be_readable(self, paths: Iterable[Location]) -> None:
        """Raise the error of the first of them that could not be read."""
        for path in paths:
            if path in self.unreadable:
                raise self.unreadable[path]

    def _search(self, path: Location) -> Held:
        try:
            return self._sought.held_in(path)
        except FileNotFoundError:
            return _NOTHING
        except SinkError as error:
            if exists(path):
                self.unreadable[path] = error
            return _NOTHING


def data_files(directory: Location) -> list[Location]:
    """All Parquet files of a Delta table but those of its log."""
    with lake_file(directory):
        found = storage_of(directory).below(directory, ".parquet")
    return [one.place for one in found if not name_within(directory, one.place).startswith(f"{_LOG}/")]


def ever_named(directory: Location) -> set[str]:
    """The files, relative to the table, that an entry of its log names."""
    found: set[str] = set()
    for entry in lake_files(directory / _LOG, ".json"):
        with lake_file(entry.place):
            actions = lines(storage_of(directory).read(entry.place))
        for line in actions:
            found.update(one.file for one in (line.add, line.remove) if one is not None)
            found.update([line.cdc.path] if line.cdc is not None else [])
    return found
