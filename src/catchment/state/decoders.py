"""Decoders of records, built one at a time: msgspec 0.22 crashes the process where two threads build one at once."""

from typing import Any, TypeVar

import msgspec

from catchment import world

_T = TypeVar("_T")

_lock = world.lock()
_built: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoded(record: bytes | str, type_: type[_T]) -> _T:
    """A record of JSON as a value; raises msgspec.DecodeError."""
    with _lock:
        if type_ not in _built:
            _built[type_] = msgspec.json.Decoder(type_)
    found: _T = _built[type_].decode(record)
    return found
