"""Results as text for people or as JSON for programs."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from catchment.model.errors import INTERRUPTED, ConfigError
from catchment.model.table import TableId

T = TypeVar("T")

EXIT_INTERRUPTED = INTERRUPTED

feed_argument = click.argument("file", metavar="FEED.yaml", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def tables_of(option: str, names: Iterable[str]) -> list[TableId]:
    """The tables that an option names; raises ConfigError for what is no name of one."""
    # Not above: the help of a command needs no feed file.
    from catchment.config.table_patterns import table_in

    try:
        return [table_in(name) for name in names]
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error


def show(value: T, text: Callable[[T], Iterable[str]], *, as_json: bool) -> None:
    """Print a value made of structs, enums and plain values: as one JSON document, or as the lines of
    `text`."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
        return
    for line in text(value):
        click.echo(line)


def columns(rows: Iterable[Iterable[object]]) -> list[str]:
    """Lines of a table whose columns are as wide as they must be; the first row is the head."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]


def duration(seconds: float) -> str:
    """`0.4 s`, `75 s`, `12 min`, `5.0 h`, `3.1 d`: as exact as a reader needs."""
    for limit, size, unit in ((10, 1, "s"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.{1 if limit in (10, 172_800) else 0}f} {unit}"
    return f"{seconds / 86_400:.1f} d"
