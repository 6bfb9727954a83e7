"""Objects of S3, Google Cloud Storage and Azure, by obstore.

Credentials, region and endpoint come from the environment, as those services' own tools have them, and from nowhere
else. So no feed file, plan, argument of a process or log has them.
"""

import io
import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from catchment.model.extras import needing
from catchment.model.location import ObjectPath
from catchment.sink.storage.port import StorageAway, Stored

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# So long a request is sent again while the store answers with an error of its own, or not at all.
_RETRY_SECONDS = 15
_RETRIES_MAX = 1000
_CONFLICTS_MAX = 20
_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_TAIL_BYTES = 4 << 20
_SPOOLED_BYTES = 32 << 20
# As programs that are built on the crate object_store name it (its ClientConfigKey).
_ALLOW_HTTP = "AWS_ALLOW_HTTP"


class ObjectStorage:
    """`catchment.sink.storage.port.Storage` over one bucket. What is put stands whole, and is durable."""

    def __init__(self, client: "ObjectStore") -> None:
        self._client = client

    def read(self, place: ObjectPath) -> bytes:
        """As the port has it."""
        import obstore

        with _as_os_error(place):
            return bytes(obstore.get(self._client, place.key).bytes())

    def read_range(self, place: ObjectPath, offset: int, size: int) -> bytes:
        """As the port has it."""
        import obstore

        with _as_os_error(place):
            return bytes(obstore.get_range(self._client, place.key, start=offset, length=size))

    @contextmanager
    def opened(self, place: ObjectPath) -> Iterator[pa.NativeFile]:
        """As the port has it: a small one is read at once, of a larger one its end, where a footer stands."""
        size, tail = self._end(place)
        if len(tail) == size:
            with pa.BufferReader(tail) as file:
                yield file
            return
        with pa.PythonFile(_Opened(self, place, size, tail), mode="r") as file:
            yield file

    def stored(self, place: ObjectPath) -> Stored[ObjectPath] | None:
        """As the port has it."""
        import obstore

        try:
            with _as_os_error(place):
                found = obstore.head(self._client, place.key)
        except FileNotFoundError:
            return None
        return Stored(place, found["size"], found["last_modified"].timestamp())

    def listed(self, directory: ObjectPath, suffix: str) -> list[Stored[ObjectPath]]:
        """As the port has it."""
        found = self._listed(directory)["objects"]
        return [_stored(directory.store, one) for one in found if one["path"].endswith(suffix)]

    def below(self, directory: ObjectPath, suffix: str) -> list[Stored[ObjectPath]]:
        """As the port has it."""
        import obstore

        with _as_os_error(directory):
            found = obstore.list(self._client, directory.key).collect()
        return [_stored(directory.store, one) for one in found if one["path"].endswith(suffix)]

    def directories(self, directory: ObjectPath) -> list[str]:
        """As the port has it."""
        return [prefix.rpartition("/")[2] for prefix in self._listed(directory)["common_prefixes"]]

    def create(self, place: ObjectPath, content: bytes) -> None:
        """As the port has it. The content has to be nobody else's: a put whose answer was lost is sent again, and
        meets its own object then. A put that meets another one is told to be sent again (S3: 409)."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        for _ in range(_CONFLICTS_MAX):
            try:
                with _as_os_error(place):
                    obstore.put(self._client, place.key, content, mode="create")
                return
            except AlreadyExistsError:
                with suppress(FileNotFoundError):
                    if self.read(place) == content:
                        return
                    raise FileExistsError(str(place)) from None
        raise OSError(f"{place}: the store says {_CONFLICTS_MAX} times that it is there, and that it is not")

    @contextmanager
    def written(self, place: ObjectPath) -> Iterator[IO[bytes]]:
        """As the port has it: in memory, a large one in a file of this host, and sent when it is complete."""
        import obstore

        with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as file:
            yield file
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            try:
                with _as_os_error(place):
                    obstore.put(self._client, place.key, file)
            except OSError:
                # A large one comes in parts, and the answer to the last may be lost (S3: CompleteMultipartUpload).
                found = self.stored(place)
                if found is None or found.size != size:
                    raise

    def replace(self, place: ObjectPath, content: bytes, *, ages: bool = False) -> None:
        """As the port has it, but that a store keeps no time."""
        import obstore

        with _as_os_error(place):
            obstore.put(self._client, place.key, content)

    def share(self, source: ObjectPath, target: ObjectPath) -> None:
        """As the port has it: the store copies, and no byte comes here."""
        import obstore

        with _as_os_error(source):
            obstore.copy(self._client, source.key, target.key)

    def delete(self, place: ObjectPath) -> None:
        """As the port has it."""
        import obstore

        try:
            with _as_os_error(place):
                obstore.delete(self._client, place.key)
        except FileNotFoundError:
            pass

    def mark(self, place: ObjectPath) -> None:
        """As the port has it."""
        import obstore

        with _as_os_error(place):
            obstore.put(self._client, place.key, b"")

    def flush(self, place: ObjectPath) -> None:
        """As the port has it: whatever stands in a store is durable."""

    def make_directory(self, directory: ObjectPath) -> None:
        """As the port has it: a store has none."""

    def must_serve(self, directory: ObjectPath) -> None:
        """As the port has it. Some stores pass over the condition of a put, and write over what stands."""
        trial = directory / f"trial-{uuid.uuid4().hex}"
        try:
            self.create(trial, b"1")
            self.create(trial, b"2")
        except FileExistsError:
            return
        finally:
            with suppress(OSError):
                self.delete(trial)
        raise OSError(
            f"{trial.store} has no put-if-absent: it wrote over an object that stood there, so two writers could "
            "both commit; take a store that has it (docs/object-stores.md)"
        )

    def options(self) -> dict[str, str]:
        """As the port has it. All else they take from the environment by themselves."""
        return {"allow_http": "true"} if _http_allowed() else {}

    def _end(self, place: ObjectPath) -> tuple[int, bytes]:
        """The size of an object, and its last bytes. Azure gives no last ones, and is asked for the size first."""
        import obstore

        with _as_os_error(place):
            if place.store.startswith("az:"):
                size = obstore.head(self._client, place.key)["size"]
                first = max(0, size - _TAIL_BYTES)
                return size, self.read_range(place, first, size - first)
            found = obstore.get(self._client, place.key, options={"range": {"suffix": _TAIL_BYTES}})
            return found.meta["size"], bytes(found.bytes())

    def _listed(self, directory: ObjectPath) -> Any:
        import obstore

        with _as_os_error(directory):
            return obstore.list_with_delimiter(self._client, directory.key)


def _stored(store: str, found: Any) -> Stored[ObjectPath]:
    return Stored(ObjectPath(store, found["path"]), found["size"], found["last_modified"].timestamp())


class _Opened(io.RawIOBase):
    """An object of which the end is known."""

    def __init__(self, storage: ObjectStorage, place: ObjectPath, size: int, tail: bytes) -> None:
        self._storage, self._place, self._size, self._tail = storage, place, size, tail
        self._at = 0

    def readable(self) -> bool:
        """As files have it."""
        return True

    def seekable(self) -> bool:
        """As files have it."""
        return True

    def tell(self) -> int:
        """As files have it."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As files have it."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """As files have it."""
        behind = self._size if size < 0 else min(self._size, self._at + size)
        known = self._size - len(self._tail)
        if behind <= self._at:
            return b""
        if self._at >= known:
            found = self._tail[self._at - known : behind - known]
        else:
            found = self._storage.read_range(self._place, self._at, behind - self._at)
        self._at += len(found)
        return found


