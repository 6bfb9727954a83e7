"""`catchment verify`: compare source and lake row by row while both move on, and mend what differs."""

from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console

from catchment.cli.output import EXIT_INTERRUPTED, feed_argument, json_option, show, tables_of
from catchment.cli.portion import portion_of, portion_options
from catchment.cli.signals import stopped_by_signals
from catchment.config import load
from catchment.feed.compare import NEEDED, choice_of, choice_since, comparing, sample_of
from catchment.feed.verify import must_be_verifiable
from catchment.feed.verify_report import report_of
from catchment.model.choice import Choice
from catchment.model.cut import Cut
from catchment.model.errors import NOT_ALL_COMPARED, ConfigError, VerifyDifference
from catchment.model.table import TableId
from catchment.screen.comparing import VerifyView, lines, repair_lines


@click.command(name="verify")
@feed_argument
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="SCHEMA.NAME",
    help="Only this table; may be given more than once.",
)
@portion_options
@click.option(
    "--repair",
    is_flag=True,
    help="Mend what differs, by epochs of the feed: the run does so, or this command where there is none.",
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Only keys that changed behind this epoch, or since this time (UTC), or for so long, as -1h.",
)
@click.option(
    "--sample",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Only so many percent of all parts of the tables, chosen at random.",
)
@click.option("--seed", type=int, help="With --sample: choose the same parts as with this seed before.")
@click.option(
    "--again", is_flag=True, help="From the start, also where one that was interrupted could go on."
)
@json_option
def verify_command(  # noqa: PLR0913 (one for each option)
    file: Path,
    tables: tuple[str, ...],
    shard: str,
    keys: str,
    where: str,
    repair: bool,
    since: str | None,
    sample: float | None,
    seed: int | None,
    again: bool,
    as_json: bool,
) -> int:
    """Compare every copied row with its source, both as of an epoch. Exit code 1 when any key differs, or is not mended
    with --repair; 11 when no key differs, but a table is stale, or keys could be compared with the log alone. One that
    is interrupted goes on where it stood when the same is asked again.
    """
    only = tables_of("--table", tables)
    chosen = sample_of(sample, seed)
    if sample is not None and seed is None:
        click.echo(f"a sample of {sample:g} %, --seed {chosen.seed}", err=True)
    if since is None:
        choice = choice_of(only, portion_of(only, shard, keys, where), chosen)
    else:
        if keys or where:
            raise ConfigError("--since compares the keys that changed: leave out --keys and --where")
        choice = choice_since(load(file, secrets=NEEDED), since, choice_of(only, sample=chosen), shard)
    return compare_and_tell(file, choice, repair=repair, again=again, as_json=as_json)


def compare_and_tell(file: Path, choice: Choice, *, repair: bool, again: bool, as_json: bool) -> int:
    """Compare what is chosen, and mend what differs where that is wanted; print what is found. Raises VerifyDifference
    for what differs and is not mended."""
    feed = load(file, secrets=NEEDED)
    repaired = None
    with comparing(feed, choice) as one:
        shards = {endpoint.shard for endpoint in feed.endpoints()}
        cut = must_be_verifiable(feed, shards, choice.tables).manifest.cut
        view = VerifyView(Console(stderr=True), _copied(cut, choice))
        with view.live():
            verdict = one.compared(view.observe, again=again)
        if not as_json:
            _say(lines(report_of(verdict, choice)))
        if repair and verdict.differences:
            with stopped_by_signals() as stop, view.live():
                repaired = one.mended(verdict, stop, view.observe_repair)
    show(report_of(verdict, choice, repaired), repair_lines, as_json=as_json)
    whole = report_of(verdict, choice).all_compared
    if not verdict.differences:
        return 0 if whole else NOT_ALL_COMPARED
    if repaired is None:
        raise VerifyDifference(f"feed {feed.name}: {verdict.differences} keys differ between source and lake")
    if stop.is_set():
        return EXIT_INTERRUPTED
    if repaired.left:
        raise VerifyDifference(f"feed {feed.name}: not all that differs is mended")
    return 0 if whole else NOT_ALL_COMPARED


def _say(text: Iterable[str]) -> None:
    for line in text:
        click.echo(line)


def _copied(cut: Cut, choice: Choice) -> dict[TableId, int]:
    """Rows that were copied, by table: about as many as there are to compare of a share of all. Of a portion, or
    of what changed, nobody knows."""
    rows: dict[TableId, int] = {}
    for copy in cut.copies if choice.portion is None and choice.since is None else ():
        if choice.takes(copy.table):
            rows[copy.table] = rows.get(copy.table, 0) + int(copy.rows * choice.sample.percent / 100)
    return rows
