# cython: compiled
# ruff: noqa: ANN001, ANN201, ANN202, F821, RUF100  (signatures are in search.pyi)
"""Encoded keys in order: which rows hold one of some others.

The keys may lie in a file that somebody has damaged. So each offset is checked before a byte is read by it.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t
from cython.cimports.libc.string import memcmp

View = cython.struct(
    data=cython.p_const_char,
    offsets=cython.pointer[cython.const[int64_t]],
    size=int64_t,
    width=int64_t,
    rows=int64_t,
)
# How a key stands to another; a row of which the offsets lead out of the data has none.
BELOW = cython.declare(cython.int, -1)
EQUAL = cython.declare(cython.int, 0)
ABOVE = cython.declare(cython.int, 1)
NONE = cython.declare(cython.int, 2)


def places_of(held, wanted):
    among: View = _view(held)
    asked: View = _view(wanted)
    begins_of = np.zeros(asked.rows, np.int64)
    ends_of = np.zeros(asked.rows, np.int64)
    begins: int64_t[::1] = begins_of
    ends: int64_t[::1] = ends_of
    row: int64_t
    begin: int64_t = 0
    end: int64_t = 0
    with cython.nogil:
        for row in range(asked.rows):
            # Keys in order are found one behind the other.
            if row > 0 and _compared(cython.address(asked), row - 1, cython.address(asked), row) == ABOVE:
                begin = 0
            begin = _bound(cython.address(among), begin, cython.address(asked), row, False)
            if begin < 0:
                break
            end = _bound(cython.address(among), begin, cython.address(asked), row, True)
            if end < 0:
                break
            begins[row] = begin
            ends[row] = end
    if begin < 0 or end < 0:
        raise ValueError("offsets of keys lead out of their data")
    counts = ends_of - begins_of
    before = np.cumsum(counts) - counts
    return np.repeat(begins_of - before, counts) + np.arange(counts.sum())


def is_ordered(keys):
    view: View = _view(keys)
    row: int64_t
    ordered: cython.bint = True
    with cython.nogil:
        for row in range(1, view.rows):
            if _compared(cython.address(view), row - 1, cython.address(view), row) > EQUAL:
                ordered = False
                break
    return ordered


@cython.cfunc
def _view(keys: object) -> View:
    """Where keys lie; raises ValueError where there is not as much as they say."""
    view: View
    data: cython.const[uint8_t][::1] = keys.data
    offsets: cython.const[int64_t][::1]
    view.rows = keys.rows
    view.width = keys.width
    view.size = data.shape[0]
    view.data = cython.cast(cython.p_const_char, cython.address(data[0])) if view.size else cython.NULL
    view.offsets = cython.NULL
    if keys.offsets is not None:
        offsets = keys.offsets
        if view.rows < 0 or offsets.shape[0] != view.rows + 1:
            raise ValueError(f"{view.rows} keys have {offsets.shape[0]} offsets")
        view.offsets = cython.address(offsets[0])
    elif view.rows < 0 or view.width < 1 or view.rows > view.size // view.width:
        raise ValueError(f"{view.rows} keys of {view.width} bytes are not in {view.size}")
    return view


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compared(
    left: cython.pointer[View], row: int64_t, right: cython.pointer[View], other: int64_t
) -> cython.int:
    """How the key of a row stands to that of another. Both rows are within their keys."""
    at: int64_t = _start(left, row)
    end: int64_t = _start(left, row + 1)
    there: int64_t = _start(right, other)
    behind: int64_t = _start(right, other + 1)
    if at < 0 or end < at or end > left.size or there < 0 or behind < there or behind > right.size:
        return NONE
    least: int64_t = min(end - at, behind - there)
    found: cython.int = 0
    if least > 0:
        found = memcmp(left.data + at, right.data + there, least)
    if found == 0:
        found = (end - at > behind - there) - (end - at < behind - there)
    return (found > 0) - (found < 0)


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _start(view: cython.pointer[View], row: int64_t) -> int64_t:
    return row * view.width if view.offsets == cython.NULL else view.offsets[row]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _bound(
    held: cython.pointer[View], low: int64_t, asked: cython.pointer[View], row: int64_t, behind: cython.bint
) -> int64_t:
    """The first row from `low` on that is not below a key, or behind it: above it. -1 where a row has no key.

    Steps that double find the stretch, which halves find it in. So the next key of many costs little.
    """
    high: int64_t = low
    step: int64_t = 1
    middle: int64_t
    stands: cython.int
    while high < held.rows:
        stands = _compared(held, high, asked, row)
        if stands == NONE:
            return -1
        if stands == ABOVE or (stands == EQUAL and not behind):
            break
        low = high + 1
        high = low + step
        step *= 2
    high = min(high, held.rows)
    while low < high:
        middle = low + (high - low) // 2
        stands = _compared(held, middle, asked, row)
        if stands == NONE:
            return -1
        if stands == ABOVE or (stands == EQUAL and not behind):
            high = middle
        else:
            low = middle + 1
    return low
