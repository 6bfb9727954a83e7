"""Files in directories, local or mounted."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from catchment.sink.storage.port import Stored


class LocalStorage:
    """`catchment.sink.storage.port.Storage` over a file system with hard links."""

    def read(self, place: Path) -> bytes:
        """As the port has it."""
        with _absent_below_a_file():
            return place.read_bytes()

    def read_range(self, place: Path, offset: int, size: int) -> bytes:
        """As the port has it."""
        with _absent_below_a_file(), place.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    @contextmanager
    def opened(self, place: Path) -> Iterator[pa.NativeFile]:
        """As the port has it."""
        with _absent_below_a_file():
            file = pa.OSFile(str(place))
        with file:
            yield file

    def stored(self, place: Path) -> Stored[Path] | None:
        """As the port has it."""
        try:
            found = place.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stored(place, found.st_size, found.st_mtime)

    def listed(self, directory: Path, suffix: str) -> list[Stored[Path]]:
        """As the port has it."""
        found = (self.stored(path) for path in directory.glob(f"*{suffix}"))
        return [one for one in found if one is not None]

    def below(self, directory: Path, suffix: str) -> list[Stored[Path]]:
        """As the port has it."""
        found = (self.stored(path) for path in directory.rglob(f"*{suffix}"))
        return [one for one in found if one is not None]

    def directories(self, directory: Path) -> list[str]:
        """As the port has it."""
        return [path.name for path in directory.glob("*") if path.is_dir()]

    def create(self, place: Path, content: bytes) -> None:
        """As the port has it. A link is made whole, and not where a name stands (link(2))."""
        draft = place.parent / f".{uuid.uuid4().hex}{place.suffix}.tmp"
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, place)
        finally:
            draft.unlink(missing_ok=True)
        sync_directory(place.parent)

    @contextmanager
    def written(self, place: Path) -> Iterator[IO[bytes]]:
        """As the port has it."""
        self.make_directory(place.parent)
        with place.open("xb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                sync_directory(place.parent)
            except BaseException:
                place.unlink(missing_ok=True)
                raise

    def replace(self, place: Path, content: bytes, *, ages: bool = False) -> None:
        """As the port has it."""
        self.make_directory(place.parent)
        draft = place.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            before = place.stat() if ages else None
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                os.utime(draft, ns=(before.st_atime_ns, before.st_mtime_ns))
            os.replace(draft, place)
            # Hadoop keeps a checksum beside what it has written itself.
            place.with_name(f".{place.name}.crc").unlink(missing_ok=True)
            sync_directory(place.parent)
        finally:
            draft.unlink(missing_ok=True)

    def share(self, source: Path, target: Path) -> None:
        """As the port has it: a hard link, of which no byte is written. It has the times of the other name."""
        os.utime(source)
        with suppress(FileExistsError):
            os.link(source, target)
            sync_directory(target.parent)

    def delete(self, place: Path) -> None:
        """As the port has it."""
        with suppress(FileNotFoundError):
            place.unlink()
            sync_directory(place.parent)

    def mark(self, place: Path) -> None:
        """As the port has it."""
        place.touch()

    def flush(self, place: Path) -> None:
        """As the port has it."""
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(place.parent)

    def make_directory(self, directory: Path) -> None:
        """As the port has it; their names are durable."""
        if directory.is_dir():
            return
        self.make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)

    def must_serve(self, directory: Path) -> None:
        """As the port has it. A file system that has links makes none where a name stands (link(2))."""
        trial = directory / f".{uuid.uuid4().hex}"
        try:
            self.make_directory(directory)
            self.create(trial, b"")
        finally:
            trial.unlink(missing_ok=True)

    def options(self) -> dict[str, str]:
        """As the port has it."""
        return {}


@contextmanager
def _absent_below_a_file() -> Iterator[None]:
    """A name below a file is that of nothing: path_resolution(7) tells it by another error than an absent name."""
    try:
        yield
    except NotADirectoryError as fault:
        raise FileNotFoundError(fault.errno, fault.strerror, fault.filename) from fault


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
