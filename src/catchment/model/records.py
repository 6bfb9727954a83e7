"""Plan, manifest and commit as they are stored: JSON that carries a version, so that people can read it (DESIGN 5).

A manifest of 1,000 shards with 50 tables each has 8 MB, of which an epoch changes little. So most manifests and commits
are stored as what differs from a whole one of some epochs before, which they name with its digest. What a reader needs
is two records, however long the chain of epochs is.
"""

import hashlib
from collections.abc import Mapping
from itertools import count
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec.structs import replace

from catchment.model.chunk import Progress
from catchment.model.definition import Definition
from catchment.model.epoch import Commit, Manifest, Outside, Plan, TableDelta, TableShape, epoch_text
from catchment.model.position import LogOffset, Position, Resets
from catchment.model.version import RECORD_VERSION, __version__

# So many records build on a whole one at most: a file that is lost takes no more of them with it.
CHANGES_MAX = 50
# A record of changes has at most this part of the whole one's bytes: else reading both is dearer than writing anew.
SHARE_MAX = 4

T = TypeVar("T", Manifest, Commit)
V = TypeVar("V")


class Unreadable(ValueError):
    """A record is damaged, or the one that it builds on is not there."""


class OfLater(ValueError):
    """A record has a version of a later Catchment."""


class Link(msgspec.Struct, frozen=True):
    """The whole record that another one builds on."""

    epoch: int
    digest: str


class Base(msgspec.Struct, Generic[T], frozen=True):
    """A whole record and its value. `size` is in bytes; `used` says how many records build on it."""

    value: T
    digest: str
    size: int
    used: int = 0


class _Head(msgspec.Struct, frozen=True):
    version: int = 1
    base: int | None = None
    base_digest: str = ""


