"""Ranges of keyspace ids, and how Vitess makes a keyspace id from a column: its vindexes.

Ids of most vindexes have 8 bytes. Here they are numbers with the first byte highest, which order as the bytes do.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.table import Table
from catchment.serve.rules.conversions import must_be_utf8
from catchment.serve.rules.expression import (
    BOOLEAN,
    Call,
    Expression,
    Family,
    Field,
    Order,
    Values,
    shown,
    sort_of,
)
from catchment.serve.rules.refused import Refused
from catchment.serve.rules.xxhash64 import xxhash64

_RANGE = re.compile(r"\s*([0-9a-fA-F]*)-([0-9a-fA-F]*)\s*")
_ID_BYTES = 8

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Ids from `first` on and below `end`, as bytes. An empty `end` has no limit."""

    first: bytes
    end: bytes

    def holds_numbers(self, ids: Numbers) -> npt.NDArray[np.bool_]:
        """Which ids of 8 bytes lie in it."""
        held = ids >= np.uint64(_number(self.first))
        return held & (ids < np.uint64(_number(self.end))) if self.end else held

    def holds_bytes(self, ids: Values) -> Values:
        """Which ids lie in it."""
        held = pc.greater_equal(ids, pa.scalar(self.first))
        return pc.and_(held, pc.less(ids, pa.scalar(self.end))) if self.end else held


def is_key_range(text: str) -> bool:
    """Whether a text looks like `-80`, `40-80`, `80-` or `-`."""
    return _RANGE.fullmatch(text) is not None


def key_range(text: str) -> KeyRange:
    """Read a range. Raises Refused."""
    found = _RANGE.fullmatch(text)
    if found is None:
        raise Refused(f"{text!r} is no range of keyspace ids; write one such as -80, 40-80 or 80-")
    ends = []
    for digits in found.groups():
        if len(digits) % 2 or len(digits) > 2 * _ID_BYTES:
            raise Refused(
                f"{digits} in the range {text.strip()} is not 1 to {_ID_BYTES} bytes of two digits each"
            )
        ends.append(bytes.fromhex(digits))
    first, end = ends
    if end and first >= end:
        raise Refused(f"the range {text.strip()} is empty")
    return KeyRange(first, end)


def ids_of_hash(values: Values) -> Numbers:
    """`hash`: 3DES with a key of zeros, of the number in 8 bytes."""
    # Not above: whoever asks for no hash need not have the package.
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

    blocks = ids_of_numeric(values).astype(">u8").tobytes()
    cipher = Cipher(TripleDES(bytes(24)), modes.ECB()).encryptor()
    return np.frombuffer(cipher.update(blocks) + cipher.finalize(), ">u8").astype(np.uint64)


def ids_of_numeric(values: Values) -> Numbers:
    """`numeric`: the number itself; a negative one as its 64 bits."""
    if pa.types.is_decimal(values.type):
        return np.asarray(pc.fill_null(values.cast(pa.uint64()), 0))
    return np.asarray(pc.fill_null(values, 0)).view(np.uint64)


def ids_of_reverse_bits(values: Values) -> Numbers:
    """`reverse_bits`: the number's bits, the lowest first."""
    octets = ids_of_numeric(values).view(np.uint8).reshape(-1, _ID_BYTES)
    bits = np.unpackbits(octets, axis=1, bitorder="little")
    return np.packbits(bits, axis=1).view(">u8").reshape(-1).astype(np.uint64)


def ids_of_xxhash(values: Values) -> Numbers:
    """`xxhash`: xxHash64 of the bytes, or of the decimal digits of a number, lowest byte first. NULL has no bytes."""
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        values = values.cast(pa.string())
    values = pc.fill_null(values.cast(pa.large_binary()), b"")
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    _, offsets, data = array.buffers()
    rows = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return xxhash64(held, rows).byteswap()


@dataclass(frozen=True, slots=True)
class Vindex:
    """A function of Vitess from values to ids; None: the bytes are the id. `null`: whether NULL has an id."""

    ids: Callable[[Values], Numbers] | None
    families: tuple[Family, ...]
    null: bool = False


_BYTES = (Family.TEXT, Family.BYTES)
VINDEXES = {
    "hash": Vindex(ids_of_hash, (Family.INTEGER,)),
    "numeric": Vindex(ids_of_numeric, (Family.INTEGER,)),
    "reverse_bits": Vindex(ids_of_reverse_bits, (Family.INTEGER,)),
    "xxhash": Vindex(ids_of_xxhash, (Family.INTEGER, *_BYTES), null=True),
    "binary": Vindex(None, _BYTES),
}


def of_key(table: Table, wanted: str) -> Expression:
    """Whether the `hash` of the table's key lies in a range. Raises Refused."""
    if len(table.key) != 1:
        raise Refused(
            f"the key of {table.id} is {', '.join(table.key) or 'not known'}, and an id is made from one column; write "
            "select * ... where in_keyrange(column, 'hash', '-80')"
        )
    column = table.column(table.key[0])
    return in_key_range(Field(column.name, sort_of(column.type, Order.UNKNOWN)), "hash", wanted)


def in_key_range(field: Field, vindex: str, wanted: str) -> Expression:
    """Whether the id of a column lies in a range, by a vindex. Raises Refused."""
    known = VINDEXES.get(vindex.lower())
    if known is None:
        raise Refused(f"vindex {vindex} is not known here: write one of {', '.join(VINDEXES)}")
    family = field.sort.family
    if family not in known.families:
        fit = ", ".join(name for name, one in VINDEXES.items() if family in one.families) or "none"
        raise Refused(
            f"vindex {vindex} is not for {shown(field)}, which is {family.value}; for it there is {fit}: write "
            "in_keyrange(column, 'vindex', '-80')"
        )
    if family is Family.TEXT:
        must_be_utf8(field)
    return Call(partial(in_range, vindex.lower(), key_range(wanted)), (field,), BOOLEAN)


def in_range(name: str, wanted: KeyRange, values: Values) -> Values:
    """Kernel: which values have an id in a range, by the vindex of that name."""
    vindex = VINDEXES[name]
    if vindex.ids is None:
        held = wanted.holds_bytes(values.cast(pa.binary()))
    else:
        held = pa.array(wanted.holds_numbers(vindex.ids(values)))
    return held if vindex.null else pc.and_(pc.fill_null(held, False), pc.is_valid(values))


def _number(octets: bytes) -> int:
    return int.from_bytes(octets.ljust(_ID_BYTES, b"\0"), "big")
