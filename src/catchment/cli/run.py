"""`catchment run`: copy and follow, with progress; Ctrl-C stops within seconds."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from catchment.cli.log import current_log, log_options
from catchment.cli.output import EXIT_INTERRUPTED, feed_argument, tables_of
from catchment.cli.signals import stopped_by_signals
from catchment.config import Feed, load
from catchment.engine.choice import prepared
from catchment.feed.runner import Outcome, run_feed, usual_ports
from catchment.feed.take_up import Ports
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import LEFT_BEHIND
from catchment.model.table import TableId
from catchment.model.version import __version__
from catchment.screen.progress import RunView
from catchment.state.faults import from_environment
from catchment.state.notes import exit_code_of
from catchment.watch.report import Observer

_log = logging.getLogger("catchment.run")


@dataclass(frozen=True)
class _Asked:
    """A run of a feed as the command line has it."""

    feed: Feed
    ports: Ports
    until_caught_up: bool
    leave: list[TableId]
    standby: bool

    def run(self, observer: Observer, stop: threading.Event) -> Outcome:
        """Run the feed until it is stopped, or has caught up. Raises what ends it."""
        return run_feed(
            self.feed,
            until_caught_up=self.until_caught_up,
            observer=observer,
            stop=stop,
            fault=from_environment(),
            leave=self.leave,
            standby=self.standby,
            ports=self.ports,
        )


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
@click.option(
    "--standby",
    is_flag=True,
    help="While another runner holds the feed, wait, and take over when it has ended.",
)
@click.option(
    "--events",
    type=click.Choice(["json"]),
    help="For programs: print what happens as lines of JSON, one for each event, at once, and nothing else.",
)
@log_options
def run(file: Path, until_caught_up: bool, leave: tuple[str, ...], standby: bool, events: str | None) -> int:
    """Copy the chosen tables and follow their changes until Ctrl-C; a later run goes on where this one
    stopped.
    """
    log = current_log()
    screen = events is None and not log.is_asked_for and sys.stdout.isatty()
    # What goes on is told by the screen, or by the events.
    log.keep("info" if events is None and not screen else "warning", lines=not screen)
    feed = load(file)
    log.of_feed(feed.name)
    asked = _Asked(feed, usual_ports(prepared(feed)), until_caught_up, tables_of("--leave", leave), standby)
    if events is not None:
        return _exit_code(_told_as_events(asked))
    return _exit_code(_shown(asked) if screen else _logged(asked))


def _shown(asked: _Asked) -> Outcome:
    """Run for a person at a terminal."""
    view = RunView(asked.feed.name, None)
    with _on_terminal(asked.feed, view) as stop:
        outcome = asked.run(view.observer(), stop)
    click.echo(_end_of(outcome, view))
    for line in _left(outcome):
        click.echo(line, err=True)
    return outcome


def _logged(asked: _Asked) -> Outcome:
    """Run with a log."""
    view = RunView(asked.feed.name, lambda line: _log.info("%s", line))
    with _without_terminal() as stop:
        outcome = asked.run(view.observer(), stop)
    for line in _left(outcome):
        _log.warning("%s", line)
    _log.info("%s: %s", asked.feed.name, _end_of(outcome, view))
    return outcome


def _end_of(outcome: Outcome, view: RunView) -> str:
    how, seen = "stopped" if outcome.stopped else "caught up", view.seen
    return (
        f"{how} at epoch {epoch_text(outcome.manifest.epoch)}: {seen.copied_rows:,} rows copied, {seen.changes:,} "
        "changes applied"
    )


def _left(outcome: Outcome) -> list[str]:
    return [] if outcome.stopped else [f"not caught up: {line}" for line in outcome.left]


def _told_as_events(asked: _Asked) -> Outcome:
    """Run for a program, which reads standard output."""
    from catchment.watch.events import Events  # a person has the screen

    with _without_terminal() as stop:
        events = Events(_write_line, stop)
        with events.warnings():
            events.tell("started", feed=asked.feed.name, pid=os.getpid(), version=__version__)
            try:
                outcome = asked.run(events.observer(), stop)
            except BaseException as error:
                events.ended(exit_code_of(error), "failed", error)
                raise
            if not outcome.stopped and not outcome.left:
                events.caught_up()
            how = "stopped" if outcome.stopped else "caught up"
            events.ended(_exit_code(outcome), how, epoch=epoch_text(outcome.manifest.epoch))
    return outcome


def _write_line(line: str) -> None:
    try:
        click.echo(line)
    except OSError:
        from catchment.cli.pipe import forget

        forget()
        raise


def _exit_code(outcome: Outcome) -> int:
    if outcome.stopped:
        return 0 if outcome.ordered else EXIT_INTERRUPTED
    return LEFT_BEHIND if outcome.left else 0


def _without_terminal() -> AbstractContextManager[threading.Event]:
    """The event that a signal sets; there is no terminal to give back."""
    return stopped_by_signals(restore=lambda: None)


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