class _ManifestChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is not as in the base: entries by shard, or by place in its tuple; None: there is none any more. `resets`:
    of shards whose position is the same but for them."""

    version: int
    base: int
    base_digest: str
    epoch: int
    previous: int
    time_us: int
    window_us: int
    cut: dict[str, Position] = {}
    resets: dict[str, Resets | None] = {}
    sealed: dict[str, LogOffset | None] = {}
    progress: dict[int, Progress] = {}
    shapes: dict[int, TableShape] = {}
    deltas: tuple[TableDelta, ...] = ()
    definitions: dict[str, tuple[Definition, ...] | None] = {}
    changes: int = 0
    log_bytes: int = 0
    chunk_bytes: int = 0
    outside: tuple[Outside, ...] | None = None
    absent: dict[str, int] = {}


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
    for kind in (Plan, Manifest, Commit, _Head, _ManifestChange, _CommitChange)
}
_CHANGES: dict[type, type] = {Manifest: _ManifestChange, Commit: _CommitChange}


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


def link_of(record: bytes) -> Link | None:
    """The record that one builds on; None of a whole one. Raises OfLater and Unreadable."""
    head: _Head = _decoded(record, _Head)
    if head.version > RECORD_VERSION:
        raise OfLater(
            f"has version {head.version}, of a later Catchment; this one ({__version__}) knows versions up to "
            f"{RECORD_VERSION}: upgrade it, see docs/upgrade.md"
        )
    return None if head.base is None else Link(head.base, head.base_digest)


def plan_of(record: bytes) -> Plan:
    """The plan that a record holds. Raises OfLater and Unreadable."""
    link_of(record)
    plan: Plan = _decoded(record, Plan)
    return plan


def base_of(record: bytes, kind: type[T]) -> Base[T]:
    """A whole record as the base of others. Raises OfLater, and Unreadable also for one that is not whole."""
    link = link_of(record)
    if link is not None:
        raise Unreadable(f"builds on epoch {epoch_text(link.epoch)}, and is to be whole")
    return Base(cast(T, _decoded(record, kind)), digest(record), len(record))


def value_of(record: bytes, base: Base[T] | None, kind: type[T]) -> T:
    """The value that a record holds; `base` is the one that `link_of` names.

    Raises OfLater, and Unreadable also where the base is missing or another one.
    """
    link = link_of(record)
    if link is None:
        return cast(T, _decoded(record, kind))
    if base is None or (base.value.epoch, base.digest) != (link.epoch, link.digest):
        found = "is not there" if base is None else "is another one"
        raise Unreadable(f"builds on epoch {epoch_text(link.epoch)}, whose record {found}")
    change = _decoded(record, _CHANGES[kind])
    if isinstance(base.value, Manifest):
        return _manifest(change, base.value)
    return _commit(change, base.value)


def changed(before: Mapping[str, V], after: Mapping[str, V]) -> dict[str, V | None]:
    """The entries that are not as before; None: there is none any more."""
    found: dict[str, V | None] = {
        name: value for name, value in after.items() if name not in before or before[name] != value
    }
    return found | {name: None for name in before if name not in after}


def merged(before: Mapping[str, V], changes: Mapping[str, V | None]) -> dict[str, V]:
    """The entries after `changes`."""
    found = {**before, **changes}
    return {name: value for name, value in found.items() if value is not None}


def _decoded(record: bytes, kind: type) -> Any:
    try:
        return _DECODERS[kind].decode(record)
    except msgspec.DecodeError as fault:
        raise Unreadable(f"cannot be read ({fault})") from fault


def _changed(value: T, base: Base[T]) -> bytes | None:
    link = Link(base.value.epoch, base.digest)
    if isinstance(value, Commit):
        versions = changed(base.value.versions, value.versions)
        return _encode(
            _CommitChange(RECORD_VERSION, *_fields(link), value.epoch, value.digest, value.time_us, versions)
        )
    change = _manifest_change(value, base.value, link)
    return None if change is None else _encode(change)


def _manifest_change(after: Manifest, before: Manifest, link: Link) -> _ManifestChange | None:
    """None where shards, tables or their number are others: an epoch that is worth a whole record."""
    alike = (after.feed, after.cut.keys()) == (before.feed, before.cut.keys())
    if not alike or len(after.progress) != len(before.progress) or len(after.shapes) != len(before.shapes):
        return None
    cut: dict[str, Position] = {}
    resets: dict[str, Resets | None] = {}
    for shard, position in after.cut.items():
        known = before.cut[shard]
        if position is known or position == known:
            continue
        if replace(known, resets=position.resets) == position:
            resets[shard] = position.resets
        else:
            cut[shard] = position
    return _ManifestChange(
        RECORD_VERSION,
        *_fields(link),
        after.epoch,
        after.previous,
        after.time_us,
        after.window_us,
        cut,
        resets,
        changed(before.sealed, after.sealed),
        _replaced(before.progress, after.progress),
        _replaced(before.shapes, after.shapes),
        after.deltas,
        changed(before.definitions, after.definitions),
        after.changes,
        after.log_bytes,
        after.chunk_bytes,
        None if after.outside == before.outside else after.outside,
        after.absent,
    )


def _fields(link: Link) -> tuple[int, str]:
    return link.epoch, link.digest


def _replaced(before: tuple[V, ...], after: tuple[V, ...]) -> dict[int, V]:
    """By place; entries that did not change are mostly the same objects, which is quick to see."""
    if before is after:
        return {}
    return {n: new for n, old, new in zip(count(), before, after) if new is not old and new != old}


def _with(before: tuple[V, ...], replaced: Mapping[int, V]) -> tuple[V, ...]:
    if not replaced:
        return before
    values = list(before)
    for place, value in replaced.items():
        if not 0 <= place < len(values):
            raise Unreadable(f"names entry {place} of {len(values)}")
        values[place] = value
    return tuple(values)


def _manifest(change: _ManifestChange, base: Manifest) -> Manifest:
    unknown = (change.cut.keys() | change.resets.keys()) - base.cut.keys()
    if unknown:
        raise Unreadable(f"names shards that its base does not have: {', '.join(sorted(unknown))}")
    asked = {shard: replace(base.cut[shard], resets=resets) for shard, resets in change.resets.items()}
    try:
        return Manifest(
            feed=base.feed,
            epoch=change.epoch,
            previous=change.previous,
            time_us=change.time_us,
            window_us=change.window_us,
            cut={**base.cut, **asked, **change.cut},
            sealed=merged(base.sealed, change.sealed),
            progress=_with(base.progress, change.progress),
            shapes=_with(base.shapes, change.shapes),
            deltas=change.deltas,
            definitions=merged(base.definitions, change.definitions),
            changes=change.changes,
            log_bytes=change.log_bytes,
            chunk_bytes=change.chunk_bytes,
            outside=base.outside if change.outside is None else change.outside,
            absent=change.absent,
        )
    except Unreadable:
        raise
    except ValueError as fault:
        raise Unreadable(str(fault)) from fault


def _commit(change: _CommitChange, base: Commit) -> Commit:
    return Commit(change.epoch, change.digest, change.time_us, merged(base.versions, change.versions))
