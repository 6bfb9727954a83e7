"""The index of a table: which rows of a data file hold keys that changed, by its side file where that is cheaper.

A side file follows from its data file alone, so it is right as long as it stands. It may go at any moment: then the
data file is scanned. Which of the rows that hold a key is alive, the table's own vectors say.
"""

import logging
import mmap
import os
import time
from collections.abc import Collection
from functools import cache
from pathlib import Path
from threading import Lock

from pyroaring import BitMap

from catchment.model.errors import SinkError, Unsupported
from catchment.model.location import Location
from catchment.sink.delta.files import exists
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.sink.delta.plain.index_directory import USED_SECONDS, TableFiles, delete_unused
from catchment.sink.delta.plain.index_rule import BY_COST, Rule
from catchment.sink.delta.plain.side_file import Of, SideFile, made, parsed
from catchment.sink.delta.plain.touched import Changed

# So many scans are never reached.
_NEVER = -(1 << 62)
_log = logging.getLogger(__name__)


class Index:
    """The index of one table, whose plain table lies at `plain`. `directory`: where side files lie; None: there is no
    index, and every look scans. Threads may ask for several files at a time."""

    def __init__(self, plain: Location, directory: Path | None = None, rule: Rule | None = None) -> None:
        self._plain, self._directory, self._rule = plain, directory, rule or BY_COST
        self._files = None if directory is None else TableFiles(directory, plain)
        self._scans: dict[str, int] = {}
        self._right: dict[str, tuple[int, int, int]] = {}
        self._making = Lock()

    def rows(self, changed: Changed, file: LakeFile) -> BitMap:
        """Row numbers of a data file, from 0, that hold one of the keys, dead ones too. Raises SinkError."""
        path, files = self._plain / file.path, self._files
        wanted = changed.within(file)
        if not wanted:
            return BitMap()
        if files is None or "/" in file.path or not self._rule.serves(file.rows, wanted):
            return changed.rows(path)
        of = Of(file.path, file.add.size, changed.columns)
        try:
            found = self._found(files, of) or self._made(files, of, changed)
            if found is not None:
                return found.rows(changed.by_shard())
        except OSError as error:
            _tell(self._directory, error.strerror or str(error))
        except (ValueError, Unsupported):
            self._forget(files, of)
        return changed.rows(path)

    def keep_only(self, names: Collection[str]) -> None:
        """Delete the side files of data files that are not among these."""
        for known in (self._scans, self._right):
            for name in known.keys() - set(names):
                known.pop(name, None)
        if self._files is None:
            return
        try:
            self._files.keep_only(names)
        except OSError as error:
            _tell(self._directory, error.strerror or str(error))

    def erase(self) -> None:
        """Delete all side files of the table: those of data files that are gone are never made again.

        Raises SinkError.
        """
        if self._files is None:
            return
        try:
            self._files.delete_all()
        except OSError as error:
            raise SinkError(
                f"{self._plain}: its side files in {self._directory}, which hold keys, cannot be deleted: {error}; "
                "delete them, or say it again"
            ) from error

    def _found(self, files: TableFiles, of: Of) -> SideFile | None:
        """The side file of a data file, mapped; None where there is none. Raises OSError, and ValueError for one that
        does not fit. All of it is read when it is met first, then as little as is asked."""
        try:
            handle = os.open(files.place(of.name), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            files.must_be_ours()
            about = os.fstat(handle)
            # A mapping outlives the name and the handle; one of no byte cannot be made.
            mapped = memoryview(
                mmap.mmap(handle, about.st_size, access=mmap.ACCESS_READ) if about.st_size else b""
            )
            if time.time() - about.st_mtime > USED_SECONDS:
                os.utime(handle)
        finally:
            os.close(handle)
        seen = (about.st_ino, about.st_size, about.st_ctime_ns)
        found = parsed(mapped, of, checked=self._right.get(of.name) == seen)
        self._right[of.name] = seen
        return found

    def _made(self, files: TableFiles, of: Of, changed: Changed) -> SideFile | None:
        """The side file, if it is time to make it, and nobody else does; None otherwise. Raises OSError, SinkError, and
        ValueError for keys that have no order."""
        scans = self._scans[of.name] = self._scans.get(of.name, 0) + 1
        pays = self._rule.pays(scans - 1, integers=changed.are_integers)
        if not pays or not self._making.acquire(blocking=False):
            return None
        # Where it cannot be made, so many scans pass before the next try.
        self._scans[of.name] = 0
        try:
            with files.building():
                # An erasure deletes data files, then side files.
                if not exists(self._plain / of.name):
                    return None
                found = made(self._plain / of.name, of)
                if found is None:
                    self._scans[of.name] = _NEVER
                else:
                    files.write(of.name, found.parts())
                return found
        finally:
            self._making.release()

    def _forget(self, files: TableFiles, of: Of) -> None:
        """Delete a side file that is damaged: it is made once more when that pays."""
        self._right.pop(of.name, None)
        try:
            files.delete(of.name)
        except OSError as error:
            _tell(self._directory, error.strerror or str(error))


def clean_index(directory: Path | None) -> None:
    """Delete the side files of tables and lakes that are gone."""
    if directory is None:
        return
    try:
        delete_unused(directory)
    except OSError as error:
        _tell(directory, error.strerror or str(error))


@cache
def _tell(directory: Path | None, error: str) -> None:
    """Tell once why settles scan, whatever the table."""
    _log.warning(
        "the index in %s cannot be used: %s; settles read the keys of whole files meanwhile; check rights and space "
        "there, or give another directory (sink.index)",
        directory,
        error,
    )
