"""Read lake tables: the state as of an epoch, in DuckDB, Arrow, pandas, polars or Spark.

All tables read at one epoch belong together.
"""

from collections.abc import Iterable, Sequence
from typing import overload

from catchment.api.epochs import Committed, Lake, committed
from catchment.api.moment import At, Epoch
from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError, SinkError
from catchment.model.table import TableId
from catchment.sink.reading import TableState


@overload
def read(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
    lake: Lake,
    table: str | TableId,
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
    strict: bool = False,
) -> TableState: ...


@overload
def read(
    lake: Lake,
    table: Sequence[str | TableId],
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
    strict: bool = False,
) -> tuple[TableState, ...]: ...


def read(
    lake: Lake,
    table: str | TableId | Sequence[str | TableId],
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    origin: bool = True,
    strict: bool = False,
) -> TableState | tuple[TableState, ...]:
    """State of `table` (`schema.name`) as of a committed epoch, the newest by default; of several, all at the same.

    `epoch`: exactly that one, as its text or number. `at`: the newest at or before a time, a duration back (`"-10min"`)
    or an epoch. A time is `"2026-11-22 04:00"`, UTC if it names no offset, or a datetime with its zone.

    A table that is copied anew is read as of the last epoch at which it was exact. `as_of` of its state tells that;
    `strict` raises SinkError instead.

    `lake` is the lake's directory, a feed or the path of a feed file, whose secrets are not needed. `feed` names one
    where several feeds of the directory have the table. Raises ConfigError for an unknown table, epoch or feed and for
    a directory that is no lake. Raises SinkError when a feed's lake or the files are not there (any more).
    """
    names = [table] if isinstance(table, str | TableId) else table
    found = committed(lake, epoch, at=at, feed=feed, tables=names)
    tables = [t if isinstance(t, TableId) else named(found.row, t) for t in names]
    if strict:
        _must_be_exact(found.row, tables)
    states = (state(found, t, origin) for t in tables)
    return next(states) if isinstance(table, str | TableId) else tuple(states)


def tables_at(
    lake: Lake, epoch: Epoch | None = None, *, at: At | None = None, feed: str | None = None
) -> dict[str, int]:
    """Version of every table (`schema.name`) at the sink, as of a committed epoch, the newest by default."""
    return committed(lake, epoch, at=at, feed=feed).row.versions


def state(found: Committed, table: TableId, origin: bool = True) -> TableState:
    """State of a table as of a committed epoch. Raises ConfigError for a table that the epoch does not have."""
    row = found.row
    known = {str(one) for one in row.manifest.tables}
    if str(table) not in known:
        why = next((f" ({one.why})" for one in row.manifest.outside if one.table == table), "")
        raise ConfigError(
            f"{found.place.path}: no table {table}{why} as of epoch {epoch_text(row.commit.epoch)}; tables are: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    return found.place.reading.state(row, table, origin=origin)


def _must_be_exact(row: EpochRow, tables: Iterable[TableId]) -> None:
    for table in tables:
        stale = row.manifest.stale_since(table)
        if stale is not None:
            raise SinkError(f"{stale}; without strict=True it is read as of then")


def named(row: EpochRow, name: str) -> TableId:
    """The table of an epoch that has this name, whatever dots are in its schema's; else what the name says."""
    for table in row.manifest.tables:
        if str(table) == name:
            return table
    try:
        return TableId.parse(name)
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
