"""`catchment dump`, `tables`, `set` and `stop`: the copies of a feed under command."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from catchment.cli.order_lines import must_be_taken, order_lines
from catchment.cli.output import feed_argument, json_option, show, tables_of
from catchment.cli.portion import portion_of, portion_options
from catchment.cli.table_lines import part_text, table_lines
from catchment.feed.dump import apply, dump, set_live, skip, stop, tables
from catchment.model.errors import ConfigError, StateError
from catchment.model.table import TableId
from catchment.watch.table_status import TableStatus

_table_option = click.option(
    "--table", metavar="SCHEMA.NAME", help="This table; without it, all of the feed."
)
_shard_option = click.option("--shard", default="", help="On this shard alone.")


@click.group(name="dump")
def dump_group() -> None:
    """Pause, resume and restart the copying of tables, of a feed that runs or of one that stands still.

    A run obeys within two seconds. Without one the order is kept, and the next run obeys it first.
    """


def _ordering(action: str, what: str) -> None:
    """Add a command that gives such orders."""

    @dump_group.command(name=action, help=what)
    @feed_argument
    @_table_option
    @_shard_option
    @json_option
    def command(file: Path, table: str | None, shard: str, as_json: bool) -> None:
        _give(file, action, tables_of("--table", [table] if table else []), shard, as_json=as_json)


_ordering("pause", "Read no more chunks. What is copied goes on following the log, exact at every epoch.")
_ordering("resume", "Go on behind the last chunk.")
_ordering("start", "Resume what is paused, and copy again what is stale.")


@dump_group.command(name="restart")
@feed_argument
@click.option("--table", required=True, metavar="SCHEMA.NAME", help="The table to copy again.")
@portion_options
@json_option
def restart_command(file: Path, table: str, shard: str, keys: str, where: str, as_json: bool) -> int:
    """Copy a table again. Readers see it as of now until the new copy is complete and takes its place.

    With --shard, --keys or --where only that portion, in its place: chunks are compared with the lake, and what differs
    is written. Readers see the newest epoch all the while.
    """
    named = tables_of("--table", [table])
    portion = portion_of(named, shard, keys, where)
    if portion is not None:
        from catchment.cli.verify import compare_and_tell  # orders to a run need no engine
        from catchment.feed.compare import choice_of

        choice = choice_of(named, portion)
        return compare_and_tell(file, choice, repair=True, again=True, as_json=as_json)
    _give(file, "restart", named, "", as_json=as_json)
    return 0


@dump_group.command(name="skip")
@feed_argument
@click.option("--shard", required=True, help="The shard in whose log it stands.")
@click.option(
    "--at", required=True, metavar="FILE:OFFSET", help="Where, as the error says that ended the run."
)
@json_option
def skip_command(file: Path, shard: str, at: str, as_json: bool) -> None:
    """Set aside what stands at a place of a shard's log and stops the feed.

    The tables that it may have changed are stale then, and copied again."""
    kept = skip(file, shard, at)
    show([kept], order_lines, as_json=as_json)
    if kept.answer is not None and not kept.answer.done:
        raise StateError(f"order {kept.number} is refused")


@dump_group.command(name="status")
@feed_argument
@json_option
def status_command(file: Path, as_json: bool) -> None:
    """Show where every table stands."""
    show(tables(file), _table_lines, as_json=as_json)


@click.command(name="tables")
@feed_argument
@json_option
def tables_command(file: Path, as_json: bool) -> None:
    """Show where every table of a feed stands: its state, its rows, and as of when readers see it."""
    show(tables(file), _table_lines, as_json=as_json)


@click.command(name="stop")
@feed_argument
@json_option
def stop_command(file: Path, as_json: bool) -> None:
    """End the run of a feed, in order, wherever it runs."""
    kept = stop(file)
    show([kept], order_lines, as_json=as_json)


@click.command(name="set")
@feed_argument
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1, required=True)
@json_option
def set_command(file: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Change settings of the copy, of a feed that runs or of one that stands still: copy.chunk_time=200ms.

    They stay in force until a run begins with another value of that setting in its feed file.
    """
    kept = set_live(file, dict(map(_parted, settings)))
    show(kept, order_lines, as_json=as_json)
    must_be_taken(kept)


@click.command(name="apply")
@feed_argument
@click.option(
    "--leave",
    "leave",
    metavar="SCHEMA.NAME",
    multiple=True,
    help="Let a table that `tables` takes no longer leave the feed; may be given several times.",
)
@json_option
def apply_command(file: Path, leave: tuple[str, ...], as_json: bool) -> None:
    """Have the run of a feed use the feed file as it is now: tables join and leave, settings and addresses change.

    The run goes on where it stands. What cannot change while it runs is named."""
    kept = apply(file, tables_of("--leave", leave))
    show([kept], order_lines, as_json=as_json)
    must_be_taken([kept])


def _parted(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise ConfigError(f"set: expected NAME=VALUE, as in copy.chunk_time=200ms, got {setting!r}")
    return name, value


def _give(file: Path, action: str, named: list[TableId], shard: str, *, as_json: bool) -> None:
    """Order it for the table that is named, or for all tables."""
    kept = dump(file, action, named[0] if named else None, shard=shard)
    show(kept, order_lines, as_json=as_json)
    if named:
        must_be_taken(kept)


def _table_lines(found: Sequence[TableStatus]) -> Iterable[str]:
    yield from table_lines(found)
    yield from dict.fromkeys(text for one in found for text in one.throttled)
    for one in found:
        for part in one.parts:
            yield f"{one.table} on {part.shard}: {part_text(part)}"
        yield from one.refused
        if one.reason:
            yield f"{one.table}: {one.reason}"
