"""Rows that were read and wait for the cut at which they count, as files of Arrow that no table names.

They are in the lake since tasks of one machine write them and tasks of another read them. A run that ends leaves them
to the cleaner.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from catchment.model.location import Location
from catchment.sink.delta.files import delete, lake_file, lake_files
from catchment.sink.delta.layout import staged_dir
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused

_SUFFIX = ".arrow"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class LakeStage:
    """The stage of a feed in the lake at `root`."""

    root: Location
    feed: str

    def put(self, name: str, rows: pa.Table) -> None:
        """As the port has it."""
        place = self._place(name)
        try:
            with (
                storage_of(place).written(place) as file,
                pa.ipc.new_file(file, rows.schema, options=_OPTIONS) as writer,
            ):
                writer.write_table(rows)
        except (OSError, pa.ArrowException) as error:
            raise refused(error, f"cannot write {place}: {error}; check space and rights there") from error

    def take(self, name: str) -> pa.Table:
        """As the port has it."""
        place = self._place(name)
        with lake_file(place), storage_of(place).opened(place) as file:
            return pa.ipc.open_file(file).read_all()

    def remove(self, names: Iterable[str]) -> None:
        """As the port has it."""
        for name in names:
            delete(self._place(name))

    def _place(self, name: str) -> Location:
        return staged_dir(self.root, self.feed) / f"{name}{_SUFFIX}"


def staged_before(root: Location, feed: str, since: float) -> list[Location]:
    """Files of a feed's stage that are older (seconds since 1970). Those of another feed may be waited for."""
    return [one.place for one in lake_files(staged_dir(root, feed), _SUFFIX) if one.since < since]
