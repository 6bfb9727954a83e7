"""`catchment erase`: rows of some keys leave every version of a table, beside a running feed or without one."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Literal

import click

from catchment.cli.output import feed_argument, json_option, show, tables_of
from catchment.feed.erase import erase
from catchment.model.errors import ConfigError
from catchment.sink.erasure import Erased, Spelling

_PLACES = {
    "table": "the newest version",
    "history": "files of older versions",
    "tail": "files of the tail",
    "change_data": "change data",
}


@click.command(name="erase")
@feed_argument
@click.option("--table", required=True, metavar="SCHEMA.NAME", help="The table that has the rows.")
@click.option(
    "--keys",
    "keys",
    multiple=True,
    required=True,
    metavar="KEY|@FILE",
    help="A key: its value or, of a key of several columns, a JSON list of their values. Or @FILE (@- is standard "
    "input), with a JSON value or list on each line. May be given more than once.",
)
@click.option("--shard", help="Rows of this shard alone.")
@click.option(
    "--keep-versions",
    is_flag=True,
    help="Leave older versions, which need the rows, to readers for sink.keep.",
)
@click.option(
    "--spelling",
    type=click.Choice([spelling.value for spelling in Spelling]),
    help="exact: texts of the same characters are one key. any: also those that differ in case, accents or spaces at "
    "the end. Without it, such rows stop the command.",
)
@json_option
def erase_command(
    file: Path,
    table: str,
    keys: tuple[str, ...],
    shard: str | None,
    keep_versions: bool,
    spelling: Literal["exact", "any"] | None,
    as_json: bool,
) -> None:
    """Erase the rows of some keys from a lake table, its older versions, its tail and its change data.

    Delete them at the source first: a key that is alive there is refused. Needs the lake and the state store, no shard.
    """
    given = [key for one in keys for key in _given(one)]
    (named,) = tables_of("--table", [table])
    erased = erase(file, named, given, shard=shard, keep_versions=keep_versions, spelling=spelling)
    show(erased, _lines, as_json=as_json)


def _given(argument: str) -> Iterator[object]:
    """The keys that one option names."""
    if argument.startswith("@"):
        yield from _of_file(argument[1:])
    elif argument.startswith("["):
        yield _json(argument, "--keys: a list")
    else:
        yield argument


def _of_file(name: str) -> Iterator[object]:
    try:
        with click.open_file(name, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--keys: cannot read {name}: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _json(line, f"--keys: line {number} of {name}")


def _json(text: str, where: str) -> object:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        raise ConfigError(
            f'{where} is no JSON; write 17, "ann@example.org" or ["de", 17]: texts in double quotes'
        ) from None


def _lines(erased: Erased) -> Iterable[str]:
    yield f"{erased.table}: {erased.found} of {erased.keys} keys had rows"
    for name, place in _PLACES.items():
        if erased.rows[name]:
            yield f"  {erased.rows[name]:,} rows removed from {place}"
    yield f"{erased.rewritten} files written again without them, {erased.deleted} files deleted"
    if erased.kept_until is not None:
        yield (
            f"{erased.rows['kept']:,} rows stay in files of older versions until {erased.kept_until:%Y-%m-%d %H:%M} "
            "UTC; a run or catchment settle deletes them then"
        )
    if erased.newer:
        yield f"{erased.newer:,} rows came in epochs since; erase again if these shall go, too"
    for path in erased.unreadable:
        yield f"not searched, since it cannot be read: {path}; the cleaner deletes what no version names"
    yield f"{erased.table}: {erased.readable}"
    yield (
        "Not erased: the shards' logs and backups, copies of the lake, what readers have taken, and bounds of keys in "
        "the records of the feed (docs/erasure.md)"
    )
