"""`catchment verify`: compare source and lake row by row while both move on, and mend what differs."""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console

from catchment.cli.output import EXIT_INTERRUPTED, feed_argument, json_option, show, tables_of
from catchment.cli.run import stopped_by_signals
from catchment.config import load
from catchment.engine.choice import engine_of, prepared
from catchment.feed.repair import Repairer
from catchment.feed.runner import usual_ports
from catchment.feed.verify import must_be_verifiable, verify
from catchment.feed.verify_progress import Progress
from catchment.model.cut import Cut
from catchment.model.errors import ConfigError, VerifyDifference
from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId
from catchment.screen.comparing import VerifyView, lines, repair_lines
from catchment.screen.verify_report import report_of
from catchment.state.verifications import verifications


@click.command(name="verify")
@feed_argument
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="SCHEMA.NAME",
    help="Only this table; may be given more than once.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Mend what differs, by epochs of the feed: the run does so, or this command where there is none.",
)
@click.option(
    "--sample",
    "percent",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Only so many percent of all parts of the tables, chosen at random.",
)
@click.option("--seed", type=int, help="With --sample: choose the same parts as with this seed before.")
@click.option(
    "--again", is_flag=True, help="From the start, also where one that was interrupted could go on."
)
@json_option
def verify_command(
    file: Path,
    tables: tuple[str, ...],
    repair: bool,
    percent: float | None,
    seed: int | None,
    again: bool,
    as_json: bool,
) -> int:
    """Compare every copied row with its source, both as of an epoch. Exit code 1 when any key differs, or is not mended
    with --repair. One that is interrupted goes on where it stood when the same is asked again.
    """
    feed = load(file, secrets=("password", "state", "mask_key", "http"))
    nursery = prepared(feed)
    only = tables_of("--table", tables)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    manifest = must_be_verifiable(feed, endpoints, only).manifest
    sample = _sample(percent, seed)
    view = VerifyView(Console(stderr=True), _copied(manifest.cut, only, sample.percent / 100))
    repaired = None
    with closing(engine_of(feed, "verify", nursery)) as engine:
        with verifications(feed.state.get_secret_value(), feed.name) as kept, view.live():
            progress = Progress(kept, again=again)
            verdict = verify(feed, endpoints, engine, only, view.observe, sample, progress)
            progress.completed()
        if not as_json:
            _say(lines(report_of(verdict, sample)))
        if repair and verdict.differences:
            with stopped_by_signals() as stop, view.live():
                repaired = Repairer(feed, engine, usual_ports(), stop, view.observe_repair).mend(verdict)
    report = report_of(verdict, sample, repaired)
    show(report, repair_lines, as_json=as_json)
    if not verdict.differences:
        return 0
    if repaired is None:
        raise VerifyDifference(f"feed {feed.name}: {verdict.differences} keys differ between source and lake")
    if stop.is_set():
        return EXIT_INTERRUPTED
    if repaired.left:
        raise VerifyDifference(f"feed {feed.name}: not all that differs is mended")
    return 0


def _say(text: Iterable[str]) -> None:
    for line in text:
        click.echo(line)


def _sample(percent: float | None, seed: int | None) -> Sample:
    """What is compared. Raises ConfigError for a seed of nothing."""
    if percent is None:
        if seed is not None:
            raise ConfigError("--seed: it chooses a sample; say how large it is with --sample")
        return EVERYTHING
    if seed is None:
        seed = secrets.randbelow(1 << 32)
        click.echo(f"a sample of {percent:g} %, --seed {seed}", err=True)
    return Sample(percent, seed)


def _copied(cut: Cut, only: Sequence[TableId], share: float) -> dict[TableId, int]:
    """Rows that were copied, by table: about as many as there are to compare of a share of all."""
    rows: dict[TableId, int] = {}
    for copy in cut.copies:
        if not only or copy.table in only:
            rows[copy.table] = rows.get(copy.table, 0) + int(copy.rows * share)
    return rows
