"""Rows of Arrow as frames of pandas and polars."""

from typing import TYPE_CHECKING

import pyarrow as pa

from catchment.model.extras import needing

if TYPE_CHECKING:
    import pandas
    import polars


def pandas_frame(rows: pa.Table) -> "pandas.DataFrame":
    """A pandas frame with Arrow's types: pandas' own would round integers where a NULL is among them. Raises
    NotInstalled."""
    with needing("pandas()", "pandas"):
        import pandas

    return rows.to_pandas(types_mapper=pandas.ArrowDtype)


def polars_frame(rows: pa.Table) -> "polars.DataFrame":
    """A polars frame. Raises NotInstalled."""
    with needing("polars()", "polars"):
        import polars

    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    return frame
