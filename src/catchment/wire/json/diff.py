"""Differences between two JSON documents of MySQL, applied: binary JSON and differences to binary JSON.

Source: MySQL, sql/json_diff.h (an operation, a path, a value) and sql-common/json_binary.h (the format; keys
are ordered by length, then by bytes). Only what lies on a path is taken apart; all the rest is moved as bytes.
"""

import json
import re
from typing import Final

import msgspec

from catchment.model.errors import CorruptLog

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_OBJECTS, _ARRAYS = (0, 1), (2, 3)
_LARGE_OBJECT, _LARGE_ARRAY = 1, 3
_INLINED: Final = {
    False: {4: 1, 5: 2, 6: 2},
    True: {4: 1, 5: 2, 6: 2, 7: 4, 8: 4},
}  # by width of the container
_SIZES: Final = {4: 1, 5: 2, 6: 2, 7: 4, 8: 4, 9: 8, 10: 8, 11: 8}
_STRING, _OPAQUE = 12, 15
_SIZE_MAX: Final = 1 << 30
_DEPTH_MAX: Final = 100
_LEG: Final = re.compile(rb'\.("(?:[^"\\]|\\.)*"|[^.\[\]"*\s]+)|\[(\d{1,10})\]', re.S)

Leg = bytes | int  # a key or an index


class Raw(msgspec.Struct, frozen=True):
    """A value that is not taken apart: its type and its bytes."""

    kind: int
    data: bytes


class Parts(msgspec.Struct):
    """An array or object that was taken apart; `keys` is None for an array."""

    keys: list[bytes] | None
    values: list["Raw | Parts"]


Node = Raw | Parts


class Diff(msgspec.Struct, frozen=True):
    """One difference."""

    operation: int
    path: list[Leg]
    value: Raw | None


def changed(document: bytes, diffs: bytes) -> bytes:
    """The document after all differences, applied one after the other. Raises CorruptLog."""
    if not document:
        raise CorruptLog("a JSON document without bytes cannot be changed in part")
    root: Node = _whole(document)
    at = 0
    while at < len(diffs):
        diff, at = _diff(diffs, at)
        root = _applied(root, diff)
    raw = _packed(root)
    return bytes([raw.kind]) + raw.data


def _whole(document: bytes) -> Raw:
    """The root value, cut to its length."""
    return Raw(document[0], document[1 : 1 + _size(document[0], document, 1)])


def _diff(data: bytes, at: int) -> tuple[Diff, int]:
    operation = data[at]
    path, at = _counted(data, at + 1)
    if operation == _REMOVE:
        return Diff(operation, _legs(path), None), at
    if operation not in (_REPLACE, _INSERT):
        raise CorruptLog(f"{operation} is no operation on JSON")
    value, at = _counted(data, at)
    if not value:
        raise CorruptLog("a difference of JSON has no value")
    return Diff(operation, _legs(path), _whole(value)), at


def _counted(data: bytes, at: int) -> tuple[bytes, int]:
    """A string with its length in front, as in packets."""
    first = data[at] if at < len(data) else 0xFF
    width = {0xFB: -1, 0xFC: 2, 0xFD: 3, 0xFE: 8, 0xFF: -1}.get(first, 0)
    size = int.from_bytes(data[at + 1 : at + 1 + width], "little") if width > 0 else first
    at += 1 + width
    if width < 0 or at + size > len(data):
        raise CorruptLog("a difference of JSON ends too early")
    return data[at : at + size], at + size


def _legs(path: bytes) -> list[Leg]:
    """The steps of a path such as `$.a."b c"[3]`."""
    if path[:1] != b"$":
        raise CorruptLog("a difference of JSON has a malformed path")
    legs: list[Leg] = []
    at = 1
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise CorruptLog("a difference of JSON has a malformed path")
        legs.append(int(match[2]) if match[1] is None else _key(match[1]))
        at = match.end()
    if len(legs) > _DEPTH_MAX:
        raise CorruptLog("a difference of JSON lies deeper than documents are")
    return legs


def _key(text: bytes) -> bytes:
    """A key of a path; one in quotes is a JSON string."""
    if not text.startswith(b'"'):
        return text
    try:
        return str(json.loads(text.decode(), strict=False)).encode()
    except ValueError:
        raise CorruptLog("a difference of JSON has a malformed key") from None


def _applied(root: Node, diff: Diff) -> Node:
    """The root after one difference."""
    if not diff.path:
        if diff.operation != _REPLACE or diff.value is None:
            raise CorruptLog("the root of a JSON document can only be replaced")
        return diff.value
    root = node = _apart(root)
    for leg in diff.path[:-1]:
        i = _index(node, leg)
        node.values[i] = node = _apart(node.values[i])
    leg = diff.path[-1]
    if diff.operation == _INSERT and diff.value is not None:
        _insert(node, leg, diff.value)
        return root
    i = _index(node, leg)
    if diff.value is not None:
        node.values[i] = diff.value
        return root
    del node.values[i]
    if node.keys is not None:
        del node.keys[i]
    return root


