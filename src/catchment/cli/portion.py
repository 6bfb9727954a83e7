"""Options of commands that compare or copy a part of what a feed has: a portion of a table, or a sample."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any

import click

from catchment.model.choice import Portion
from catchment.model.errors import ConfigError
from catchment.model.table import TableId

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


@dataclass(frozen=True)
class PortionOptions:
    """What a person gave as `--shard`, `--keys` and `--where`; empty where it was not given."""

    shard: str
    keys: str
    where: str


@dataclass(frozen=True)
class SampleOptions:
    """What a person gave as `--sample` and `--seed`; None where it was not given."""

    percent: float | None
    seed: int | None


def options_as(
    name: str, kind: type, *options: Callable[..., Any]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add options to a command, which gets them as one value of a kind under a name."""

    def added(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def with_options(**given: Any) -> int:
            mine = {field.name: given.pop(field.name) for field in fields(kind)}
            return command(**{name: kind(**mine)}, **given)

        for option in reversed(options):
            with_options = option(with_options)
        return with_options

    return added


sample_options = options_as(
    "given",
    SampleOptions,
    click.option(
        "--sample",
        "percent",
        type=click.FloatRange(0, 100, min_open=True),
        metavar="PERCENT",
        help="Only so many percent of all parts of the tables, chosen at random.",
    ),
    click.option("--seed", type=int, help="With --sample: choose the same parts as with this seed before."),
)
portion_options = options_as("options", PortionOptions, *_PORTION)


def portion_of(tables: Iterable[TableId], options: PortionOptions) -> Portion | None:
    """The portion that options name, if they do. Raises ConfigError unless they are of one table."""
    shard, keys, where = options.shard, options.keys, options.where
    if not (shard or keys or where):
        return None
    named = list(tables)
    if len(named) != 1:
        raise ConfigError("--shard, --keys and --where are of one table: name it with --table")
    first, dots, last = keys.partition("..")
    if keys and not (dots and (first or last)):
        raise ConfigError(f"--keys {keys}: expected A..B, as in 100..200; 100.. has no end, ..200 no begin")
    return Portion(named[0], shard, first, last, where)
