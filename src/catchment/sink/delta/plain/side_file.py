"""A side file: the keys of one data file in order, and which of its rows has each. It follows from the file's bytes.

    8 bytes   CATCHIDX
    4 and 4   bytes of the head, and CRC-32 of all that follows; little-endian, as all numbers here
    head      JSON: of which file, and where each shard's keys begin; with spaces to a multiple of 8 bytes
    offsets   8 bytes for each key and one more, where keys differ in size
    rows      4 bytes for each key, where the data file is not in order of key; with zeros to a multiple of 8 bytes
    keys      encoded (wire/keys/keys.py) without the shard, in order, shard by shard

Keys themselves, since an application's users could make hashes of theirs collide.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.plain.touched import only_shard
from catchment.wire.keys.keys import Keys, encode
from catchment.wire.keys.search import is_ordered, places_of

_MAGIC = b"CATCHIDX"
_VERSION = 1
_START = struct.Struct("<8sII")
# So many bytes of keys are put in order in memory. A file with more has no side file.
KEYS_BYTES_MAX = 256 * 1024 * 1024

Numbers = npt.NDArray[np.int64]
Bytes: TypeAlias = bytes | memoryview


class Of(msgspec.Struct, frozen=True):
    """The data file that a side file belongs to: its name, its bytes, and the columns of (shard, key)."""

    name: str
    size: int
    columns: tuple[str, ...]


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`rows`: those of the data file. `firsts`: of each shard its first key. `width`: bytes of each key, 0 where they
    differ. `in_order`: the data file has the keys in this order."""

    version: int
    of: Of
    rows: int
    shards: tuple[str, ...]
    firsts: tuple[int, ...]
    width: int
    in_order: bool


class SideFile:
    """The keys of a data file, in memory or mapped."""

    def __init__(self, head: _Head, keys: Keys, rows: npt.NDArray[np.uint32] | None) -> None:
        self._head, self._keys, self._rows = head, keys, rows

    def rows(self, wanted: Mapping[str, Keys]) -> BitMap:
        """Row numbers of the data file, from 0, that hold one of the keys, by shard without it; dead rows, too.

        Raises ValueError where the file turns out to be damaged.
        """
        found = BitMap()
        ends = [*self._head.firsts[1:], self._head.rows]
        for shard, first, end in zip(self._head.shards, self._head.firsts, ends, strict=True):
            if shard not in wanted:
                continue
            places = places_of(_part(self._keys, first, end), wanted[shard]) + first
            rows = places if self._rows is None else self._rows[places]
            if len(rows) and rows.max() >= self._head.rows:
                raise ValueError("a row beyond the data file")
            found |= BitMap(rows.astype(np.uint32))
        return found

    def parts(self) -> Iterator[Bytes]:
        """The bytes of the file, one part after the other."""
        head = msgspec.json.encode(self._head)
        parts: list[Bytes] = [head + b" " * (-len(head) % 8)]
        if self._keys.offsets is not None:
            parts.append(self._keys.offsets.view(np.uint8).data)
        if self._rows is not None:
            parts += [self._rows.view(np.uint8).data, bytes(-4 * len(self._rows) % 8)]
        parts.append(self._keys.data.data)
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        yield _START.pack(_MAGIC, len(parts[0]), checksum)
        yield from parts