@cache
def object_storage(store: str) -> ObjectStorage:
    """The bucket of an address, `s3://bucket`; one client serves all threads. Raises NotInstalled, OSError."""
    with needing(f"{store}: a lake in an object store", "objects"):
        import obstore.store
    with _as_os_error(ObjectPath(store)):
        return ObjectStorage(
            obstore.store.from_url(
                store,
                client_options={"allow_http": _http_allowed()},
                # The time is what limits them: ten tries, which is its default, take 3 s where nobody listens.
                retry_config={
                    "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
                    "max_retries": _RETRIES_MAX,
                },
            )
        )


def _http_allowed() -> bool:
    return os.environ.get(_ALLOW_HTTP, "").lower() in ("1", "true")


@contextmanager
def _as_os_error(place: ObjectPath) -> Iterator[None]:
    """Raise what a store refuses as OSError, but for AlreadyExistsError."""
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        GenericError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{place} is not there") from None
    except AlreadyExistsError:
        raise
    except GenericError as error:
        # What is left when all tries got no answer, or one of the 5xx: what a store refuses has an error of its own.
        raise StorageAway(_said(str(error))) from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise PermissionError(_said(str(error))) from None
    except BaseError as error:
        raise OSError(_said(str(error))) from None


def _said(text: str) -> str:
    """What a store says, in a line. Its own answer names the access key, so of that the code alone is told."""
    line, code = text.partition("\n")[0].partition("<")[0].strip(), _CODE.search(text)
    return f"{line} {code[1]}" if code else line
