"""Checks of keys with dates: a date that no calendar has is NULL in the lake, which no key may be."""

from collections.abc import Mapping

from catchment.doctor.finding import Finding, Severity
from catchment.model.table import Kind, Table, TableId
from catchment.source.session import Session

_DATES = (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP)
# With all of these, and without ALLOW_INVALID_DATES, a server refuses `0000-00-00`, `2026-00-10` and `2026-02-30`.
_REFUSE = {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"}
_STRICT = {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"}
_NAMED_MAX = 5


def check_dates(session: Session, tables: Mapping[TableId, Table]) -> list[Finding]:
    """A warning where the server accepts such dates, and tables have dates in their keys. Raises SourceError."""
    dated = [
        f"{table} ({', '.join(names)})"
        for table, found in sorted(tables.items())
        if (
            names := [
                column.name
                for column in found.columns
                if column.name in found.key and column.type.kind in _DATES
            ]
        )
    ]
    if not dated or _refuses(session):
        return []
    more = f" and {len(dated) - _NAMED_MAX} more" if len(dated) > _NAMED_MAX else ""
    return [
        Finding(
            Severity.WARNING,
            session.endpoint.shard,
            "sql_mode accepts dates that no calendar has (0000-00-00, 2026-02-30), and these tables have dates in "
            f"their keys: {', '.join(dated[:_NAMED_MAX])}{more}",
            "with such a row a table cannot be copied, and is stale until the row is corrected; other tables go on",
            "add STRICT_TRANS_TABLES, NO_ZERO_DATE and NO_ZERO_IN_DATE to sql_mode",
        )
    ]


def _refuses(session: Session) -> bool:
    """Whether sessions refuse such dates, unless they change their own sql_mode."""
    row = session.row("SELECT @@GLOBAL.sql_mode")
    mode = set(str(row[0]).split(",")) if row else set()
    return mode >= _REFUSE and bool(mode & _STRICT) and "ALLOW_INVALID_DATES" not in mode
