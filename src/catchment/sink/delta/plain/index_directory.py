"""The directory of this machine that has the side files of tables: a cache, of which all may be deleted at any time.

    <directory>/<digest of a plain table's address>/<name of a data file>.keys

Keys stand there in clear, so nobody else may read them. Nobody else may write them either: rows die by them.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catchment.model.location import Location

SUFFIX = ".keys"
# Side files that no settle has asked for so long are of a table or a lake that is gone.
UNUSED_SECONDS = 7 * 86_400.0
# Since a settle asked for a side file, its time is at most so old.
USED_SECONDS = 86_400.0
# So much of a disk stays free: it is the machine's, and may hold the state store.
FREE_SHARE = 0.05
_DRAFT = ".tmp"
_TABLE = re.compile(r"[0-9a-f]{32}")


def default_directory() -> Path | None:
    """Where side files lie unless a feed file says otherwise; None where the user has no home."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # A path that is not absolute counts as none (XDG Base Directory Specification).
        base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "catchment" / "index"


class TableFiles:
    """The side files of one table. All of it raises OSError."""

    def __init__(self, directory: Path, plain: Location) -> None:
        address = os.path.abspath(plain) if isinstance(plain, Path) else str(plain)
        self._above = directory
        self._own = directory / hashlib.sha256(address.encode()).hexdigest()[:32]

    def place(self, name: str) -> Path:
        """Where the side file of a data file lies."""
        return self._own / (name + SUFFIX)

    def must_be_ours(self) -> None:
        """Raise PermissionError where another user could have written side files."""
        for directory in (self._above, self._own):
            found = directory.stat()
            if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(f"{directory} is another user's, or others may write to it")

    @contextmanager
    def building(self) -> Iterator[None]:
        """While somebody makes side files: an erasure waits for the end, and deletes these, too. Raises OSError where
        there is no room."""
        self._above.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own.mkdir(mode=0o700, exist_ok=True)
        self.must_be_ours()
        disk = os.statvfs(self._own)
        if disk.f_bavail < FREE_SHARE * disk.f_blocks:
            raise OSError(errno.ENOSPC, f"less than {FREE_SHARE:.0%} of its disk is free")
        with self._locked(fcntl.LOCK_SH):
            yield

    def write(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """A side file, whole at each moment. It is not flushed: one that a crash damages is made once more."""
        place = self.place(name)
        draft = place.with_name(f".{uuid.uuid4().hex}{_DRAFT}")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(draft, place)
        finally:
            draft.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """The side file of a data file."""
        self.place(name).unlink(missing_ok=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Delete all side files but those of these data files, and what is left of writers that died."""
        kept = {name + SUFFIX for name in names}
        lost = [name for name in _names(self._own) if name not in kept]
        for name in lost:
            if name.endswith(SUFFIX):
                (self._own / name).unlink(missing_ok=True)
        if any(name.endswith(_DRAFT) for name in lost):
            with suppress(BlockingIOError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                for name in lost:
                    (self._own / name).unlink(missing_ok=True)

    def delete_all(self) -> None:
        """Delete all side files, and wait for those who are making some."""
        if not self._own.is_dir():
            return
        with self._locked(fcntl.LOCK_EX):
            for name in _names(self._own):
                (self._own / name).unlink(missing_ok=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        handle = os.open(self._own, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)


def delete_unused(directory: Path) -> None:
    """Delete side files that nobody has asked for a week, of all tables. What else lies in a directory that a feed file
    names is not ours. Raises OSError."""
    before = time.time() - UNUSED_SECONDS
    for table in filter(_TABLE.fullmatch, _names(directory)):
        with suppress(FileNotFoundError):  # another run cleans, too
            _delete_older(directory / table, before)


def _delete_older(own: Path, before: float) -> None:
    unused = own.stat().st_mtime < before
    for name in _names(own):
        path = own / name
        if name.endswith((SUFFIX, _DRAFT)) and path.stat().st_mtime < before:
            path.unlink()
    if unused:
        with suppress(OSError):  # it may have others
            own.rmdir()


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
