"""Rows of Arrow as frames of pandas and polars."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from catchment.model.errors import NotInstalled

if TYPE_CHECKING:
    import pandas
    import polars


def pandas_frame(rows: pa.Table) -> "pandas.DataFrame":
    """A pandas frame with Arrow's types: pandas' own would round integers where a NULL is among them. Raises
    NotInstalled."""
    with _needed("pandas"):
        import pandas

    return rows.to_pandas(types_mapper=pandas.ArrowDtype)


def polars_frame(rows: pa.Table) -> "polars.DataFrame":
    """A polars frame. Raises NotInstalled."""
    with _needed("polars"):
        import polars

    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    return frame


@contextmanager
def _needed(package: str) -> Iterator[None]:
    """Say which extra has a package that the block imports."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if fault.name != package:
            raise
        raise NotInstalled(
            f"{package}() needs {package}, which is not installed: pip install 'catchment[{package}]'"
        ) from None
