import numpy as np
import numpy.typing as npt
import pyarrow as pa

def splice(
    rows: pa.Table,
    others: pa.Table,
    at: npt.NDArray[np.int64],
    gone: npt.NDArray[np.int64],
    put: npt.NDArray[np.int64],
) -> pa.Table:
    """`rows` with row `put[i]` of `others`, if that is not negative, before row `at[i]`; and if `gone[i]` is 1,
    row `at[i]` is left out. Both tables have the same columns; `at` does not fall, and rises behind each row
    that is left out.

    Raises ValueError for places outside of the rows or out of order, and above 2 GiB of strings in a column.
    """