def parsed(content: memoryview, of: Of, *, checked: bool) -> SideFile:
    """The side file of `of` in some bytes. `checked`: their checksum was right before.

    Raises ValueError for bytes that are damaged, of another file, or of another version.
    """
    try:
        magic, size, checksum = _START.unpack_from(content)
        begin = _START.size
        if magic != _MAGIC or size % 8 or not (checked or zlib.crc32(content[begin:]) == checksum):
            raise ValueError("its checksum is wrong")
        head = msgspec.json.decode(content[begin : begin + size], type=_Head)
    except (struct.error, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from error
    if head.version != _VERSION or head.of != of:
        raise ValueError("it is of another file, or another version")
    _must_fit(head)
    data = np.frombuffer(content, np.uint8)
    at, rows, offsets, numbers = begin + size, head.rows, None, None
    if not head.width:
        offsets, at = _array(data, at, rows + 1, 8).view(np.int64), at + 8 * (rows + 1)
    if not head.in_order:
        numbers, at = _array(data, at, rows, 4).view(np.uint32), at + 4 * rows + -4 * rows % 8
    keys = data[at:]
    if len(keys) != (head.width * rows if offsets is None else int(offsets[-1])):
        raise ValueError("it is longer or shorter than its keys")
    return SideFile(head, Keys(keys, offsets, head.width, rows), numbers)


def made(path: Location, of: Of) -> SideFile | None:
    """The side file of a data file, in memory; None where that would be too much. Raises SinkError."""
    shards: dict[str, int] = {}
    codes, parts, size = [np.empty(0, np.int64)], list[Keys](), 0
    with lake_parquet(path, read_dictionary=[SHARD]) as file:
        for group in range(file.num_row_groups):
            shard = only_shard(file.metadata.row_group(group))
            columns = of.columns if shard is None else of.columns[1:]
            rows = file.read_row_group(group, columns=list(columns))
            parts.append(encode(rows, of.columns[1:]))
            if shard is None:
                codes.append(_coded(rows[SHARD], shards))
            else:
                codes.append(np.full(rows.num_rows, shards.setdefault(shard, len(shards)), np.int64))
            size += len(parts[-1].data)
            if size > KEYS_BYTES_MAX:
                return None
    return _in_order(of, list(shards), np.concatenate(codes), _joined(parts))


def _in_order(of: Of, shards: Sequence[str], codes: Numbers, keys: Keys) -> SideFile:
    """The keys of each shard together and in order; `codes` tell the shard of each."""
    rows = None
    if not (np.all(codes[1:] >= codes[:-1]) and all(map(is_ordered, _by_shard(keys, codes, len(shards))))):
        order = np.argsort(codes, kind="stable")
        keys, codes = _taken(keys, order), codes[order]
        within = [_order(part) for part in _by_shard(keys, codes, len(shards))]
        firsts = np.searchsorted(codes, np.arange(len(shards)))
        moved = np.concatenate([part + first for part, first in zip(within, firsts, strict=True)])
        keys, rows = _taken(keys, moved), order[moved].astype(np.uint32)
    firsts = np.searchsorted(codes, np.arange(len(shards)))
    width = 0 if keys.offsets is not None else keys.width
    head = _Head(_VERSION, of, len(keys), tuple(shards), tuple(firsts.tolist()), width, rows is None)
    return SideFile(head, keys, rows)


def _coded(shards: pa.ChunkedArray, known: dict[str, int]) -> Numbers:
    """The number of each row's shard; shards that are new get the next ones."""
    coded = shards.cast(pa.string()).combine_chunks().dictionary_encode()
    numbers = [known.setdefault(name, len(known)) for name in coded.dictionary.to_pylist()]
    found: Numbers = np.asarray(numbers, np.int64)[coded.indices.to_numpy()]
    return found


def _joined(parts: Sequence[Keys]) -> Keys:
    """Keys behind one another: without offsets where all have one size, as UUIDs do."""
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    sizes = np.concatenate([np.empty(0, np.int64), *map(_sizes, parts)])
    if len(sizes) and sizes[0] and np.all(sizes == sizes[0]):
        return Keys(data, None, int(sizes[0]), len(sizes))
    return Keys(data, np.concatenate([[0], np.cumsum(sizes)]), 0, len(sizes))


def _sizes(keys: Keys) -> Numbers:
    return np.full(len(keys), keys.width, np.int64) if keys.offsets is None else np.diff(keys.offsets)


def _taken(keys: Keys, order: Numbers) -> Keys:
    if keys.offsets is None:
        return Keys(keys.data.reshape(-1, keys.width)[order].ravel(), None, keys.width, len(keys))
    return Keys.from_binary(keys.to_binary().take(pa.array(order)))


def _order(keys: Keys) -> Numbers:
    """The places of keys in order; where they are in order, nothing is sorted."""
    if is_ordered(keys):
        return np.arange(len(keys))
    return np.asarray(pc.sort_indices(keys.to_binary()), np.int64)


def _by_shard(keys: Keys, codes: Numbers, shards: int) -> list[Keys]:
    """The keys of each shard; those of one stand together."""
    ends = np.searchsorted(codes, np.arange(shards), "right").tolist()
    return [_part(keys, first, end) for first, end in pairwise([0, *ends])]


def _part(keys: Keys, first: int, end: int) -> Keys:
    if keys.offsets is None:
        return Keys(keys.data[first * keys.width : end * keys.width], None, keys.width, end - first)
    return Keys(keys.data, keys.offsets[first : end + 1], 0, end - first)


def _array(data: npt.NDArray[np.uint8], at: int, count: int, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of so many numbers. Raises ValueError where they are not there."""
    found = data[at : at + count * width]
    if len(found) != count * width:
        raise ValueError("it ends too soon")
    return found


def _must_fit(head: _Head) -> None:
    """Raise ValueError for a head that cannot be one."""
    firsts = [*head.firsts, head.rows]
    fits = len(head.shards) == len(head.firsts) and firsts[0] == 0 and head.width >= 0
    if not fits or any(first > end for first, end in pairwise(firsts)):
        raise ValueError("its shards do not fit")
