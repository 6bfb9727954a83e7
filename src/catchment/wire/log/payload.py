"""The payload of a transaction that MySQL logged compressed (TRANSACTION_PAYLOAD), as a stream of bytes.

Source: MySQL, mysql/binlog/event/control_events.h (Transaction_payload_event). Fields of a type, a length and a
value come first, up to a type of 0. The events follow, packed as one zstd stream.
"""

from typing import Final

import pyarrow as pa

from catchment.model.errors import CorruptLog

_END, _SIZE, _COMPRESSION, _PLAIN_SIZE = 0, 1, 2, 3  # types of fields
_ZSTD, _NONE = 0, 255
PIECE: Final = 1 << 18  # bytes unpacked at once


class Payload:
    """Unpacks in pieces. zstd's window is at most 128 MB (its decoder refuses larger ones)."""

    def __init__(self, body: bytes) -> None:
        """Read the fields in front of the packed events. Raises CorruptLog."""
        fields, at = _fields(body)
        compression = fields.get(_COMPRESSION, _ZSTD)
        packed = pa.py_buffer(body)[at:]
        if fields.get(_SIZE, len(packed)) != len(packed):
            raise CorruptLog(f"a transaction payload of {fields[_SIZE]} bytes came with {len(packed)}")
        if compression not in (_ZSTD, _NONE):
            raise CorruptLog(f"a transaction payload is packed in an unknown way ({compression})")
        self._left = fields.get(_PLAIN_SIZE, len(packed) if compression == _NONE else -1)
        if self._left < 0:
            raise CorruptLog("a transaction payload does not tell its length")
        self._seen = 0
        reader = pa.BufferReader(packed)
        self._stream = reader if compression == _NONE else pa.CompressedInputStream(reader, "zstd")

    def read(self, wanted: int) -> bytes:
        """The next piece; nothing at the end. `wanted` bytes (or fewer) when that is more than a piece.

        It is never longer than what came before it: a length that is only announced takes no memory.
        Raises CorruptLog when the bytes cannot be unpacked, or are not as many as announced.
        """
        if self._left == 0 and wanted > 0:
            return b""
        try:
            piece: bytes = self._stream.read(
                min(max(wanted, PIECE), max(self._seen, PIECE), max(self._left, 1))
            )
        except (OSError, pa.ArrowInvalid) as failed:
            raise CorruptLog(f"a transaction payload cannot be unpacked: {failed}") from None
        self._left -= len(piece)
        self._seen += len(piece)
        if self._left < 0 or (not piece and self._left):
            raise CorruptLog("a transaction payload unpacks to another length than it announces")
        return piece


def _fields(body: bytes) -> tuple[dict[int, int], int]:
    """The fields as numbers by type, and where the packed events begin."""
    fields: dict[int, int] = {}
    at = 0
    while True:
        kind, at = _number(body, at)
        if kind == _END:
            return fields, at
        size, at = _number(body, at)
        if size > len(body) - at:
            raise CorruptLog("a transaction payload ends inside its fields")
        if kind in (_SIZE, _COMPRESSION, _PLAIN_SIZE):
            fields[kind], end = _number(body, at)
            if end != at + size:
                raise CorruptLog("a transaction payload has a malformed field")
        at += size


def _number(body: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer and the place behind it."""
    first = body[at] if at < len(body) else 0xFF
    width = {0xFB: -1, 0xFC: 2, 0xFD: 3, 0xFE: 8, 0xFF: -1}.get(first, 0)
    if width < 0 or at + 1 + width > len(body):
        raise CorruptLog("a transaction payload ends inside its fields")
    value = int.from_bytes(body[at + 1 : at + 1 + width], "little") if width else first
    return value, at + 1 + width
