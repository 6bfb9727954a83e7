"""Columns of numbers in the variable length of protobuf: seven bits to a byte, the lowest first."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_SEVEN, _LOW, _MORE = np.uint64(7), np.uint64(0x7F), np.uint8(0x80)


def varint(number: int) -> bytes:
    """One number."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def zigzag(numbers: npt.NDArray[np.int64]) -> Numbers:
    """Numbers with a sign so that small ones stay small: 0, -1, 1, -2 as 0, 1, 2, 3."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def lengths(numbers: Numbers) -> Places:
    """How many bytes each takes."""
    found = np.ones(len(numbers), np.int64)
    rest = numbers >> _SEVEN
    while rest.any():
        found += rest > 0
        rest = rest >> _SEVEN
    return found


def put(into: Bytes, places: Places, numbers: Numbers, length: Places) -> None:
    """Write each at its place; `length` is that of `lengths`."""
    rest = numbers
    for index in range(int(length.max(initial=0))):
        longer = length > index
        if not longer.all():
            places, rest, length = places[longer], rest[longer], length[longer]
        octets = (rest & _LOW).astype(np.uint8)
        into[places + index] = np.where(length > index + 1, octets | _MORE, octets)
        rest = rest >> _SEVEN
