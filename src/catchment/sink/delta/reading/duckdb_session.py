"""Sessions of DuckDB over files of the lake.

An instance of DuckDB takes 15 ms to set up, a session of one that is there 0.1 ms. So a process keeps its instances.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import duckdb

from catchment.model.location import ObjectPath, location
from catchment.sink.delta.reading.duckdb_files import let_read

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def session_over(files: Sequence[str], threads: int | None = None) -> Iterator["DuckDBPyConnection"]:
    """A session in UTC that reads these files. `threads`: of a query; None: one for each core. Raises NotInstalled."""
    # An instance keeps the credentials with which it first read a store, and those may change.
    owned = any(isinstance(location(file), ObjectPath) for file in files)
    began = _begun(threads) if owned else _kept(threads).cursor()
    with began as connection:
        connection.execute("SET TimeZone = 'UTC'")
        let_read(connection, files)
        yield connection


def _begun(threads: int | None) -> "DuckDBPyConnection":
    # Files of a lake are read once or twice: what an instance keeps of them would only take memory.
    settings: dict[str, str | int] = {"enable_external_file_cache": "false"}
    return duckdb.connect(config=settings if threads is None else {**settings, "threads": threads})


@cache
def _kept(threads: int | None) -> "DuckDBPyConnection":
    return _begun(threads)


# A fork has none of an instance's threads, and would crash when it ends.
os.register_at_fork(before=_kept.cache_clear)
