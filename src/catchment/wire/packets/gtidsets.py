"""Sets of GTIDs as MySQL writes them in the log (PREVIOUS_GTIDS) and reads them in a request for it.

Source: MySQL, Gtid_set::encode in sql/rpl_gtid_set.cc. It writes how many names there are. For each it writes a
uuid, in the format with tags a tag, and how many intervals follow. Of each interval it writes the first number
and the one behind its last.
"""

import uuid
from typing import Final

from catchment.model.errors import CorruptLog
from catchment.model.gtidset import GtidSet

_TAGGED: Final = 1


def encoded_gtids(gtids: GtidSet) -> bytes:
    """The set as COM_BINLOG_DUMP_GTID takes it; with tags only where there are some, which 8.3 and later know."""
    tagged = any(origin.tag for origin in gtids.origins)
    count = len(gtids.origins)
    head = (_TAGGED << 56 | count << 8 | _TAGGED) if tagged else count
    parts = [head.to_bytes(8, "little")]
    for origin in gtids.origins:
        parts.append(uuid.UUID(origin.uuid).bytes)
        if tagged:
            parts.append(bytes([len(origin.tag) << 1]) + origin.tag.encode())
        parts.append(len(origin.intervals).to_bytes(8, "little"))
        parts += [n.to_bytes(8, "little") for first, last in origin.intervals for n in (first, last + 1)]
    return b"".join(parts)


def previous_gtids(body: bytes) -> str:
    """The set in the notation of gtid_executed, without line breaks; empty for an empty set. Raises CorruptLog."""
    head, at = _number(body, 0)
    tagged = head >> 56 == _TAGGED
    names = (head >> 8) & 0xFFFFFFFFFFFF if tagged else head
    if names * 24 > len(body):
        raise CorruptLog("the GTIDs before this file are malformed")
    found: dict[str, list[str]] = {}
    for _ in range(names):
        source = str(uuid.UUID(bytes=_taken(body, at, 16)))
        tag, at = _tag(body, at + 16) if tagged else ("", at + 16)
        count, at = _number(body, at)
        if count * 16 > len(body) - at:
            raise CorruptLog("the GTIDs before this file are malformed")
        intervals = []
        for _ in range(count):
            first, at = _number(body, at)
            behind, at = _number(body, at)
            intervals.append(str(first) if behind == first + 1 else f"{first}-{behind - 1}")
        found.setdefault(source, []).extend([tag, *intervals] if tag else intervals)
    return ",".join(":".join([source, *parts]) for source, parts in found.items())


def _taken(body: bytes, at: int, n: int) -> bytes:
    if at + n > len(body):
        raise CorruptLog("the GTIDs before this file end too early")
    return body[at : at + n]


def _number(body: bytes, at: int) -> tuple[int, int]:
    return int.from_bytes(_taken(body, at, 8), "little"), at + 8


def _tag(body: bytes, at: int) -> tuple[str, int]:
    """A tag: its length in MySQL's serialization (at most 32, so one byte: twice the length), then letters."""
    size = _taken(body, at, 1)[0] >> 1
    text = _taken(body, at + 1, size)
    if size > 32 or not text.isascii():
        raise CorruptLog("the GTIDs before this file have no such tag")
    return text.decode(), at + 1 + size
