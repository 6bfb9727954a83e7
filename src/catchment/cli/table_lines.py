"""Tables of a feed as lines: where each stands, and how far its copy is."""

from collections.abc import Iterable

from catchment.cli.output import columns
from catchment.model.progress import Basis
from catchment.screen.until import briefly, until
from catchment.watch.table_status import PartStatus, TableStatus

_HEAD = ("table", "state", "rows copied", "of about", "", "rows/s", "to go", "readers see")
_SURE = {
    Basis.COUNTED: "all of them",
    Basis.KEYS: "by the keys that are left",
    Basis.CATALOG: "as the server estimated",
    Basis.UNKNOWN: "",
}


def table_lines(tables: Iterable[TableStatus]) -> Iterable[str]:
    """A head, and a line for each table. Of one that is copied whole, its rows are all there were."""
    yield from columns([_HEAD, *map(_row, tables)])


def _row(one: TableStatus) -> tuple[str, ...]:
    rest = ("", "", "", "")
    if one.parts:
        rest = (_rows(one.expected), _share(one.rows, one.expected), _rate(one.rate), briefly(one.left))
    return (one.table, one.state.value, f"{one.rows:,}", *rest, one.as_of or "the newest epoch")


def part_text(part: PartStatus) -> str:
    """`1,200 of about 4,000 rows (as the server estimated), 30%, 500 a second; to go: 0:00:06 (...)`."""
    if part.expected is None:
        text = f"{part.rows:,} rows, of how many is unknown"
    else:
        about = f"{part.rows:,} of {'' if part.basis is Basis.COUNTED else 'about '}{part.expected:,} rows"
        text = f"{about} ({_SURE[part.basis]}), {_share(part.rows, part.expected)}"
    if part.rate is not None:
        text += f", {part.rate:,.0f} a second"
    remaining = until(part.left)
    return f"{text}; to go: {remaining}" if remaining else text


def _rows(expected: int | None) -> str:
    return "?" if expected is None else f"{expected:,}"


def _share(rows: int, expected: int | None) -> str:
    return "?" if expected is None else f"{min(1.0, rows / expected):.0%}" if expected else ""


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:,.0f}"
