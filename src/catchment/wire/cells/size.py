"""How many bytes a table takes."""

from typing import Final

import pyarrow as pa

# Of so many bytes nobody has to know which of them the table shares with others.
_SMALL: Final = 1 << 20


def bytes_of(table: pa.Table) -> int:
    """The bytes of a table, to compare them with a bound of memory.

    `nbytes` looks at each column (90 us for 24), and leaves out what other slices of the same memory hold. So it is
    asked where the memory as a whole (2 us) is large.
    """
    whole: int = table.get_total_buffer_size()
    return whole if whole <= _SMALL else int(table.nbytes)
