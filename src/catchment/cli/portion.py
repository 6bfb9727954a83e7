"""Options of commands that compare or copy a part of what a feed has: a portion of a table."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from catchment.model.choice import Portion
from catchment.model.errors import ConfigError
from catchment.model.table import TableId

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PORTION = (
    click.option("--shard", default="", help="Of the table, only the rows of this shard."),
    click.option(
        "--keys",
        default="",
        metavar="A..B",
        help="Of the table, only the rows with keys from A to B; 7.. and ..9, too.",
    ),
    click.option(
        "--where",
        default="",
        metavar="SQL",
        help="Of the table, only the parts that hold a row for which this is true at the source.",
    ),
)


def portion_options(command: _Command) -> _Command:
    """Add `--shard`, `--keys` and `--where` to a command; each is empty where it is not given."""
    for option in reversed(_PORTION):
        command = option(command)
    return command


def portion_of(tables: Iterable[TableId], shard: str, keys: str, where: str) -> Portion | None:
    """The portion that the options name, if they do. Raises ConfigError unless they are of one table."""
    if not (shard or keys or where):
        return None
    named = list(tables)
    if len(named) != 1:
        raise ConfigError("--shard, --keys and --where are of one table: name it with --table")
    first, dots, last = keys.partition("..")
    if keys and not (dots and (first or last)):
        raise ConfigError(f"--keys {keys}: expected A..B, as in 100..200; 100.. has no end, ..200 no begin")
    return Portion(named[0], shard, first, last, where)