def _insert(node: Parts, leg: Leg, value: Raw) -> None:
    """A new member in the order of keys, or a new element in front of the one at that index, at most last."""
    if isinstance(leg, int) and node.keys is None:
        node.values.insert(leg, value)
        return
    if node.keys is None or isinstance(leg, int) or leg in node.keys:
        raise CorruptLog("a difference of JSON puts a value where it cannot be")
    i = sum((len(key), key) < (len(leg), leg) for key in node.keys)
    node.keys.insert(i, leg)
    node.values.insert(i, value)


def _index(node: Parts, leg: Leg) -> int:
    """Where the value of a key or index stands. Raises CorruptLog when there is none."""
    if isinstance(leg, int):
        if node.keys is None and leg < len(node.values):
            return leg
    elif node.keys is not None and leg in node.keys:
        return node.keys.index(leg)
    raise CorruptLog("a difference of JSON has a path that the document does not have")


def _apart(node: Node) -> Parts:
    """Take an array or object apart, one level deep. Raises CorruptLog for other values."""
    if isinstance(node, Parts):
        return node
    if node.kind > _LARGE_ARRAY:
        raise CorruptLog("a difference of JSON leads into a scalar")
    wide = node.kind in (_LARGE_OBJECT, _LARGE_ARRAY)
    keyed = node.kind in _OBJECTS
    w = 4 if wide else 2
    data = node.data
    count = _little(data, 0, w)
    first = 2 * w + (count * (w + 2) if keyed else 0)
    if first + count * (w + 1) > len(data):
        raise CorruptLog("a JSON document ends too early")
    keys: list[bytes] = []
    values: list[Node] = []
    room = len(data)  # values and keys do not share bytes, so together they are not longer than the whole
    for i in range(count):
        if keyed:
            keys.append(_slice(data, *_place(data, 2 * w + i * (w + 2), w)))
            room -= len(keys[-1])
        value = _child(data, first + i * (w + 1), wide)
        values.append(value)
        room -= len(value.data)
        if room < 0:
            raise CorruptLog("values of a JSON document share bytes")
    return Parts(keys if keyed else None, values)


def _place(data: bytes, at: int, w: int) -> tuple[int, int]:
    """Offset and length of a key."""
    return _little(data, at, w), _little(data, at + w, 2)


def _child(data: bytes, at: int, wide: bool) -> Raw:
    """The value of an entry."""
    kind = data[at]
    small = _INLINED[wide].get(kind)
    if small is not None:
        return Raw(kind, data[at + 1 : at + 1 + small])
    start = _little(data, at + 1, 4 if wide else 2)
    return Raw(kind, _slice(data, start, _size(kind, data, start)))


def _size(kind: int, data: bytes, at: int) -> int:
    """Bytes of the value that begins at `at`, without its type."""
    if kind in _SIZES:
        return _SIZES[kind]
    if kind in (*_OBJECTS, *_ARRAYS):
        w = 4 if kind in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
        return _little(data, at + w, w)
    if kind not in (_STRING, _OPAQUE):
        raise CorruptLog(f"{kind} is no type of JSON")
    start = at + (kind == _OPAQUE)
    size = 0
    for n in range(5):
        byte = _little(data, start + n, 1)
        size |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return start + n + 1 - at + size
    raise CorruptLog("a string of JSON has a malformed length")


def _little(data: bytes, at: int, n: int) -> int:
    return int.from_bytes(_slice(data, at, n), "little")


def _slice(data: bytes, at: int, n: int) -> bytes:
    if at + n > len(data):
        raise CorruptLog("a JSON document ends too early")
    return data[at : at + n]


def _packed(node: Node) -> Raw:
    """The value put together again; arrays and objects that were taken apart in the large format."""
    if isinstance(node, Raw):
        return node
    keys = node.keys or []
    head = 8 + 6 * len(keys) + 5 * len(node.values)
    entries, body = [], bytearray()
    for key in keys:
        entries.append((head + len(body)).to_bytes(4, "little") + len(key).to_bytes(2, "little"))
        body += key
    for value in map(_packed, node.values):
        if value.kind in _INLINED[True]:
            entries.append(bytes([value.kind]) + value.data.ljust(4, b"\0"))
            continue
        entries.append(bytes([value.kind]) + (head + len(body)).to_bytes(4, "little"))
        body += value.data
    size = head + len(body)
    if size > _SIZE_MAX:
        raise CorruptLog("a JSON document is larger than a server holds")
    start = len(node.values).to_bytes(4, "little") + size.to_bytes(4, "little")
    kind = _LARGE_ARRAY if node.keys is None else _LARGE_OBJECT
    return Raw(kind, start + b"".join(entries) + bytes(body))
