"""`catchment views`: the lake as views for DuckDB."""

from pathlib import Path

import click

from catchment.api.views import following_views, spark_tables, views, write_views
from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.model.errors import ConfigError


@click.command(name="views")
@feed_argument
@click.option("--epoch", metavar="EPOCH", help="As of exactly this epoch instead of the newest.")
@click.option("--at", metavar="WHEN", help='As of the newest epoch at or before a time (UTC), or "-10min".')
@click.option(
    "--write", is_flag=True, help="Write it to _catchment/views-FEED.sql in the lake; print the path."
)
@click.option("--follow", is_flag=True, help="Views that follow the feed, by DuckDB's extension delta.")
@click.option("--spark", is_flag=True, help="Spark SQL instead, by which its catalog knows the tables.")
def views_command(
    file: Path, epoch: str | None, at: str | None, write: bool, follow: bool, spark: bool
) -> None:
    """Print SQL with a DuckDB view of every table, all as of one epoch.

    These views do not follow the feed, and end when the files that they name are removed: sink.keep after a settle.
    With --follow or --spark every table follows the feed by itself, sink.settle behind the source. Needs the lake
    alone: no shard, no state store, no password.
    """
    if (follow or spark) and (epoch or at or write or (follow and spark)):
        raise ConfigError(
            "views: give --follow or --spark alone: what follows the feed is of no one epoch, and is printed"
        )
    feed = load(file, secrets=())
    if follow or spark:
        click.echo(spark_tables(feed) if spark else following_views(feed))
        return
    click.echo(write_views(feed, epoch, at=at) if write else views(feed, epoch, at=at))
