"""`catchment run`: copy and follow, with progress; Ctrl-C stops within seconds."""

import gc
from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console

from catchment.cli.keyboard import Keyboard
from catchment.cli.output import EXIT_INTERRUPTED, feed_argument, tables_of
from catchment.cli.signals import stopped_by_signals
from catchment.config import load
from catchment.engine.choice import prepared
from catchment.feed.runner import run_feed, usual_ports
from catchment.model.epoch_number import epoch_text
from catchment.screen.progress import RunView
from catchment.state.faults import from_environment


@click.command()
@feed_argument
@click.option(
    "--until-caught-up",
    is_flag=True,
    help="End when all is copied and the log of that moment is in the lake.",
)
@click.option(
    "--leave",
    "leave",
    metavar="SCHEMA.NAME",
    multiple=True,
    help="Let a table that `tables` takes no longer leave the feed, for good; may be given several times.",
)
def run(file: Path, until_caught_up: bool, leave: tuple[str, ...]) -> int:
    """Copy the chosen tables and follow their changes until Ctrl-C; a later run goes on where this one
    stopped.
    """
    feed = load(file)
    ports = usual_ports(prepared(feed))
    console = Console()
    view = RunView(console, feed.name)
    keyboard = Keyboard(feed, view.told_of_keys) if console.is_terminal else None
    gc.freeze()  # modules stay: the collector need not go through them in every epoch
    with (
        stopped_by_signals(restore=lambda: _restored(keyboard)) as stop,
        keyboard or nullcontext(),
        view.live(),
    ):
        outcome = run_feed(
            feed,
            until_caught_up=until_caught_up,
            observer=view.observer(),
            stop=stop,
            fault=from_environment(),
            leave=tables_of("--leave", leave),
            ports=ports,
        )
    how, seen = "stopped" if outcome.stopped else "caught up", view.seen
    click.echo(
        f"{how} at epoch {epoch_text(outcome.manifest.epoch)}: {seen.copied_rows:,} rows copied, {seen.changes:,} "
        "changes applied"
    )
    return EXIT_INTERRUPTED if outcome.stopped and not outcome.ordered else 0


def _restored(keyboard: Keyboard | None) -> None:
    """The terminal is as it was before the run."""
    if keyboard:
        keyboard.restore()
    Console(stderr=True).show_cursor()
