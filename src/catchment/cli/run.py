"""`catchment run`: copy and follow, with progress; Ctrl-C stops within seconds."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from catchment.cli.output import EXIT_INTERRUPTED, feed_argument, tables_of
from catchment.cli.signals import stopped_by_signals
from catchment.config import Feed, load
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
    screen = sys.stdout.isatty()
    view = RunView(feed.name, None if screen else click.echo)
    with _on_terminal(feed, view) if screen else stopped_by_signals(restore=_nothing) as stop:
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


@contextmanager
def _on_terminal(feed: Feed, view: RunView) -> Iterator[threading.Event]:
    """Show the run while the block lasts, and obey keys; the event that a signal sets."""
    from rich.console import Console  # a run under cron or a service has no screen

    from catchment.cli.keyboard import Keyboard
    from catchment.screen.live import shown

    keyboard = Keyboard(feed, view.told_of_keys)

    def restore() -> None:
        """The terminal is as it was before the run."""
        keyboard.restore()
        Console(stderr=True).show_cursor()

    with stopped_by_signals(restore=restore) as stop, keyboard, shown(Console(), lambda: view.seen):
        yield stop


def _nothing() -> None:
    """There is no terminal to give back."""
