from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

class Keys:
    """The encoded keys of some rows, in row order: `data` bytes with `offsets`, or of one `width` without."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64] | None
    width: int
    rows: int
    def __init__(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64] | None, width: int, rows: int
    ) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> bytes:
        """The encoded key of one row, e.g. for a bound; raises IndexError. Rows do not count from the end."""
    def to_binary(self) -> pa.LargeBinaryArray:
        """The same keys as an Arrow array; the bytes are not copied."""
    @staticmethod
    def from_binary(array: pa.Array | pa.ChunkedArray) -> Keys:
        """Keys from what `to_binary` gave; one large_binary array is not copied. ValueError on a null."""

def encode(batch: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Keys:
    """The keys of all rows, from the named columns in that order.

    Raises ValueError for no or an unknown column, a NULL in one, a type without an order (nested, uint64).
    """

def last_of_each(keys: Keys) -> npt.NDArray[np.int64]:
    """Ascending row numbers: of every distinct key, the last row that has it."""

def first_of_each(keys: Keys) -> npt.NDArray[np.int64]:
    """Ascending row numbers: of every distinct key, the first row that has it."""

class KeySet:
    """A hash table over encoded keys; of equal keys the last row is found. 16 to 32 bytes a key."""

    def __init__(self, keys: Keys) -> None:
        """Raises ValueError above 2^32 - 2 keys."""
    def __len__(self) -> int:
        """How many distinct keys."""
    def find(self, keys: Keys) -> npt.NDArray[np.int64]:
        """For each key: its (last) row in the set, or -1."""
    def contains(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """For each key: whether it is in the set. `pa.array(mask)` serves as a filter."""

def at_or_below(keys: Keys, bound: bytes) -> npt.NDArray[np.bool_]:
    """For each key: whether it is <= bound.

    `bound` is an encoded key, or one of its first columns. Then only those are compared, so an empty bound has every
    key at or below.
    """

def bucket(keys: Keys, buckets: int, seed: int = 0) -> npt.NDArray[np.uint16]:
    """For each key its bucket, 0 to buckets - 1: the same in every process for the same seed (0 to 2^64 - 1).

    Raises ValueError for less than 1 or more than 65536 buckets.
    """

def hash_rows(batch: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's values, column by column.

    Equal for equal values however they are cut into batches. Integer widths, string and binary, float and
    double of the same value hash alike; floats by their bits (-0.0 is not 0.0). The scale of decimals and the
    unit of times are not part of it. A null is not an empty string. Raises ValueError for an unknown column
    or a nested type.
    """
