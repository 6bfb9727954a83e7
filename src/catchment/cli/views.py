"""`catchment views`: the lake as views for DuckDB."""

from pathlib import Path

import click

from catchment.api.views import views, write_views
from catchment.cli.output import feed_argument
from catchment.config import load


@click.command(name="views")
@feed_argument
@click.option("--epoch", metavar="EPOCH", help="As of exactly this epoch instead of the newest.")
@click.option("--at", metavar="WHEN", help='As of the newest epoch at or before a time (UTC), or "-10min".')
@click.option(
    "--write", is_flag=True, help="Write it to _catchment/views-FEED.sql in the lake; print the path."
)
def views_command(file: Path, epoch: str | None, at: str | None, write: bool) -> None:
    """Print SQL with a DuckDB view of every table, all as of one epoch.

    Views do not follow the feed, and end when the files that they name are removed: sink.keep after a settle. Make them
    anew then. Needs the lake alone: no shard, no state store, no password.
    """
    feed = load(file, secrets=())
    click.echo(write_views(feed, epoch, at=at) if write else views(feed, epoch, at=at))
