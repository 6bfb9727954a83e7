"""Deletion vectors: which rows of a data file are dead, as a roaring bitmap (Delta protocol: Deletion Vectors).

A file of vectors lies in `_dv/`, hidden to everybody's vacuum but the cleaner's. A full vacuum of delta-rs deletes
vectors that lie anywhere else. Trino refuses a directory whose name is not of letters and digits alone, so a table may
have them in `dv/` (decisions/2026-11-26-trino.md).
"""

import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping

from pyroaring import BitMap

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.sink.delta.files import write_bytes
from catchment.sink.delta.log.actions import Add, Remove, Vector
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused

HIDDEN, SHOWN = "_dv", "dv"
# A property of the table: whether its vectors are shown.
ARE_SHOWN = "catchment.shownVectors"
_MAGIC = 1681511377
_HEAD = struct.Struct("<IQI")  # magic, how many bitmaps of 32 bits, the upper 32 bits of the first
_FILE_VERSION = b"\x01"
# The alphabet of Z85 (rfc.zeromq.org/spec/32).
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_NAME_DIGITS = 20  # of a UUID in Z85


class VectorFile:
    """Vectors of one commit of a table with these properties, written together."""

    def __init__(self, directory: Location, properties: Mapping[str, str]) -> None:
        self._directory = directory
        self._name = SHOWN if properties.get(ARE_SHOWN) == "true" else HIDDEN
        self._id = uuid.uuid4()
        self._content = bytearray(_FILE_VERSION)

    def add(self, dead: BitMap) -> Vector:
        """Take up the vector of a file; where it will lie."""
        vector = encoded(dead)
        offset = len(self._content)
        self._content += struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        return Vector("u", self._name + _z85(self._id.bytes), len(vector), len(dead), offset)

    def is_elsewhere(self, vector: Vector | None) -> bool:
        """Whether a vector is one of ours, in the directory that the table does not write to any more."""
        if vector is None or vector.storage_type != "u":
            return False
        return _directory(vector) in {HIDDEN, SHOWN} - {self._name}

    def write(self) -> int:
        """Write what was taken up, durably, if there is any; its bytes. Raises SinkError."""
        if len(self._content) == len(_FILE_VERSION):
            return 0
        write_bytes(self._directory / self._name / _name(self._id), bytes(self._content))
        return len(self._content)


def load(directory: Location, vector: Vector | None) -> BitMap:
    """Dead rows of a file, counted from 0. Raises SinkError for a vector that is gone, damaged or not known."""
    if vector is None:
        return BitMap()
    if vector.storage_type == "i":
        data = _unz85(vector.path_or_inline_dv)[: vector.size_in_bytes]
    elif vector.storage_type == "u":
        data = _read(directory / file_of(vector), vector)
    else:
        raise SinkError(
            f"{directory}: a deletion vector is stored as {vector.storage_type!r}: not known here"
        )
    return decoded(data, str(directory))


def file_of(vector: Vector) -> str:
    """Path of the file that holds a vector (of storage type `u`), relative to its table."""
    directory, name = _directory(vector), vector.path_or_inline_dv[-_NAME_DIGITS:]
    file = _name(uuid.UUID(bytes=_unz85(name)))
    return f"{directory}/{file}" if directory else file


def files_of(action: Add | Remove) -> Iterator[str]:
    """The files that an action names, relative to the table: a data file, and that of its vector."""
    yield action.file
    if action.deletion_vector is not None and action.deletion_vector.storage_type == "u":
        yield file_of(action.deletion_vector)


def encoded(dead: BitMap) -> bytes:
    """A vector's bytes: one bitmap, since no file has 2^32 rows."""
    return _HEAD.pack(_MAGIC, 1, 0) + dead.serialize()


def decoded(data: bytes, where: str) -> BitMap:
    """Dead rows of a vector's bytes. Raises SinkError for what is damaged or has rows beyond 2^32."""
    try:
        magic, count, key = _HEAD.unpack_from(data)
        if magic != _MAGIC or count > 1 or key:
            raise ValueError(f"{count} bitmaps, magic {magic}")
        return BitMap.deserialize(data[_HEAD.size :]) if count else BitMap()
    except (struct.error, ValueError) as error:
        raise SinkError(
            f"{where}: a deletion vector is damaged: {error}; put back a copy of the lake"
        ) from error


def _directory(vector: Vector) -> str:
    return vector.path_or_inline_dv[:-_NAME_DIGITS]


def _read(path: Location, vector: Vector) -> bytes:
    try:
        framed = storage_of(path).read_range(path, vector.offset or 0, vector.size_in_bytes + 8)
        (size,) = struct.unpack_from(">I", framed)
        data = framed[4:-4]
        (checksum,) = struct.unpack_from(">I", framed, len(framed) - 4)
    except (OSError, struct.error) as error:
        raise refused(
            error, f"{path}: a deletion vector cannot be read: {error}; put back a copy of the lake"
        ) from error
    if size != vector.size_in_bytes or checksum != zlib.crc32(data):
        raise SinkError(f"{path}: a deletion vector is damaged; put back a copy of the lake")
    return data


def _name(identity: uuid.UUID) -> str:
    return f"deletion_vector_{identity}.bin"


def _z85(data: bytes) -> str:
    """Bytes, four by four, as five digits each."""
    words = (word for (word,) in struct.iter_unpack(">I", data))
    return "".join(_DIGITS[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


def _unz85(text: str) -> bytes:
    found = bytearray()
    for at in range(0, len(text), 5):
        value = 0
        for digit in text[at : at + 5]:
            value = value * 85 + _VALUES[digit]
        found += struct.pack(">I", value)
    return bytes(found)
