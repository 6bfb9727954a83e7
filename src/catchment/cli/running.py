"""A run with its screen: imported while Java starts, since it takes the driver a second."""

import threading
from collections.abc import Collection

import click
from rich.console import Console

from catchment.cli.output import EXIT_INTERRUPTED
from catchment.cli.progress import RunView
from catchment.config import Feed
from catchment.model.epoch import epoch_text
from catchment.model.table import TableId
from catchment.run.faults import from_environment
from catchment.run.runner import run_feed
from catchment.spark.early import EarlySpark


def run_shown(
    feed: Feed,
    spark: EarlySpark | None,
    stop: threading.Event,
    *,
    until_caught_up: bool,
    leave: Collection[TableId],
) -> int:
    """Run the feed, and show it; the exit code. Raises CatchmentError."""
    view = RunView(Console(), feed.name)
    with view.live():
        outcome = run_feed(
            feed,
            until_caught_up=until_caught_up,
            observer=view.observer(),
            stop=stop,
            fault=from_environment(),
            leave=leave,
            spark=spark.ready if spark is not None else None,
        )
    how, seen = "stopped" if outcome.stopped else "caught up", view.seen
    click.echo(
        f"{how} at epoch {epoch_text(outcome.manifest.epoch)}: {seen.copied_rows:,} rows copied, {seen.changes:,} "
        "changes applied"
    )
    return EXIT_INTERRUPTED if outcome.stopped else 0
