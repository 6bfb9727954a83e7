"""Plan, manifest and commit as they are stored: JSON that carries a version, so that people can read it (DESIGN 5).

A manifest of 1,000 shards with 50 tables each has 8 MB, of which an epoch changes little. So most manifests and commits
are stored as what differs from a whole one of some epochs before, which they name with its digest. What a reader needs
is two records, however long the chain of epochs is. Those of versions 1 and 2 are read, too (model/records_before.py).
"""

import hashlib
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec.structs import replace

from catchment.model.differences import changed, merged
from catchment.model.epoch import Commit, Manifest, Plan
from catchment.model.epoch_number import epoch_text
from catchment.model.manifest_change import ManifestChange, change_of, manifest_after
from catchment.model.records_before import (
    VERSION_MAX,
    ManifestBefore,
    ManifestChangeBefore,
    changed_before,
    content_digest,
    manifest_of,
)
from catchment.model.version import RECORD_VERSION, __version__

# So many records build on a whole one at most: a file that is lost takes no more of them with it.
CHANGES_MAX = 50
# A record of changes has at most this part of the whole one's bytes: else reading both is dearer than writing anew.
SHARE_MAX = 4

T = TypeVar("T", Manifest, Commit)


class Unreadable(ValueError):
    """A record is damaged, or the one that it builds on is not there."""


class OfLater(ValueError):
    """A record has a version of a later Catchment."""


class Link(msgspec.Struct, frozen=True):
    """The whole record that another one builds on."""

    epoch: int
    digest: str


class Base(msgspec.Struct, Generic[T], frozen=True):
    """A whole record and its value. `size` is in bytes; `used` says how many records build on it. `before`: a manifest
    as a record of an earlier version holds it."""

    value: T
    digest: str
    size: int
    used: int = 0
    before: ManifestBefore | None = None


class _Head(msgspec.Struct, frozen=True):
    version: int = 1
    base: int | None = None
    base_digest: str = ""

    @property
    def link(self) -> Link | None:
        return None if self.base is None else Link(self.base, self.base_digest)


class _CommitChange(msgspec.Struct, frozen=True):
    version: int
    base: int
    base_digest: str
    epoch: int
    digest: str
    time_us: int
    versions: dict[str, int | None]


_encode = msgspec.json.Encoder().encode
# Built while one thread is there: msgspec 0.22 crashes the process where two threads build a decoder at once.
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind)
    for kind in (
        Plan,
        Manifest,
        ManifestChange,
        ManifestBefore,
        ManifestChangeBefore,
        Commit,
        _CommitChange,
        _Head,
    )
}


def digest(record: bytes) -> str:
    """SHA-256 of a record, hexadecimal. It tells the epoch's content, too: a record of changes has its base's."""
    return hashlib.sha256(record).hexdigest()


def whole(value: Plan | Manifest | Commit) -> bytes:
    """The record of a value that builds on no other."""
    return b'{"version":%d,' % RECORD_VERSION + _encode(value)[1:]


def encoded(value: T, base: Base[T] | None) -> tuple[bytes, Base[T]]:
    """The record of a value, and the base for those of later epochs.

    It is whole without a base, where so much has changed that this is cheaper, and after CHANGES_MAX others.
    """
    if base is not None and base.used < CHANGES_MAX:
        record = _changed(value, base)
        if record is not None and len(record) * SHARE_MAX <= base.size:
            return record, replace(base, used=base.used + 1)
    record = whole(value)
    return record, Base(value, digest(record), len(record))


def names_of(record: bytes) -> frozenset[str]:
    """The digests by which a commit may name the record of a manifest. Raises OfLater and Unreadable.

    Records without a version are named by their content.
    """
    head = _head(record)
    if head.version > 1:
        return frozenset({digest(record)})
    return frozenset({digest(record), content_digest(_decoded(record, ManifestBefore))})


def link_of(record: bytes) -> Link | None:
    """The record that one builds on; None of a whole one. Raises OfLater and Unreadable."""
    return _head(record).link


def plan_of(record: bytes) -> Plan:
    """The plan that a record holds. Raises OfLater and Unreadable."""
    _head(record)
    plan: Plan = _decoded(record, Plan)
    return plan


def base_of(record: bytes, kind: type[T]) -> Base[T]:
    """A whole record as the base of others. Raises OfLater, and Unreadable also for one that is not whole."""
    head = _head(record)
    if head.link is not None:
        raise Unreadable(f"builds on epoch {epoch_text(head.link.epoch)}, and is to be whole")
    if issubclass(kind, Manifest) and head.version <= VERSION_MAX:
        before: ManifestBefore = _decoded(record, ManifestBefore)
        value: Any = _manifest_of(before)
        return Base(value, digest(record), len(record), before=before)
    return Base(cast(T, _decoded(record, kind)), digest(record), len(record))


def value_of(record: bytes, base: Base[T] | None, kind: type[T]) -> T:
    """The value that a record holds; `base` is the one that `link_of` names.

    Raises OfLater, and Unreadable also where the base is missing or another one.
    """
    head = _head(record)
    if head.link is None:
        return base_of(record, kind).value
    if base is None or (base.value.epoch, base.digest) != (head.link.epoch, head.link.digest):
        found = "is not there" if base is None else "is another one"
        raise Unreadable(f"builds on epoch {epoch_text(head.link.epoch)}, whose record {found}")
    value: Any
    if isinstance(base.value, Commit):
        value = _commit(_decoded(record, _CommitChange), base.value)
    elif head.version <= VERSION_MAX:
        value = _manifest_before(_decoded(record, ManifestChangeBefore), base.before)
    else:
        value = _manifest(_decoded(record, ManifestChange), base.value)
    return cast(T, value)


def _head(record: bytes) -> _Head:
    head: _Head = _decoded(record, _Head)
    if head.version > RECORD_VERSION:
        raise OfLater(
            f"has version {head.version}, of a later Catchment; this one ({__version__}) knows versions up to "
            f"{RECORD_VERSION}: upgrade it, see docs/upgrade.md"
        )
    return head


def _decoded(record: bytes, kind: type) -> Any:
    try:
        return _DECODERS[kind].decode(record)
    except msgspec.DecodeError as fault:
        raise Unreadable(f"cannot be read ({fault})") from fault


def _changed(value: T, base: Base[T]) -> bytes | None:
    if isinstance(value, Commit):
        before: Any = base.value
        versions = changed(before.versions, value.versions)
        return _encode(
            _CommitChange(
                RECORD_VERSION,
                base.value.epoch,
                base.digest,
                value.epoch,
                value.digest,
                value.time_us,
                versions,
            )
        )
    change = change_of(
        value, base.value, version=RECORD_VERSION, base=base.value.epoch, base_digest=base.digest
    )
    return None if change is None else _encode(change)


def _manifest(change: ManifestChange, base: Manifest) -> Manifest:
    try:
        return manifest_after(change, base)
    except ValueError as fault:
        raise Unreadable(str(fault)) from fault


def _manifest_before(change: ManifestChangeBefore, base: ManifestBefore | None) -> Manifest:
    if base is None:
        raise Unreadable("builds on a record of a later version")
    try:
        return manifest_of(changed_before(change, base))
    except ValueError as fault:
        raise Unreadable(str(fault)) from fault


def _manifest_of(before: ManifestBefore) -> Manifest:
    try:
        return manifest_of(before)
    except ValueError as fault:
        raise Unreadable(f"cannot be read ({fault})") from fault


def _commit(change: _CommitChange, base: Commit) -> Commit:
    return Commit(change.epoch, change.digest, change.time_us, merged(base.versions, change.versions))
