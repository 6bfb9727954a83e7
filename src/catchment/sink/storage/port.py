"""What a lake asks of the place where it lies."""

from contextlib import AbstractContextManager
from typing import IO, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from catchment.model.location import Location

Place = TypeVar("Place", bound=Location)


class Stored(msgspec.Struct, Generic[Place], frozen=True):
    """A file that is there: its bytes, and seconds since 1970 when it came to its name."""

    place: Place
    size: int
    since: float


class StorageAway(OSError):
    """A place does not answer, or cannot serve anybody now: the same may succeed later, and nothing is missing."""


class Storage(Protocol[Place]):
    """Files by name. A file never changes: what stands is durable and whole. All raise OSError, FileNotFoundError for
    a file that is not there, StorageAway where nobody can tell."""

    def read(self, place: Place) -> bytes:
        """All of a file."""
        ...

    def read_range(self, place: Place, offset: int, size: int) -> bytes:
        """A part of a file, from a byte on; shorter where the file ends."""
        ...

    def opened(self, place: Place) -> AbstractContextManager[pa.NativeFile]:
        """A file to be read here and there."""
        ...

    def stored(self, place: Place) -> Stored[Place] | None:
        """What is known of a file without reading it; None where there is none."""
        ...

    def listed(self, directory: Place, suffix: str) -> list[Stored[Place]]:
        """The files right in a directory whose names end so; none where there is no directory."""
        ...

    def below(self, directory: Place, suffix: str) -> list[Stored[Place]]:
        """The same of a directory and all directories in it."""
        ...

    def directories(self, directory: Place) -> list[str]:
        """Names of the directories right in another."""
        ...

    def create(self, place: Place, content: bytes) -> None:
        """A new file, whole or not at all. Raises FileExistsError when there is one, whoever else is creating it."""
        ...

    def written(self, place: Place) -> AbstractContextManager[IO[bytes]]:
        """A new file that is there when the block ends, and not when it fails. Its name is nobody else's."""
        ...

    def replace(self, place: Place, content: bytes, *, ages: bool = False) -> None:
        """Another content under a name, whole at each moment; nothing has to stand there. `ages`: what stands there is
        as old afterwards, where the place can do that."""
        ...

    def share(self, source: Place, target: Place) -> None:
        """A file under a second name, which may have it already."""
        ...

    def delete(self, place: Place) -> None:
        """Remove a file, if it is there, durably."""
        ...

    def mark(self, place: Place) -> None:
        """A file without content that came to its name now."""
        ...

    def flush(self, place: Place) -> None:
        """Make a file durable that somebody else wrote."""
        ...

    def make_directory(self, directory: Place) -> None:
        """Make a directory with all those above it."""
        ...

    def must_serve(self, directory: Place) -> None:
        """Raise OSError where a file cannot be created, or where `create` would not tell that one stands there."""
        ...

    def options(self) -> dict[str, str]:
        """What programs that are built on the same library have to be told of the place, secrets apart."""
        ...
