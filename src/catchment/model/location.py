"""Where a lake lies: in a directory, or under a prefix of an object store."""

import re
from pathlib import Path
from typing import TypeAlias

import msgspec

from catchment.model.errors import ConfigError

# Each has one spelling, since a lake's tables carry their address in views and messages.
SCHEMES = ("s3", "gs", "az")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
# Characters that every store and every reader of a lake takes as they stand, in a name of an object and in a URL.
_NAME = re.compile(r"[A-Za-z0-9_=@$-][A-Za-z0-9_.=@$-]*")


class ObjectPath(msgspec.Struct, frozen=True, order=True):
    """The name of an object, or what names of objects begin with. `store`: `s3://bucket`; `key`: names with `/` between
    them, empty for the whole store. The parts of `pathlib.PurePath` that it has mean the same."""

    store: str
    key: str = ""

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.store, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key else self.store

    @property
    def name(self) -> str:
        """What stands behind the last slash."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "ObjectPath":
        """What stands before the last slash; that of a whole store is itself."""
        return ObjectPath(self.store, self.key.rpartition("/")[0])


Location: TypeAlias = Path | ObjectPath


def is_address(text: str) -> bool:
    """Whether a text names something of an object store, or of another service, and no directory."""
    return _ADDRESS.match(text) is not None


def location(place: str | Location) -> Location:
    """A directory, or an address `SCHEME://BUCKET/PREFIX`. Raises ConfigError."""
    if not isinstance(place, str):
        return place
    found = _ADDRESS.match(place)
    if found is None:
        return Path(place)
    scheme, rest = found[1], found[2].rstrip("/")
    if scheme not in SCHEMES:
        raise ConfigError(
            f"{scheme}:// is no object store that lakes can lie in; give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
            "az://CONTAINER/PREFIX, or a directory"
        )
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        # Whoever writes credentials into an address should not see them repeated.
        raise ConfigError(
            f"{scheme}://: the name of a bucket is expected behind it, of lower-case letters, digits, . and -; "
            "credentials do not belong there: they are taken from the environment"
        )
    if key and not all(map(_NAME.fullmatch, key.split("/"))):
        raise ConfigError(
            f"{scheme}://{bucket}/...: a prefix is expected of letters, digits, _ . = @ $ and -, with one / between "
            "its parts, of which none begins with a dot"
        )
    return ObjectPath(f"{scheme}://{bucket}", key)
