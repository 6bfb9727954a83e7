"""Work on several data files at once. Parquet and NumPy let other threads run while they work."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# Each holds a row group in memory.
THREADS = min(4, os.cpu_count() or 1)

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """What `work` makes of each item, in their order. The first error is raised when the others have ended."""
    if len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(work, items)
