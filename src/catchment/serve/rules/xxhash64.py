"""xxHash64 with seed 0 (its specification 0.1.1), of many rows' bytes at once."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE, _LANES, _WORD, _HALF = 32, 4, 8, 4
_LOW = np.uint64(0xFFFFFFFF)
# Of four lanes, modulo 2 ** 64.
_STARTS = (0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579)


def xxhash64(data: npt.NDArray[np.uint8], offsets: Places) -> Numbers:
    """The hash of each row: row i has the bytes from offsets[i] up to offsets[i + 1]."""
    starts, sizes = offsets[:-1], np.diff(offsets)
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    words = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, strides=(1,))
    hashes = np.full(len(sizes), _P5)
    long = np.flatnonzero(sizes >= _STRIPE)
    hashes[long] = _of_stripes(words, starts[long], sizes[long])
    hashes += sizes.astype(np.uint64)
    places, left = starts + sizes // _STRIPE * _STRIPE, sizes % _STRIPE
    for _ in range(_STRIPE // _WORD - 1):
        rows = np.flatnonzero(left >= _WORD)
        mixed = hashes[rows] ^ _round(np.zeros(len(rows), np.uint64), words[places[rows]])
        hashes[rows] = _rotated(mixed, 27) * _P1 + _P4
        places[rows] += _WORD
        left[rows] -= _WORD
    rows = np.flatnonzero(left >= _HALF)
    hashes[rows] = _rotated(hashes[rows] ^ (words[places[rows]] & _LOW) * _P1, 23) * _P2 + _P3
    places[rows] += _HALF
    left[rows] -= _HALF
    for number in range(_HALF - 1):
        rows = np.flatnonzero(left > number)
        octets = padded[places[rows] + number].astype(np.uint64)
        hashes[rows] = _rotated(hashes[rows] ^ octets * _P5, 11) * _P1
    return _spread(hashes)


def _of_stripes(words: Numbers, starts: Places, sizes: Places) -> Numbers:
    """The four lanes over whole stripes of 32 bytes, and made one."""
    lanes = np.empty((_LANES, len(starts)), np.uint64)
    lanes[:] = np.array(_STARTS, np.uint64)[:, None]
    stripes = sizes // _STRIPE
    for number in range(int(stripes.max(initial=0))):
        rows = np.flatnonzero(stripes > number)
        for lane in range(_LANES):
            read = words[starts[rows] + number * _STRIPE + lane * _WORD]
            lanes[lane, rows] = _round(lanes[lane, rows], read)
    hashes = np.zeros(len(starts), np.uint64)
    for lane, bits in enumerate((1, 7, 12, 18)):
        hashes += _rotated(lanes[lane], bits)
    for lane in range(_LANES):
        own = _round(np.zeros(len(starts), np.uint64), lanes[lane])
        hashes = (hashes ^ own) * _P1 + _P4
    return hashes


def _round(lane: Numbers, read: Numbers) -> Numbers:
    return _rotated(lane + read * _P2, 31) * _P1


def _rotated(values: Numbers, bits: int) -> Numbers:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)


def _spread(hashes: Numbers) -> Numbers:
    hashes = (hashes ^ hashes >> np.uint64(33)) * _P2
    hashes = (hashes ^ hashes >> np.uint64(29)) * _P3
    return hashes ^ hashes >> np.uint64(32)
